// Floating-point arithmetic (PTX ISA, 9.7.3 to 9.7.5), lane by lane (float_lanes.h).
#include "sim/exec/compiler/float_approx.h"
#include "sim/exec/compiler/lift_fuse.h"
#include "sim/exec/compiler/lift_nan.h"
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

FloatModifiers ModifiersOf(const Instruction& inst) {
  return {.ftz = inst.Has(Mod::kFtz), .sat = inst.Has(Mod::kSat), .relu = inst.Has(Mod::kRelu)};
}

// "An add instruction with an explicit rounding modifier is treated conservatively by the code optimizer" (ISA, add;
// sub and mul say the same).
bool SaysRounding(const Instruction& inst) {
  return inst.Has(Mod::kRn) || inst.Has(Mod::kRz) || inst.Has(Mod::kRm) || inst.Has(Mod::kRp);
}

}  // namespace

Value* Flush(Lifter& l, Value* x) { return l.emit.Flush(x); }

namespace {

void WriteFloatLanes(Lifter& l, const Instruction& inst, std::vector<Value*> lanes, ScalarType type) {
  l.Write(l.Op(0), l.lanes.Pack(std::move(lanes), type, ModifiersOf(inst), l.TypeOf(type)), type);
}

// f64 results other than to nearest: exactly, by instructions with a rounding mode of their own (warp_rounded.cpp) or a
// helper that sets the host's for itself.
Value* RoundedF64(Lifter& l, F64Op op, Rounding rounding, Value* a, Value* b, Value* c) {
  Value* zero = llvm::ConstantFP::get(l.b.getDoubleTy(), 0.0);
  return l.b.CallHelper(Helper::kF64Rounded, {l.b.getDoubleTy()}, {a, b ? b : zero, c ? c : zero},
                        F64Imm(op, static_cast<F64Rounding>(rounding)));
}

}  // namespace

// add, sub, mul. Mixed precision (add.f32.f16 d, a, c) reads its first operand in the second type.
void LiftFloatArithmetic(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  if (IsFourNarrow(type)) return LiftFourNarrow(l, inst);
  const ScalarType first = inst.type(1) == ScalarType::kNone ? type : inst.type(1);
  if (first == type && !SaysRounding(inst)) {
    const FloatOperation operation{.opcode = inst.opcode, .type = type, .modifiers = ModifiersOf(inst)};
    Value* left = l.Read(l.Op(1), type);
    return l.Write(l.Op(0), MarkFloat(l.b, operation, {left, l.Read(l.Op(2), type)}), type);
  }
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  const std::vector<Value*> a = l.ReadFloatLanes(l.Op(1), first, ftz);
  const std::vector<Value*> b = l.ReadFloatLanes(l.Op(2), type, ftz);
  std::vector<Value*> results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool mul = inst.opcode == Opcode::kMul;
    Value* y = inst.opcode == Opcode::kSub ? l.b.CreateFNeg(b[i]) : b[i];
    if (rounding == Rounding::kRn) {
      results.push_back(mul                           ? l.b.CreateFMul(a[i], y)
                        : inst.opcode == Opcode::kSub ? l.b.CreateFSub(a[i], b[i])
                                                      : l.b.CreateFAdd(a[i], y));
    } else if (type == ScalarType::kF64) {
      results.push_back(RoundedF64(l, mul ? F64Op::kMul : F64Op::kAdd, rounding, a[i], y, nullptr));
    } else {
      results.push_back(
          l.emit.Round(mul ? l.emit.Mul(a[i], y) : l.emit.Add(a[i], y, rounding == Rounding::kRm), rounding));
    }
  }
  WriteFloatLanes(l, inst, results, type);
}

