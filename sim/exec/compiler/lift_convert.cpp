// cvt between integers, f16, bf16, f32 and f64 (PTX ISA, 9.7.9.21). Formats of 8 bits and less, tf32 and packed results
// are in lift_convert_packed.cpp.
#include <algorithm>
#include <cmath>

#include "sim/exec/compiler/lift_nan.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {
namespace {

bool IsOneHalf(ScalarType type) { return type == ScalarType::kF16; }
bool IsOneBFloat(ScalarType type) { return type == ScalarType::kBF16; }

enum class Integral : std::uint8_t { kNo, kNearest, kZero, kDown, kUp };

Integral IntegralOf(const Instruction& inst) {
  if (inst.Has(Mod::kRni)) return Integral::kNearest;
  if (inst.Has(Mod::kRzi)) return Integral::kZero;
  if (inst.Has(Mod::kRmi)) return Integral::kDown;
  if (inst.Has(Mod::kRpi)) return Integral::kUp;
  return Integral::kNo;
}

}  // namespace

template <>
void FunctionLifter::Lift<semantic::Cvt>(const Instruction& inst) {
  const ScalarType to = inst.type(0), from = inst.type(1);
  auto simple = [](ScalarType type) {
    return ptx::IsInteger(type)
               ? ptx::BitsOf(type) >= 8 && ptx::BitsOf(type) <= 64 && ptx::Info(type).lanes == 1
               : IsOneHalf(type) || IsOneBFloat(type) || type == ScalarType::kF32 || type == ScalarType::kF64;
  };
  if (!simple(to) || !simple(from) || OpCount() != 2) return LiftCvtPacked(inst);
  Value* source = Read(Op(1), from);
  Value* result = nullptr;
  if (ptx::IsInteger(from)) {
    result = ptx::IsInteger(to) ? IntToInt(inst, source, from, to) : IntToFloat(inst, source, from, to);
  } else {
    result = ptx::IsInteger(to) ? FloatToInt(inst, source, from, to) : FloatToFloat(inst, source, from, to);
  }
  Write(Op(0), result, to);
}

// Cuts or extends as the source type says; .sat clamps to the range of the destination type.
Value* FunctionLifter::IntToInt(const Instruction& inst, Value* source, ScalarType from, ScalarType to) {
  if (inst.Has(Mod::kSat)) {
    // In a type wide enough for both, signed.
    auto* wide = b_.getIntNTy(128);
    const unsigned bits = ptx::BitsOf(to);
    Value* value = ptx::BitsOf(from) < 64 && bits < 64 ? Resize(source, b_.getInt64Ty(), ptx::IsSigned(from))
                                                       : Resize(source, wide, ptx::IsSigned(from));
    const unsigned width = value->getType()->getIntegerBitWidth();
    const llvm::APInt low =
        ptx::IsSigned(to) ? llvm::APInt::getSignedMinValue(bits).sext(width) : llvm::APInt(width, 0);
    const llvm::APInt high = ptx::IsSigned(to) ? llvm::APInt::getSignedMaxValue(bits).sext(width)
                                               : llvm::APInt::getMaxValue(bits).zext(width);
    value = MinMax(MinMax(value, b_.getInt(low), true, true), b_.getInt(high), true, false);
    return Resize(value, TypeOf(to), false);
  }
  return Resize(source, TypeOf(to), ptx::IsSigned(from));
}

// An integer of up to 64 bits as an f64 and a rest.
Exact FunctionLifter::ExactInt(Value* source, ScalarType from) {
  const bool is_signed = ptx::IsSigned(from);
  auto* f64 = b_.getDoubleTy();
  if (ptx::BitsOf(from) <= 32) {
    return {is_signed ? b_.CreateSIToFP(source, f64) : b_.CreateUIToFP(source, f64), llvm::ConstantFP::get(f64, 0.0)};
  }
  Value* upper = is_signed ? b_.CreateAShr(source, 32) : b_.CreateLShr(source, 32);
  Value* upper32 = b_.CreateTrunc(upper, b_.getInt32Ty());
  Value* high = is_signed ? b_.CreateSIToFP(upper32, f64) : b_.CreateUIToFP(upper32, f64);
  high = b_.CreateFMul(high, llvm::ConstantFP::get(f64, 0x1p32));
  Value* low = b_.CreateUIToFP(b_.CreateTrunc(source, b_.getInt32Ty()), f64);
  // |high| >= low or high is 0: the error of the sum is exact.
  Value* sum = b_.CreateFAdd(high, low);
  return {sum, b_.CreateFSub(low, b_.CreateFSub(sum, high))};
}

