// Approximate functions of f32, for PTX's .approx instructions. Errors are given against the true value; each is well
// inside what the ISA allows. Coefficients: interpolation at Chebyshev nodes.
#include "sim/exec/compiler/float_approx.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

// x + kMagic - kMagic rounds |x| < 2^22 to the nearest integer; the integer also stands in the low bits of x + kMagic.
constexpr float kMagic = 0x1.8p+23f;

}  // namespace

Value* FloatApprox::Horner(Value* x, std::initializer_list<float> coefficients) {
  Value* sum = nullptr;
  for (auto it = std::rbegin(coefficients); it != std::rend(coefficients); ++it)
    sum = sum ? emit_.FmaF(sum, x, emit_.F32(*it)) : emit_.F32(*it);
  return sum;
}

// 2^x: 2^k by the exponent, in two steps so that subnormal results round once; 2^f by a polynomial, |f| <= 1/2. Error
// below 1 ulp; exact for integers.
Value* FloatApprox::Exp2(Value* x) {
  Value* low = b_.CreateSelect(b_.CreateFCmpOGT(x, emit_.F32(-151)), x, emit_.F32(-151));
  Value* clamped = b_.CreateSelect(b_.CreateFCmpOLT(low, emit_.F32(129)), low, emit_.F32(129));
  Value* shifted = b_.CreateFAdd(clamped, emit_.F32(kMagic));
  Value* k = b_.CreateSub(emit_.Bits(shifted), emit_.Bits(emit_.F32(kMagic)));
  Value* f = b_.CreateFSub(clamped, b_.CreateFSub(shifted, emit_.F32(kMagic)));
  Value* p =
      Horner(f, {0x1p+0f, 0x1.62e43p-1f, 0x1.ebfbep-3f, 0x1.c6aeccp-5f, 0x1.3b2a1cp-7f, 0x1.5f48cp-10f, 0x1.444p-13f});
  Value* half = b_.CreateAShr(k, 1);
  auto power = [&](Value* n) {
    return b_.CreateBitCast(b_.CreateShl(b_.CreateAdd(n, b_.getInt32(127)), 23), b_.getFloatTy());
  };
  Value* result = b_.CreateFMul(b_.CreateFMul(p, power(half)), power(b_.CreateSub(k, half)));
  return b_.CreateSelect(emit_.IsNaN(x), emit_.FromBits32(0x7fffffff), result);
}

// log2(x) = e + log2(1 + t), 1 + t in [sqrt(1/2), sqrt(2)). Error below 1.5 ulp, or 2^-25 where the result is near 0;
// exact for powers of two.
Value* FloatApprox::Log2(Value* x) {
  Value* subnormal = b_.CreateFCmpOLT(x, emit_.F32(0x1p-126f));
  Value* scaled = b_.CreateSelect(subnormal, b_.CreateFMul(x, emit_.F32(0x1p+24f)), x);
  constexpr std::uint32_t kSqrtHalf = 0x3f3504f3;
  Value* bits = b_.CreateSub(emit_.Bits(scaled), b_.getInt32(kSqrtHalf));
  Value* mantissa = b_.CreateAdd(b_.CreateAnd(bits, 0x007fffff), b_.getInt32(kSqrtHalf));
  Value* e = b_.CreateSIToFP(b_.CreateAShr(bits, 23), b_.getFloatTy());
  e = b_.CreateFSub(e, b_.CreateSelect(subnormal, emit_.F32(24), emit_.F32(0)));
  Value* t = b_.CreateFSub(b_.CreateBitCast(mantissa, b_.getFloatTy()), emit_.F32(1));
  Value* p =
      Horner(t, {0x1.715476p+0f, -0x1.715476p-1f, 0x1.ec708p-2f, -0x1.7154b2p-2f, 0x1.27805cp-2f, -0x1.ec6fc6p-3f,
                 0x1.a3ec06p-3f, -0x1.6efd9p-3f, 0x1.60f528p-3f, -0x1.575928p-3f, 0x1.84608cp-4f});
  Value* result = emit_.FmaF(t, p, e);
  Value* infinity = llvm::ConstantFP::getInfinity(b_.getFloatTy());
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, infinity), infinity, result);
  result = b_.CreateSelect(b_.CreateFCmpUGE(x, emit_.F32(0)), result, emit_.FromBits32(0x7fffffff));
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, emit_.F32(0)), b_.CreateFNeg(infinity), result);
  return b_.CreateSelect(emit_.IsNaN(x), emit_.FromBits32(0x7fffffff), result);
}