// fma, and mad of the floating types, which is the same.
template <>
void Lift<semantic::Fma>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  if (IsFourNarrow(type)) return LiftFourNarrow(l, inst);
  const ScalarType factor = inst.type(1) == ScalarType::kNone ? type : inst.type(1);
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  const std::vector<Value*> a = l.ReadFloatLanes(l.Op(1), factor, ftz);
  const std::vector<Value*> b = l.ReadFloatLanes(l.Op(2), factor, ftz);
  const std::vector<Value*> c = l.ReadFloatLanes(l.Op(3), type, ftz);
  std::vector<Value*> results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (rounding == Rounding::kRn) {
      results.push_back(l.lanes.Fma(type, a[i], b[i], c[i]));
    } else if (type == ScalarType::kF64) {
      results.push_back(RoundedF64(l, F64Op::kFma, rounding, a[i], b[i], c[i]));
    } else {
      results.push_back(l.emit.Round(l.emit.Fma(a[i], b[i], c[i], rounding == Rounding::kRm), rounding));
    }
  }
  WriteFloatLanes(l, inst, results, type);
}

// div.approx, .full and the rounded ones: all divide as IEEE does.
void LiftFloatDivide(Lifter& l, const Instruction& inst) {
  if (SaysRounding(inst)) MarkBranches(l.b);
  const ScalarType type = inst.type();
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  Value* a = l.ReadFloatLanes(l.Op(1), type, ftz)[0];
  Value* b = l.ReadFloatLanes(l.Op(2), type, ftz)[0];
  Value* result = nullptr;
  if (rounding == Rounding::kRn) {
    result = l.b.CreateFDiv(a, b);
  } else if (type == ScalarType::kF64) {
    result = RoundedF64(l, F64Op::kDiv, rounding, a, b, nullptr);
  } else {
    result = l.emit.Round(l.emit.Div(a, b), rounding);
  }
  if (inst.Has(Mod::kApprox)) {
    // "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 returns NaN, otherwise returns 0" (ISA, div).
    Value* huge = l.b.CreateFCmpOGT(l.emit.Abs(b), l.emit.F32(0x1p126f));
    Value* zero = l.b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, l.emit.F32(0), b);
    result = l.b.CreateSelect(huge, l.b.CreateFMul(a, zero), result);
  }
  WriteFloatLanes(l, inst, {result}, type);
}

void LiftFloatMinMax(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool ftz = inst.Has(Mod::kFtz), xorsign = inst.Has(Mod::kXorsign);
  std::vector<std::vector<Value*>> sources;
  for (std::size_t i = 1; i < l.OpCount(); ++i) sources.push_back(l.ReadFloatLanes(l.Op(i), type, ftz));
  std::vector<Value*> results = sources[0];
  for (std::size_t lane = 0; lane < results.size(); ++lane) {
    Value* sign = nullptr;
    for (std::vector<Value*>& source : sources) {
      if (xorsign) sign = sign ? l.b.CreateXor(sign, l.emit.Bits(source[lane])) : l.emit.Bits(source[lane]);
      if (inst.Has(Mod::kAbs)) source[lane] = l.emit.Abs(source[lane]);
    }
    Value* result = sources[0][lane];
    for (std::size_t i = 1; i < sources.size(); ++i) {
      result = l.emit.MinMax(result, sources[i][lane], inst.opcode == Opcode::kMax, inst.Has(Mod::kNaN));
    }
    if (xorsign) {
      Value* signed_result =
          l.b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, l.b.CreateBitCast(sign, result->getType()));
      result = l.b.CreateSelect(l.emit.IsNaN(result), result, signed_result);
    }
    results[lane] = result;
  }
  WriteFloatLanes(l, inst, results, type);
}

namespace {

// abs and neg change the sign bit only, of NaNs too; .ftz flushes.
void LiftSign(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* x = l.Read(l.Op(1), type);
  if (inst.opcode == Opcode::kAbs) return l.Write(l.Op(0), l.lanes.Absolute(x, type, inst.Has(Mod::kFtz)), type);
  l.Write(l.Op(0),
          MarkFloat(l.b, {.opcode = Opcode::kNeg, .type = type, .modifiers = {.ftz = inst.Has(Mod::kFtz)}}, {x}), type);
}

}  // namespace

