// Correctly rounded reciprocals without the divider, which takes 10 cycles for 16 lanes where this takes 4.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_plain.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

using llvm::Value;

constexpr std::uint32_t kTowardZero = 3 | 8;  // rounding operand of EVEX intrinsics: chop, no exceptions
constexpr std::uint32_t kNotNormal = 0xbf;    // VFPCLASS: NaNs, zeros, infinities, subnormals

/// Newton steps from the 14-bit estimate y0 of 1/b: e0 = 1 - b y0, y1 = y0 + y0 e0, e1 = 1 - b y1, y2 = y1 + y1 e1.
/// With y1 one of the two floats around 1/b, y2 is 1/b rounded to nearest for every b but those whose significand is
/// all ones (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990), which
/// need y1 above 1/b. So y1 is rounded towards zero, and e1 multiplies the float after y1: then y2 is right for all
/// 2^23 significands and every y0 with a relative error up to 2^-14 (tried: y1 the float below 1/b, and those beside it
/// where 1/b is within an eighth of the distance).
Value* NewtonHalf(llvm::IRBuilder<>& b, Value* x) {
  auto* floats = llvm::FixedVectorType::get(b.getFloatTy(), kHalfWarp);
  auto* words = llvm::FixedVectorType::get(b.getInt32Ty(), kHalfWarp);
  const auto fma = [&](Value* p, Value* q, Value* r) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {floats}, {p, q, r});
  };
  Value* one = llvm::ConstantFP::get(floats, 1);
  Value* minus_x = b.CreateFNeg(x);
  Value* y0 = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_rcp14_ps_512, {},
                                {x, llvm::Constant::getNullValue(floats), b.getInt16(0xffff)});
  Value* e0 = fma(minus_x, y0, one);
  Value* y1 = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vfmadd_ps_512, {}, {y0, e0, y0, b.getInt32(kTowardZero)});
  Value* e1 = fma(minus_x, y1, one);
  Value* after = b.CreateBitCast(b.CreateAdd(b.CreateBitCast(y1, words), llvm::ConstantInt::get(words, 1)), floats);
  return fma(after, e1, y1);
}

}  // namespace

/// 1 / x, rounded to nearest even. Zeros, subnormals, infinities, NaNs and results below the normal range leave a
/// result that is not a normal number (0 times infinity is NaN in e0): then the divider does it.
Value* PlainEmitter::EmitReciprocal(Value* x) {
  llvm::Type* type = x->getType();
  llvm::SmallVector<Value*, 2> newton, odd;  // per 16 lanes: a whole warp has two, a half warp (warp_half_loop.cpp) one
  for (unsigned first = 0; first < w_.width; first += kHalfWarp) {
    newton.push_back(NewtonHalf(b_, b_.CreateShuffleVector(x, llvm::createSequentialMask(first, kHalfWarp, 0))));
    odd.push_back(
        b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_fpclass_ps_512, {}, {newton.back(), b_.getInt32(kNotNormal)}));
  }
  Value* wrong = w_.ToBits(llvm::concatenateVectors(b_, odd));
  if (w_.divergent) wrong = b_.CreateAnd(wrong, w_.mask);
  return FastOrSlow(
      w_, b_.CreateIsNull(wrong), [&] { return std::vector<Value*>{llvm::concatenateVectors(b_, newton)}; },
      [&] { return std::vector<Value*>{b_.CreateFDiv(llvm::ConstantFP::get(type, 1), x)}; })[0];
}

}  // namespace gridloom::exec