// Reduced by multiples of pi/2 in three steps; absolute error below 2^-23 for |x| up to 2^16. From 2^20 on the argument
// counts as 0, as any value in [-1, 1] is within what the ISA promises there; infinities and NaN give NaN.
Value* FloatApprox::SinCos(Value* x, bool cosine) {
  Value* shifted = emit_.FmaF(x, emit_.F32(0x1.45f306p-1f), emit_.F32(kMagic));
  Value* quadrant = emit_.Bits(shifted);
  Value* q = b_.CreateFSub(shifted, emit_.F32(kMagic));
  Value* minus_q = b_.CreateFNeg(q);
  Value* r = emit_.FmaF(minus_q, emit_.F32(0x1.921fb6p+0f), x);
  r = emit_.FmaF(minus_q, emit_.F32(-0x1.777a5cp-25f), r);
  r = emit_.FmaF(minus_q, emit_.F32(-0x1.ee59dap-50f), r);
  Value* in_range = b_.CreateFCmpOLT(emit_.Abs(x), emit_.F32(0x1p+20f));
  r = b_.CreateSelect(in_range, r, b_.CreateFMul(x, emit_.F32(0)));
  Value* square = b_.CreateFMul(r, r);
  Value* sine =
      emit_.FmaF(b_.CreateFMul(square, r), Horner(square, {-0x1.555552p-3f, 0x1.110be8p-7f, -0x1.9aa70ep-13f}), r);
  Value* cosine_part = Horner(square, {0x1.555554p-5f, -0x1.6c129ep-10f, 0x1.9bbcd8p-16f});
  Value* cos =
      emit_.FmaF(b_.CreateFMul(square, square), cosine_part, emit_.FmaF(square, emit_.F32(-0.5f), emit_.F32(1)));
  if (cosine) quadrant = b_.CreateAdd(quadrant, b_.getInt32(1));
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(quadrant, 1), b_.getInt32(0));
  Value* sign = b_.CreateShl(b_.CreateAnd(quadrant, 2), 30);
  Value* magnitude = b_.CreateSelect(odd, cos, sine);
  Value* result = b_.CreateBitCast(b_.CreateXor(emit_.Bits(magnitude), sign), b_.getFloatTy());
  return b_.CreateSelect(emit_.IsNaN(magnitude), emit_.FromBits32(0x7fffffff), result);
}

// Near 0 an odd polynomial, elsewhere 1 - 2 / (e^2|x| + 1). Relative error below 2^-21.
Value* FloatApprox::Tanh(Value* x) {
  Value* a = emit_.Abs(x);
  Value* square = b_.CreateFMul(a, a);
  Value* small =
      emit_.FmaF(b_.CreateFMul(square, a),
                 Horner(square, {-0x1.555554p-2f, 0x1.110eep-3f, -0x1.b955dcp-5f, 0x1.59e1c8p-6f, -0x1.9ada6p-8f}), a);
  Value* capped = b_.CreateSelect(b_.CreateFCmpOLT(a, emit_.F32(16)), a, emit_.F32(16));
  Value* e = Exp2(b_.CreateFMul(capped, emit_.F32(0x1.715476p+1f)));
  Value* large = b_.CreateFSub(emit_.F32(1), b_.CreateFDiv(emit_.F32(2), b_.CreateFAdd(e, emit_.F32(1))));
  Value* magnitude = b_.CreateSelect(b_.CreateFCmpOLT(a, emit_.F32(0.6f)), small, large);
  Value* result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, x);
  return b_.CreateSelect(emit_.IsNaN(x), emit_.FromBits32(0x7fffffff), result);
}

}  // namespace gridloom::exec
