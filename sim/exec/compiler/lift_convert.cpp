// cvt between integers, f16, bf16, f32 and f64 (PTX ISA, 9.7.9.21). Formats of 8 bits and less, tf32 and packed results
// are in lift_convert_packed.cpp.
#include <algorithm>
#include <cmath>

#include "sim/exec/compiler/lift_nan.h"
#include "sim/exec/compiler/lift_parts.h"
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

// Cuts or extends as the source type says; .sat clamps to the range of the destination type.
Value* IntToInt(Lifter& l, const Instruction& inst, Value* source, ScalarType from, ScalarType to) {
  if (inst.Has(Mod::kSat)) {
    // In a type wide enough for both, signed.
    auto* wide = l.b.getIntNTy(128);
    const unsigned bits = ptx::BitsOf(to);
    Value* value = ptx::BitsOf(from) < 64 && bits < 64 ? l.Resize(source, l.b.getInt64Ty(), ptx::IsSigned(from))
                                                       : l.Resize(source, wide, ptx::IsSigned(from));
    const unsigned width = value->getType()->getIntegerBitWidth();
    const llvm::APInt low =
        ptx::IsSigned(to) ? llvm::APInt::getSignedMinValue(bits).sext(width) : llvm::APInt(width, 0);
    const llvm::APInt high = ptx::IsSigned(to) ? llvm::APInt::getSignedMaxValue(bits).sext(width)
                                               : llvm::APInt::getMaxValue(bits).zext(width);
    value = MinMax(l, MinMax(l, value, l.b.getInt(low), true, true), l.b.getInt(high), true, false);
    return l.Resize(value, l.TypeOf(to), false);
  }
  return l.Resize(source, l.TypeOf(to), ptx::IsSigned(from));
}

// An integer of up to 64 bits as an f64 and a rest.
Exact ExactInt(Lifter& l, Value* source, ScalarType from) {
  const bool is_signed = ptx::IsSigned(from);
  auto* f64 = l.b.getDoubleTy();
  if (ptx::BitsOf(from) <= 32) {
    return {is_signed ? l.b.CreateSIToFP(source, f64) : l.b.CreateUIToFP(source, f64), llvm::ConstantFP::get(f64, 0.0)};
  }
  Value* upper = is_signed ? l.b.CreateAShr(source, 32) : l.b.CreateLShr(source, 32);
  Value* upper32 = l.b.CreateTrunc(upper, l.b.getInt32Ty());
  Value* high = is_signed ? l.b.CreateSIToFP(upper32, f64) : l.b.CreateUIToFP(upper32, f64);
  high = l.b.CreateFMul(high, llvm::ConstantFP::get(f64, 0x1p32));
  Value* low = l.b.CreateUIToFP(l.b.CreateTrunc(source, l.b.getInt32Ty()), f64);
  // |high| >= low or high is 0: the error of the sum is exact.
  Value* sum = l.b.CreateFAdd(high, low);
  return {sum, l.b.CreateFSub(low, l.b.CreateFSub(sum, high))};
}

// .sat clamps what was rounded to [0, 1].
Value* IntToFloat(Lifter& l, const Instruction& inst, Value* source, ScalarType from, ScalarType to) {
  const Rounding rounding = RoundingOf(inst);
  const bool exact_in_f64 = to == ScalarType::kF64 && ptx::BitsOf(from) < 64;
  Value* result = nullptr;
  if (exact_in_f64 || (rounding == Rounding::kRn && (to == ScalarType::kF32 || to == ScalarType::kF64))) {
    result = ptx::IsSigned(from) ? l.b.CreateSIToFP(source, l.TypeOf(to)) : l.b.CreateUIToFP(source, l.TypeOf(to));
  } else {
    const Exact exact = ExactInt(l, source, from);
    if (to == ScalarType::kF64) {
      result = l.emit.RoundF64(exact, rounding);
    } else if (to == ScalarType::kF32) {
      result = l.emit.Round(exact, rounding);
    } else {
      result = RoundToHalf(l, l.emit.RoundToOdd(exact), to, rounding);
    }
  }
  if (!inst.Has(Mod::kSat)) return result;
  if (to == ScalarType::kF32 || to == ScalarType::kF64) return l.emit.Saturate(result);
  return RoundToHalf(l, l.emit.Saturate(HalfToFloat(l, result, to)), to, Rounding::kRn);
}