// testp: zeros count as normal numbers.
template <>
void Lift<semantic::Testp>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* x = l.Read(l.Op(1), type);
  Value* magnitude = l.emit.Abs(x);
  const bool single = type == ScalarType::kF32;
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* smallest = single ? l.emit.F32(0x1p-126f) : l.emit.F64(0x1p-1022);
  Value* zero = llvm::ConstantFP::get(x->getType(), 0.0);
  Value* subnormal = l.b.CreateAnd(l.b.CreateFCmpOLT(magnitude, smallest), l.b.CreateFCmpONE(x, zero));
  Value* finite = l.b.CreateFCmpOLT(magnitude, infinity);
  Value* result = nullptr;
  if (inst.Has(Mod::kFinite)) result = finite;
  if (inst.Has(Mod::kInfinite)) result = l.b.CreateFCmpOEQ(magnitude, infinity);
  if (inst.Has(Mod::kNumber)) result = l.b.CreateFCmpORD(x, x);
  if (inst.Has(Mod::kNotanumber)) result = l.emit.IsNaN(x);
  if (inst.Has(Mod::kNormal)) result = l.b.CreateAnd(finite, l.b.CreateNot(subnormal));
  if (inst.Has(Mod::kSubnormal)) result = subnormal;
  if (!result) l.RefuseInstruction("has no known test");
  l.Write(l.Op(0), result, ScalarType::kPred);
}

// copysign d, a, b: the value of b with the sign of a. ptxas makes an operation on bits of it, which a NaN keeps.
template <>
void Lift<semantic::Copysign>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const auto bits = [&](const ptx::Operand& operand) {
    Value* cast = l.emit.Bits(l.Read(operand, type));
    MarkRegisterCast(cast);
    return cast;
  };
  const auto sign = llvm::APInt::getSignMask(ptx::BitsOf(type));
  Value* result =
      l.b.CreateOr(l.b.CreateAnd(bits(l.Op(1)), l.b.getInt(sign)), l.b.CreateAnd(bits(l.Op(2)), l.b.getInt(~sign)));
  Value* number = l.b.CreateBitCast(result, l.TypeOf(type));
  MarkRegisterCast(number);
  l.Write(l.Op(0), number, type);
}

namespace {

// The .approx.ftz forms of f64 look at the upper word only and leave the lower word of the result zero (ISA, rcp and
// rsqrt .approx.ftz.f64).
Value* UnaryF64(Lifter& l, const Instruction& inst, Value* x) {
  const Rounding rounding = RoundingOf(inst);
  const bool coarse = inst.Has(Mod::kApprox) && inst.Has(Mod::kFtz);
  auto upper = [&](Value* value) {
    return l.b.CreateBitCast(l.b.CreateAnd(l.emit.Bits(value), ~std::uint64_t{0xffffffff}), l.b.getDoubleTy());
  };
  if (coarse) x = l.emit.Flush(upper(x));
  Value* result = nullptr;
  switch (inst.opcode) {
    case Opcode::kRcp:
      result = rounding == Rounding::kRn ? l.b.CreateFDiv(l.emit.F64(1), x)
                                         : RoundedF64(l, F64Op::kDiv, rounding, l.emit.F64(1), x, nullptr);
      break;
    case Opcode::kSqrt:
      result = rounding == Rounding::kRn ? l.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x)
                                         : RoundedF64(l, F64Op::kSqrt, rounding, x, nullptr, nullptr);
      break;
    case Opcode::kRsqrt:
      result = l.b.CreateFDiv(l.emit.F64(1), l.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
      break;
    default: l.RefuseInstruction();
  }
  return coarse ? l.emit.Flush(upper(result)) : result;
}

}  // namespace

