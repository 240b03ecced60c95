#include "sim/exec/compiler/float_emit.h"

#include "sim/exec/compiler/lift_flush.h"

namespace gridloom::exec {

using llvm::Value;

namespace {

/// As f64.
Value* Extended(llvm::IRBuilder<>& b, Value* x) { return b.CreateFPExt(x, b.getDoubleTy()); }

// The fraction lands 13 bits up; scaling by 2^112 rebases the exponent and normalises subnormals; the largest exponent
// means infinity or NaN.
Value* HalfToFloatPortable(FloatEmitter& emit, llvm::IRBuilder<>& b, Value* half) {
  Value* wide = b.CreateZExt(half, b.getInt32Ty());
  Value* magnitude = b.CreateShl(b.CreateAnd(wide, 0x7fff), 13);
  Value* finite = emit.Bits(b.CreateFMul(b.CreateBitCast(magnitude, b.getFloatTy()), emit.F32(0x1p112f)));
  Value* special = b.CreateOr(magnitude, 0x7f800000);
  Value* is_special = b.CreateICmpUGE(magnitude, b.getInt32(0x7c00 << 13));
  Value* sign = b.CreateShl(b.CreateAnd(wide, 0x8000), 16);
  return b.CreateBitCast(b.CreateOr(b.CreateSelect(is_special, special, finite), sign), b.getFloatTy());
}

// Normal results round in integers; below them adding 2^-1 aligns the last place of an f16 with that of the sum.
Value* FloatToHalfPortable(FloatEmitter& emit, llvm::IRBuilder<>& b, Value* x) {
  Value* bits = emit.Bits(x);
  Value* magnitude = b.CreateAnd(bits, 0x7fffffff);
  Value* odd = b.CreateAnd(b.CreateLShr(magnitude, 13), 1);
  Value* rounded = b.CreateAdd(b.CreateSub(magnitude, b.getInt32(112u << 23)), b.CreateAdd(odd, b.getInt32(0xfff)));
  Value* normal = b.CreateLShr(rounded, 13);
  Value* sum = b.CreateFAdd(b.CreateBitCast(magnitude, b.getFloatTy()), emit.F32(0.5f));
  Value* subnormal = b.CreateSub(emit.Bits(sum), emit.Bits(emit.F32(0.5f)));
  Value* code = b.CreateSelect(b.CreateICmpULT(magnitude, b.getInt32(113u << 23)), subnormal, normal);
  code = b.CreateSelect(b.CreateICmpUGE(magnitude, b.getInt32((127u + 16) << 23)), b.getInt32(0x7c00), code);
  code = b.CreateOr(code, b.CreateAnd(b.CreateLShr(bits, 16), 0x8000));
  return b.CreateTrunc(code, b.getInt16Ty());
}

}  // namespace

// Error of a sum, exactly (Fast2Sum: the larger operand first). No intermediate overflows: all values come from f32.
Exact FloatEmitter::Sum(Value* a, Value* b, bool down) {
  Value* high = b_.CreateFAdd(a, b);
  Value* swap = b_.CreateFCmpOLT(Abs(a), Abs(b));
  Value* large = b_.CreateSelect(swap, b, a);
  Value* small = b_.CreateSelect(swap, a, b);
  Value* rest = b_.CreateFSub(small, b_.CreateFSub(high, large));
  if (down) {
    // Towards minus infinity an exact zero is -0 unless both operands are +0.
    Value* zero = b_.CreateFCmpOEQ(high, F64(0));
    Value* negative = b_.CreateICmpSLT(b_.CreateOr(Bits(a), Bits(b)), b_.getInt64(0));
    high = b_.CreateSelect(b_.CreateAnd(zero, negative), F64(-0.0), high);
  }
  return {high, rest};
}

Exact FloatEmitter::Add(Value* a, Value* b, bool down) { return Sum(Extended(b_, a), Extended(b_, b), down); }

Exact FloatEmitter::Mul(Value* a, Value* b) { return {b_.CreateFMul(Extended(b_, a), Extended(b_, b)), F64(0)}; }

Exact FloatEmitter::Fma(Value* a, Value* b, Value* c, bool down) {
  return Sum(b_.CreateFMul(Extended(b_, a), Extended(b_, b)), Extended(b_, c), down);
}

// The remainder a - q b is exact and has the sign of the rest times that of b.
Exact FloatEmitter::Div(Value* a, Value* b) {
  a = Extended(b_, a);
  b = Extended(b_, b);
  Value* high = b_.CreateFDiv(a, b);
  Value* remainder = FmaF(b_.CreateFNeg(high), b, a);
  Value* rest = b_.CreateSelect(b_.CreateFCmpOLT(b, F64(0)), b_.CreateFNeg(remainder), remainder);
  return {high, rest};
}

Exact FloatEmitter::Sqrt(Value* a) {
  a = Extended(b_, a);
  Value* high = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
  return {high, FmaF(b_.CreateFNeg(high), high, a)};
}

Value* FloatEmitter::Next(Value* x, bool up) { return b_.CreateBitCast(NextBits(Bits(x), up), x->getType()); }

Value* FloatEmitter::NextBits(Value* bits, bool up) {
  auto* type = bits->getType();
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* zero = llvm::Constant::getNullValue(type);
  Value* negative = b_.CreateICmpSLT(bits, zero);
  // Away from zero the magnitude grows by one, towards it it shrinks; a zero steps to the smallest number on that side.
  Value* grow = up ? b_.CreateNot(negative) : negative;
  Value* stepped = b_.CreateAdd(bits, b_.CreateSelect(grow, one, llvm::Constant::getAllOnesValue(type)));
  llvm::APInt smallest(type->getIntegerBitWidth(), 1);
  if (!up) smallest.setSignBit();
  Value* is_zero = b_.CreateICmpEQ(b_.CreateShl(bits, 1), zero);
  return b_.CreateSelect(is_zero, b_.getInt(smallest), stepped);
}

Value* FloatEmitter::RoundF64(Exact exact, Rounding rounding) {
  Value* zero = F64(0);
  Value* down = b_.CreateSelect(b_.CreateFCmpOLT(exact.rest, zero), Next(exact.high, false), exact.high);
  Value* up = b_.CreateSelect(b_.CreateFCmpOGT(exact.rest, zero), Next(exact.high, true), exact.high);
  switch (rounding) {
    case Rounding::kRm: return down;
    case Rounding::kRp: return up;
    case Rounding::kRz: return b_.CreateSelect(b_.CreateFCmpOLT(exact.high, zero), up, down);
    default: return exact.high;
  }
}

Value* FloatEmitter::Round(Exact exact, Rounding rounding) {
  Value* nearest = b_.CreateFPTrunc(exact.high, b_.getFloatTy());
  if (rounding == Rounding::kRn) return nearest;
  Value* back = Extended(b_, nearest);
  Value* zero = F64(0);
  Value* tie = b_.CreateFCmpOEQ(exact.high, back);
  Value* above = b_.CreateOr(b_.CreateFCmpOGT(exact.high, back), b_.CreateAnd(tie, b_.CreateFCmpOGT(exact.rest, zero)));
  Value* below = b_.CreateOr(b_.CreateFCmpOLT(exact.high, back), b_.CreateAnd(tie, b_.CreateFCmpOLT(exact.rest, zero)));
  Value* down = b_.CreateSelect(below, Next(nearest, false), nearest);
  if (rounding == Rounding::kRm) return down;
  Value* up = b_.CreateSelect(above, Next(nearest, true), nearest);
  if (rounding == Rounding::kRp) return up;
  Value* negative = b_.CreateICmpSLT(Bits(nearest), b_.getInt32(0));
  return b_.CreateSelect(negative, up, down);
}

Value* FloatEmitter::RoundToOdd(Exact exact) {
  Value* cut = Round(exact, Rounding::kRz);
  Value* same = b_.CreateAnd(b_.CreateFCmpUEQ(Extended(b_, cut), exact.high), b_.CreateFCmpUEQ(exact.rest, F64(0)));
  Value* odd = b_.CreateBitCast(b_.CreateOr(Bits(cut), b_.getInt32(1)), b_.getFloatTy());
  return b_.CreateSelect(same, cut, odd);
}

// Nearest sum and its error; where there is one and the last bit is 0, the neighbour on the error's side is the odd
// one.
Value* FloatEmitter::AddToOdd(Value* a, Value* b) {
  Value* sum = b_.CreateFAdd(a, b);
  Value* swap = b_.CreateFCmpOLT(Abs(a), Abs(b));
  Value* large = b_.CreateSelect(swap, b, a);
  Value* small = b_.CreateSelect(swap, a, b);
  Value* error = b_.CreateFSub(small, b_.CreateFSub(sum, large));
  Value* bits = Bits(sum);
  Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, 1), b_.getInt32(0));
  Value* inexact = b_.CreateFCmpONE(error, F32(0));
  Value* away = b_.CreateICmpSGE(b_.CreateXor(Bits(error), bits), b_.getInt32(0));
  Value* stepped = b_.CreateAdd(bits, b_.CreateSelect(away, b_.getInt32(1), b_.getInt32(~0u)));
  return b_.CreateSelect(b_.CreateAnd(even, inexact), b_.CreateBitCast(stepped, b_.getFloatTy()), sum);
}