// .sat clamps what was rounded to [0, 1].
Value* FunctionLifter::IntToFloat(const Instruction& inst, Value* source, ScalarType from, ScalarType to) {
  const Rounding rounding = RoundingOf(inst);
  const bool exact_in_f64 = to == ScalarType::kF64 && ptx::BitsOf(from) < 64;
  Value* result = nullptr;
  if (exact_in_f64 || (rounding == Rounding::kRn && (to == ScalarType::kF32 || to == ScalarType::kF64))) {
    result = ptx::IsSigned(from) ? b_.CreateSIToFP(source, TypeOf(to)) : b_.CreateUIToFP(source, TypeOf(to));
  } else {
    const Exact exact = ExactInt(source, from);
    if (to == ScalarType::kF64) {
      result = emit_.RoundF64(exact, rounding);
    } else if (to == ScalarType::kF32) {
      result = emit_.Round(exact, rounding);
    } else {
      result = RoundToHalf(emit_.RoundToOdd(exact), to, rounding);
    }
  }
  if (!inst.Has(Mod::kSat)) return result;
  if (to == ScalarType::kF32 || to == ScalarType::kF64) return emit_.Saturate(result);
  return RoundToHalf(emit_.Saturate(HalfToFloat(result, to)), to, Rounding::kRn);
}

Value* FunctionLifter::HalfToFloat(Value* half, ScalarType type) {
  return IsOneBFloat(type) ? emit_.BFloatToFloat(half) : emit_.HalfToFloat(half);
}

// f32 (rounded to odd if it was not exact) -> f16 or bf16 in a given direction.
Value* FunctionLifter::RoundToHalf(Value* x, ScalarType type, Rounding rounding) {
  Value* nearest = IsOneBFloat(type) ? emit_.FloatToBFloat(x) : emit_.FloatToHalf(x);
  if (rounding == Rounding::kRn) return nearest;
  Value* back = HalfToFloat(nearest, type);
  Value* down = b_.CreateSelect(b_.CreateFCmpOLT(x, back), emit_.NextBits(nearest, false), nearest);
  Value* up = b_.CreateSelect(b_.CreateFCmpOGT(x, back), emit_.NextBits(nearest, true), nearest);
  if (rounding == Rounding::kRm) return down;
  if (rounding == Rounding::kRp) return up;
  Value* negative = b_.CreateICmpSLT(nearest, b_.getInt16(0));
  return b_.CreateSelect(negative, up, down);
}