// Sine or cosine of an angle in turns: what is left of the nearest quarter, exactly, as radians. The sign of a zero
// stays.
static Value* SinCosOfTurns(llvm::IRBuilder<>& ir, FloatEmitter& emit, Value* x, bool cosine) {
  Value* quarters = ir.CreateFMul(ir.CreateFSub(x, emit.RoundNearest(x)), emit.F32(4));
  Value* quarter = emit.RoundNearest(quarters);
  Value* rest = ir.CreateFMul(ir.CreateFSub(quarters, quarter), emit.F32(0x1.921fb6p+0f));
  rest = ir.CreateSelect(ir.CreateFCmpOEQ(x, emit.F32(0)), x, rest);
  Value* finite = ir.CreateFCmpORD(rest, rest);
  Value* number = ir.CreateFPToSI(ir.CreateSelect(finite, quarter, emit.F32(0)), ir.getInt32Ty());
  if (cosine) number = ir.CreateAdd(number, ir.getInt32(1));
  Value* odd = ir.CreateICmpNE(ir.CreateAnd(number, 1), ir.getInt32(0));
  FloatApprox approx(ir, emit);
  // One after the other: the order in which arguments are evaluated is the compiler's, and the code is to be the same.
  Value* of_odd = approx.SinCos(rest, true);
  Value* of_even = approx.SinCos(rest, false);
  Value* magnitude = ir.CreateSelect(odd, of_odd, of_even);
  Value* sign = ir.CreateShl(ir.CreateAnd(number, 2), 30);
  return ir.CreateBitCast(ir.CreateXor(emit.Bits(magnitude), sign), ir.getFloatTy());
}

namespace {

Value* UnaryF32(Lifter& l, const Instruction& inst, Value* x) {
  const Rounding rounding = RoundingOf(inst);
  switch (inst.opcode) {
    case Opcode::kRcp:
      return rounding == Rounding::kRn ? l.b.CreateFDiv(l.emit.F32(1), x)
                                       : l.emit.Round(l.emit.Div(l.emit.F32(1), x), rounding);
    case Opcode::kSqrt:
      return rounding == Rounding::kRn ? l.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x)
                                       : l.emit.Round(l.emit.Sqrt(x), rounding);
    case Opcode::kRsqrt: return l.b.CreateFDiv(l.emit.F32(1), l.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case Opcode::kSin:
    case Opcode::kCos:
      return HasText(inst, "2pi") ? SinCosOfTurns(l.b, l.emit, x, inst.opcode == Opcode::kCos)
                                  : FloatApprox(l.b, l.emit).SinCos(x, inst.opcode == Opcode::kCos);
    case Opcode::kLg2: return FloatApprox(l.b, l.emit).Log2(x);
    case Opcode::kEx2: return FloatApprox(l.b, l.emit).Exp2(x);
    case Opcode::kTanh: return FloatApprox(l.b, l.emit).Tanh(x);
    default: l.RefuseInstruction();
  }
}

}  // namespace

// rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh
template <>
void Lift<semantic::FloatUnary>(Lifter& l, const Instruction& inst) {
  if (inst.opcode == Opcode::kAbs || inst.opcode == Opcode::kNeg) return LiftSign(l, inst);
  const ScalarType type = inst.type();
  const bool root = inst.opcode == Opcode::kRcp || inst.opcode == Opcode::kSqrt || inst.opcode == Opcode::kRsqrt;
  if (root && (SaysRounding(inst) || (type == ScalarType::kF64 && !inst.Has(Mod::kFtz)))) MarkBranches(l.b);
  std::vector<Value*> lanes = l.ReadFloatLanes(l.Op(1), type, inst.Has(Mod::kFtz));
  for (Value*& lane : lanes) lane = type == ScalarType::kF64 ? UnaryF64(l, inst, lane) : UnaryF32(l, inst, lane);
  WriteFloatLanes(l, inst, lanes, type);
}

}  // namespace gridloom::exec