// Rounds to integral, clamps to the destination's range. NaN: 0, but the most negative number (as bits) when the source
// is f64 or the destination has 64 bits.
Value* FloatToInt(Lifter& l, const Instruction& inst, Value* x, ScalarType from, ScalarType to) {
  if (IsOneHalf(from) || IsOneBFloat(from)) x = HalfToFloat(l, x, from);
  if (inst.Has(Mod::kFtz) && from == ScalarType::kF32) x = l.emit.Flush(x);
  switch (IntegralOf(inst)) {
    case Integral::kNearest: x = l.emit.RoundNearest(x); break;
    case Integral::kDown: x = l.emit.Floor(x); break;
    case Integral::kUp: x = l.emit.Ceil(x); break;
    case Integral::kZero:
    case Integral::kNo: break;  // the conversion truncates
  }
  const bool is_signed = ptx::IsSigned(to);
  const unsigned bits = ptx::BitsOf(to);
  auto* type = l.b.getIntNTy(std::max(bits, 32u));
  const llvm::APInt low = is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0);
  const llvm::APInt high = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  const double beyond = std::ldexp(1.0, static_cast<int>(bits) - (is_signed ? 1 : 0));
  Value* upper = llvm::ConstantFP::get(x->getType(), beyond);
  Value* lower = llvm::ConstantFP::get(x->getType(), is_signed ? -beyond : 0.0);
  Value* too_high = l.b.CreateFCmpOGE(x, upper);
  Value* too_low = l.b.CreateFCmpOLT(x, lower);
  Value* inside = l.b.CreateAnd(l.b.CreateFCmpOGE(x, lower), l.b.CreateFCmpOLT(x, upper));
  Value* safe = l.b.CreateSelect(inside, x, llvm::ConstantFP::get(x->getType(), 0.0));
  Value* value = is_signed ? l.b.CreateFPToSI(safe, type) : l.b.CreateFPToUI(safe, type);
  auto constant = [&](const llvm::APInt& number) {
    return l.b.getInt(is_signed ? number.sext(type->getBitWidth()) : number.zext(type->getBitWidth()));
  };
  value = l.b.CreateSelect(too_high, constant(high), value);
  value = l.b.CreateSelect(too_low, constant(low), value);
  if (from == ScalarType::kF64 || bits == 64) {
    value =
        l.b.CreateSelect(l.emit.IsNaN(x), l.b.getInt(llvm::APInt::getSignMask(bits).zext(type->getBitWidth())), value);
  }
  return l.Resize(value, l.TypeOf(to), false);
}