Value* FunctionLifter::FloatToFloat(const Instruction& inst, Value* x, ScalarType from, ScalarType to) {
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  if (IsOneHalf(from) || IsOneBFloat(from)) x = HalfToFloat(x, from);
  if (ftz && from == ScalarType::kF32) x = emit_.Flush(x);
  switch (IntegralOf(inst)) {
    case Integral::kNo: break;
    case Integral::kNearest: x = emit_.RoundNearest(x); break;
    case Integral::kZero: x = emit_.Truncate(x); break;
    case Integral::kDown: x = emit_.Floor(x); break;
    case Integral::kUp: x = emit_.Ceil(x); break;
  }
  if (inst.Has(Mod::kSat)) x = emit_.Saturate(x);
  if (inst.Has(Mod::kRelu)) x = emit_.MinMax(x, llvm::ConstantFP::get(x->getType(), 0.0), true, true);
  const bool from_double = x->getType()->isDoubleTy();
  const Exact exact{x, llvm::ConstantFP::get(x->getType(), 0.0)};
  if (to == ScalarType::kF64 || to == ScalarType::kF32) {
    if (to == ScalarType::kF32 && from_double) x = emit_.Round(exact, rounding);
    // Without an instruction for it, an f16 is widened by integers, which no pass takes for arithmetic (lift_nan.h). So
    // is a bf16, whose NaN a GPU keeps in f32 (a shift) and ptxas makes anew in f64.
    const bool by_integers =
        (IsOneHalf(from) && module_.options().cpu == "x86-64") || (IsOneBFloat(from) && to == ScalarType::kF64);
    if (by_integers) x = b_.CreateSelect(emit_.IsNaN(x), emit_.FromBits32(0x7fffffff), x);
    if (to == ScalarType::kF32) return ftz ? emit_.Flush(x) : x;
    if (from_double) return x;
    Value* wide = b_.CreateFPExt(x, b_.getDoubleTy());
    MarkConversion(wide);
    return wide;
  }
  if (from_double) x = emit_.RoundToOdd(exact);
  Value* result = RoundToHalf(x, to, rounding);
  return inst.Has(Mod::kSatfinite) ? SaturateHalf(result, to) : result;
}

// .satfinite: an infinity becomes the largest finite number, NaN the canonical one.
Value* FunctionLifter::SaturateHalf(Value* half, ScalarType type) {
  const std::uint16_t infinity = IsOneBFloat(type) ? 0x7f80 : 0x7c00;
  Value* is_infinite = b_.CreateICmpEQ(b_.CreateAnd(half, 0x7fff), b_.getInt16(infinity));
  return b_.CreateSelect(is_infinite, b_.CreateSub(half, b_.getInt16(1)), half);
}

// Rounds to integral, clamps to the destination's range. NaN: 0, but the most negative number (as bits) when the source
// is f64 or the destination has 64 bits.
Value* FunctionLifter::FloatToInt(const Instruction& inst, Value* x, ScalarType from, ScalarType to) {
  if (IsOneHalf(from) || IsOneBFloat(from)) x = HalfToFloat(x, from);
  if (inst.Has(Mod::kFtz) && from == ScalarType::kF32) x = emit_.Flush(x);
  switch (IntegralOf(inst)) {
    case Integral::kNearest: x = emit_.RoundNearest(x); break;
    case Integral::kDown: x = emit_.Floor(x); break;
    case Integral::kUp: x = emit_.Ceil(x); break;
    case Integral::kZero:
    case Integral::kNo: break;  // the conversion truncates
  }
  const bool is_signed = ptx::IsSigned(to);
  const unsigned bits = ptx::BitsOf(to);
  auto* type = b_.getIntNTy(std::max(bits, 32u));
  const llvm::APInt low = is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0);
  const llvm::APInt high = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  const double beyond = std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0));
  Value* upper = llvm::ConstantFP::get(x->getType(), beyond);
  Value* lower = llvm::ConstantFP::get(x->getType(), is_signed ? -beyond : 0.0);
  Value* too_high = b_.CreateFCmpOGE(x, upper);
  Value* too_low = b_.CreateFCmpOLT(x, lower);
  Value* inside = b_.CreateAnd(b_.CreateFCmpOGE(x, lower), b_.CreateFCmpOLT(x, upper));
  Value* safe = b_.CreateSelect(inside, x, llvm::ConstantFP::get(x->getType(), 0.0));
  Value* value = is_signed ? b_.CreateFPToSI(safe, type) : b_.CreateFPToUI(safe, type);
  auto constant = [&](const llvm::APInt& number) {
    return b_.getInt(is_signed ? number.sext(type->getBitWidth()) : number.zext(type->getBitWidth()));
  };
  value = b_.CreateSelect(too_high, constant(high), value);
  value = b_.CreateSelect(too_low, constant(low), value);
  if (from == ScalarType::kF64 || bits == 64) {
    value = b_.CreateSelect(emit_.IsNaN(x), b_.getInt(llvm::APInt::getSignMask(bits).zext(type->getBitWidth())), value);
  }
  return Resize(value, TypeOf(to), false);
}

}  // namespace gridloom::exec