Value* FloatEmitter::Flush(Value* x) {
  if (x->getType()->isFloatTy()) return MarkFlush(b_, x);
  Value* zero = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, F64(0), x);
  return b_.CreateSelect(b_.CreateFCmpOLT(Abs(x), F64(0x1p-1022)), zero, x);
}

Value* FloatEmitter::Saturate(Value* x) {
  Value* zero = llvm::ConstantFP::get(x->getType(), 0.0);
  Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  Value* capped = b_.CreateSelect(b_.CreateFCmpOLT(x, one), x, one);
  return b_.CreateSelect(b_.CreateFCmpOGT(x, zero), capped, zero);
}

Value* FloatEmitter::MinMax(Value* a, Value* b, bool max, bool propagate) {
  llvm::Type* type = a->getType();
  Value* first = max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
  Value* chosen = b_.CreateSelect(first, a, b);
  // Equal operands differ at most in the sign of zero: `or` keeps a minus, `and` drops it.
  Value* merged = b_.CreateBitCast(max ? b_.CreateAnd(Bits(a), Bits(b)) : b_.CreateOr(Bits(a), Bits(b)), type);
  chosen = b_.CreateSelect(b_.CreateFCmpOEQ(a, b), merged, chosen);
  const unsigned width = type->getScalarSizeInBits();
  Value* nan = width == 32 ? static_cast<Value*>(b_.getInt32(0x7fffffff))
                           : b_.CreateOr(Bits(b), b_.getInt64(std::uint64_t{1} << 51));
  Value* canonical = b_.CreateBitCast(nan, type);
  if (propagate) return b_.CreateSelect(b_.CreateFCmpUNO(a, b), canonical, chosen);
  chosen = b_.CreateSelect(IsNaN(b), a, chosen);
  return b_.CreateSelect(b_.CreateAnd(IsNaN(a), IsNaN(b)), canonical, chosen);
}