Value* FloatToFloat(Lifter& l, const Instruction& inst, Value* x, ScalarType from, ScalarType to) {
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  if (IsOneHalf(from) || IsOneBFloat(from)) x = HalfToFloat(l, x, from);
  if (ftz && from == ScalarType::kF32) x = l.emit.Flush(x);
  switch (IntegralOf(inst)) {
    case Integral::kNo: break;
    case Integral::kNearest: x = l.emit.RoundNearest(x); break;
    case Integral::kZero: x = l.emit.Truncate(x); break;
    case Integral::kDown: x = l.emit.Floor(x); break;
    case Integral::kUp: x = l.emit.Ceil(x); break;
  }
  if (inst.Has(Mod::kSat)) x = l.emit.Saturate(x);
  if (inst.Has(Mod::kRelu)) x = l.emit.MinMax(x, llvm::ConstantFP::get(x->getType(), 0.0), true, true);
  const bool from_double = x->getType()->isDoubleTy();
  const Exact exact{x, llvm::ConstantFP::get(x->getType(), 0.0)};
  if (to == ScalarType::kF64 || to == ScalarType::kF32) {
    if (to == ScalarType::kF32 && from_double) x = l.emit.Round(exact, rounding);
    // Without an instruction for it, an f16 is widened by integers, which no pass takes for arithmetic (lift_nan.h). So
    // is a bf16, whose NaN a GPU keeps in f32 (a shift) and ptxas makes anew in f64.
    const bool by_integers =
        (IsOneHalf(from) && l.module.options().cpu == "x86-64") || (IsOneBFloat(from) && to == ScalarType::kF64);
    if (by_integers) x = l.b.CreateSelect(l.emit.IsNaN(x), l.emit.FromBits32(0x7fffffff), x);
    if (to == ScalarType::kF32) return ftz ? l.emit.Flush(x) : x;
    if (from_double) return x;
    Value* wide = l.b.CreateFPExt(x, l.b.getDoubleTy());
    MarkConversion(wide);
    return wide;
  }
  if (from_double) x = l.emit.RoundToOdd(exact);
  Value* result = RoundToHalf(l, x, to, rounding);
  return inst.Has(Mod::kSatfinite) ? SaturateHalf(l, result, to) : result;
}

}  // namespace

template <>
void Lift<semantic::Cvt>(Lifter& l, const Instruction& inst) {
  const ScalarType to = inst.type(0), from = inst.type(1);
  auto simple = [](ScalarType type) {
    return ptx::IsInteger(type)
               ? ptx::BitsOf(type) >= 8 && ptx::BitsOf(type) <= 64 && ptx::Info(type).lanes == 1
               : IsOneHalf(type) || IsOneBFloat(type) || type == ScalarType::kF32 || type == ScalarType::kF64;
  };
  if (!simple(to) || !simple(from) || l.OpCount() != 2) return LiftCvtPacked(l, inst);
  Value* source = l.Read(l.Op(1), from);
  Value* result = nullptr;
  if (ptx::IsInteger(from)) {
    result = ptx::IsInteger(to) ? IntToInt(l, inst, source, from, to) : IntToFloat(l, inst, source, from, to);
  } else {
    result = ptx::IsInteger(to) ? FloatToInt(l, inst, source, from, to) : FloatToFloat(l, inst, source, from, to);
  }
  l.Write(l.Op(0), result, to);
}

Value* HalfToFloat(Lifter& l, Value* half, ScalarType type) {
  return IsOneBFloat(type) ? l.emit.BFloatToFloat(half) : l.emit.HalfToFloat(half);
}

// f32 (rounded to odd if it was not exact) -> f16 or bf16 in a given direction.
Value* RoundToHalf(Lifter& l, Value* x, ScalarType type, Rounding rounding) {
  Value* nearest = IsOneBFloat(type) ? l.emit.FloatToBFloat(x) : l.emit.FloatToHalf(x);
  if (rounding == Rounding::kRn) return nearest;
  Value* back = HalfToFloat(l, nearest, type);
  Value* down = l.b.CreateSelect(l.b.CreateFCmpOLT(x, back), l.emit.NextBits(nearest, false), nearest);
  Value* up = l.b.CreateSelect(l.b.CreateFCmpOGT(x, back), l.emit.NextBits(nearest, true), nearest);
  if (rounding == Rounding::kRm) return down;
  if (rounding == Rounding::kRp) return up;
  Value* negative = l.b.CreateICmpSLT(nearest, l.b.getInt16(0));
  return l.b.CreateSelect(negative, up, down);
}

// .satfinite: an infinity becomes the largest finite number, NaN the canonical one.
Value* SaturateHalf(Lifter& l, Value* half, ScalarType type) {
  const std::uint16_t infinity = IsOneBFloat(type) ? 0x7f80 : 0x7c00;
  Value* is_infinite = l.b.CreateICmpEQ(l.b.CreateAnd(half, 0x7fff), l.b.getInt16(infinity));
  return l.b.CreateSelect(is_infinite, l.b.CreateSub(half, l.b.getInt16(1)), half);
}

}  // namespace gridloom::exec