// |x| + 2^p - 2^p rounds |x| to an integer where it has a fraction at all; the other directions correct that by one.
Value* FloatEmitter::RoundNearest(Value* x) {
  if (!portable_) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::rint, x);
  Value* magic = llvm::ConstantFP::get(x->getType(), x->getType()->isFloatTy() ? 0x1p23 : 0x1p52);
  Value* magnitude = Abs(x);
  Value* rounded = b_.CreateFSub(b_.CreateFAdd(magnitude, magic), magic);
  rounded = b_.CreateSelect(b_.CreateFCmpULT(magnitude, magic), rounded, magnitude);  // makes a NaN quiet
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rounded, x);
}

Value* FloatEmitter::Truncate(Value* x) {
  if (!portable_) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, Floor(Abs(x)), x);
}

Value* FloatEmitter::Floor(Value* x) {
  if (!portable_) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  Value* rounded = RoundNearest(x);
  Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  return b_.CreateSelect(b_.CreateFCmpOGT(rounded, x), b_.CreateFSub(rounded, one), rounded);
}

Value* FloatEmitter::Ceil(Value* x) {
  if (!portable_) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
  return b_.CreateFNeg(Floor(b_.CreateFNeg(x)));
}

Value* FloatEmitter::HalfToFloat(Value* half) {
  if (portable_) return HalfToFloatPortable(*this, b_, half);
  return b_.CreateFPExt(b_.CreateBitCast(half, b_.getHalfTy()), b_.getFloatTy());
}

Value* FloatEmitter::FloatToHalf(Value* x) {
  if (portable_) return b_.CreateSelect(IsNaN(x), b_.getInt16(0x7fff), FloatToHalfPortable(*this, b_, x));
  Value* half = b_.CreateBitCast(b_.CreateFPTrunc(x, b_.getHalfTy()), b_.getInt16Ty());
  return b_.CreateSelect(IsNaN(x), b_.getInt16(0x7fff), half);
}

Value* FloatEmitter::BFloatToFloat(Value* bfloat) {
  return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(bfloat, b_.getInt32Ty()), 16), b_.getFloatTy());
}

Value* FloatEmitter::FloatToBFloat(Value* x) {
  Value* bits = Bits(x);
  Value* ulp = b_.CreateAnd(b_.CreateLShr(bits, 16), 1);
  Value* rounded = b_.CreateAdd(bits, b_.CreateAdd(ulp, b_.getInt32(0x7fff)));
  Value* high = b_.CreateTrunc(b_.CreateLShr(rounded, 16), b_.getInt16Ty());
  return b_.CreateSelect(IsNaN(x), b_.getInt16(0x7fff), high);
}

}  // namespace gridloom::exec
