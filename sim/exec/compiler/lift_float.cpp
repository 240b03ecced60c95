// Floating-point arithmetic (PTX ISA, 9.7.3 to 9.7.5), lane by lane (float_lanes.h).
#include "sim/exec/compiler/lift_fuse.h"
#include "sim/exec/compiler/lift_nan.h"
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

Value* FunctionLifter::Flush(Value* x) { return emit_.Flush(x); }

void FunctionLifter::WriteFloatLanes(const Instruction& inst, std::vector<Value*> lanes, ScalarType type) {
  Write(Op(0), lanes_.Pack(std::move(lanes), type, ModifiersOf(inst), TypeOf(type)), type);
}

// f64 results other than to nearest: exactly, by instructions with a rounding mode of their own (warp_rounded.cpp) or a
// helper that sets the host's for itself.
Value* FunctionLifter::RoundedF64(F64Op op, Rounding rounding, Value* a, Value* b, Value* c) {
  Value* zero = llvm::ConstantFP::get(b_.getDoubleTy(), 0.0);
  return b_.CallHelper(Helper::kF64Rounded, {b_.getDoubleTy()}, {a, b ? b : zero, c ? c : zero},
                       F64Imm(op, static_cast<F64Rounding>(rounding)));
}

// add, sub, mul. Mixed precision (add.f32.f16 d, a, c) reads its first operand in the second type.
void FunctionLifter::LiftFloatArithmetic(const Instruction& inst) {
  const ScalarType type = inst.type();
  const ScalarType first = inst.type(1) == ScalarType::kNone ? type : inst.type(1);
  if (first == type && !SaysRounding(inst)) {
    const FloatOperation operation{.opcode = inst.opcode, .type = type, .modifiers = ModifiersOf(inst)};
    Value* left = Read(Op(1), type);
    return Write(Op(0), MarkFloat(b_, operation, {left, Read(Op(2), type)}), type);
  }
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  const std::vector<Value*> a = ReadFloatLanes(Op(1), first, ftz);
  const std::vector<Value*> b = ReadFloatLanes(Op(2), type, ftz);
  std::vector<Value*> results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool mul = inst.opcode == Opcode::kMul;
    Value* y = inst.opcode == Opcode::kSub ? b_.CreateFNeg(b[i]) : b[i];
    if (rounding == Rounding::kRn) {
      results.push_back(mul                           ? b_.CreateFMul(a[i], y)
                        : inst.opcode == Opcode::kSub ? b_.CreateFSub(a[i], b[i])
                                                      : b_.CreateFAdd(a[i], y));
    } else if (type == ScalarType::kF64) {
      results.push_back(RoundedF64(mul ? F64Op::kMul : F64Op::kAdd, rounding, a[i], y, nullptr));
    } else {
      results.push_back(
          emit_.Round(mul ? emit_.Mul(a[i], y) : emit_.Add(a[i], y, rounding == Rounding::kRm), rounding));
    }
  }
  WriteFloatLanes(inst, results, type);
}

// fma, and mad of the floating types, which is the same.
template <>
void FunctionLifter::Lift<semantic::Fma>(const Instruction& inst) {
  const ScalarType type = inst.type();
  const ScalarType factor = inst.type(1) == ScalarType::kNone ? type : inst.type(1);
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  const std::vector<Value*> a = ReadFloatLanes(Op(1), factor, ftz);
  const std::vector<Value*> b = ReadFloatLanes(Op(2), factor, ftz);
  const std::vector<Value*> c = ReadFloatLanes(Op(3), type, ftz);
  std::vector<Value*> results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (rounding == Rounding::kRn) {
      results.push_back(lanes_.Fma(type, a[i], b[i], c[i]));
    } else if (type == ScalarType::kF64) {
      results.push_back(RoundedF64(F64Op::kFma, rounding, a[i], b[i], c[i]));
    } else {
      results.push_back(emit_.Round(emit_.Fma(a[i], b[i], c[i], rounding == Rounding::kRm), rounding));
    }
  }
  WriteFloatLanes(inst, results, type);
}

// div.approx, .full and the rounded ones: all divide as IEEE does.
void FunctionLifter::LiftFloatDivide(const Instruction& inst) {
  if (SaysRounding(inst)) MarkBranches(b_);
  const ScalarType type = inst.type();
  const bool ftz = inst.Has(Mod::kFtz);
  const Rounding rounding = RoundingOf(inst);
  Value* a = ReadFloatLanes(Op(1), type, ftz)[0];
  Value* b = ReadFloatLanes(Op(2), type, ftz)[0];
  Value* result = nullptr;
  if (rounding == Rounding::kRn) {
    result = b_.CreateFDiv(a, b);
  } else if (type == ScalarType::kF64) {
    result = RoundedF64(F64Op::kDiv, rounding, a, b, nullptr);
  } else {
    result = emit_.Round(emit_.Div(a, b), rounding);
  }
  if (inst.Has(Mod::kApprox)) {
    // "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 returns NaN, otherwise returns 0" (ISA, div).
    Value* huge = b_.CreateFCmpOGT(emit_.Abs(b), emit_.F32(0x1p126f));
    Value* zero = b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, emit_.F32(0), b);
    result = b_.CreateSelect(huge, b_.CreateFMul(a, zero), result);
  }
  WriteFloatLanes(inst, {result}, type);
}

void FunctionLifter::LiftFloatMinMax(const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool ftz = inst.Has(Mod::kFtz), xorsign = inst.Has(Mod::kXorsign);
  std::vector<std::vector<Value*>> sources;
  for (std::size_t i = 1; i < OpCount(); ++i) sources.push_back(ReadFloatLanes(Op(i), type, ftz));
  std::vector<Value*> results = sources[0];
  for (std::size_t lane = 0; lane < results.size(); ++lane) {
    Value* sign = nullptr;
    for (std::vector<Value*>& source : sources) {
      if (xorsign) sign = sign ? b_.CreateXor(sign, emit_.Bits(source[lane])) : emit_.Bits(source[lane]);
      if (inst.Has(Mod::kAbs)) source[lane] = emit_.Abs(source[lane]);
    }
    Value* result = sources[0][lane];
    for (std::size_t i = 1; i < sources.size(); ++i) {
      result = emit_.MinMax(result, sources[i][lane], inst.opcode == Opcode::kMax, inst.Has(Mod::kNaN));
    }
    if (xorsign) {
      Value* signed_result =
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result, b_.CreateBitCast(sign, result->getType()));
      result = b_.CreateSelect(emit_.IsNaN(result), result, signed_result);
    }
    results[lane] = result;
  }
  WriteFloatLanes(inst, results, type);
}

// abs and neg change the sign bit only, of NaNs too; .ftz flushes.
void FunctionLifter::LiftSign(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* x = Read(Op(1), type);
  if (inst.opcode == Opcode::kAbs) return Write(Op(0), lanes_.Absolute(x, type, inst.Has(Mod::kFtz)), type);
  Write(Op(0), MarkFloat(b_, {.opcode = Opcode::kNeg, .type = type, .modifiers = {.ftz = inst.Has(Mod::kFtz)}}, {x}),
        type);
}

// testp: zeros count as normal numbers.
template <>
void FunctionLifter::Lift<semantic::Testp>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* x = Read(Op(1), type);
  Value* magnitude = emit_.Abs(x);
  const bool single = type == ScalarType::kF32;
  Value* infinity = llvm::ConstantFP::getInfinity(x->getType());
  Value* smallest = single ? emit_.F32(0x1p-126f) : emit_.F64(0x1p-1022);
  Value* zero = llvm::ConstantFP::get(x->getType(), 0.0);
  Value* subnormal = b_.CreateAnd(b_.CreateFCmpOLT(magnitude, smallest), b_.CreateFCmpONE(x, zero));
  Value* finite = b_.CreateFCmpOLT(magnitude, infinity);
  Value* result = nullptr;
  if (inst.Has(Mod::kFinite)) result = finite;
  if (inst.Has(Mod::kInfinite)) result = b_.CreateFCmpOEQ(magnitude, infinity);
  if (inst.Has(Mod::kNumber)) result = b_.CreateFCmpORD(x, x);
  if (inst.Has(Mod::kNotanumber)) result = emit_.IsNaN(x);
  if (inst.Has(Mod::kNormal)) result = b_.CreateAnd(finite, b_.CreateNot(subnormal));
  if (inst.Has(Mod::kSubnormal)) result = subnormal;
  if (!result) RefuseInstruction("has no known test");
  Write(Op(0), result, ScalarType::kPred);
}

// copysign d, a, b: the value of b with the sign of a. ptxas makes an operation on bits of it, which a NaN keeps.
template <>
void FunctionLifter::Lift<semantic::Copysign>(const Instruction& inst) {
  const ScalarType type = inst.type();
  const auto bits = [&](const ptx::Operand& operand) {
    Value* cast = emit_.Bits(Read(operand, type));
    MarkRegisterCast(cast);
    return cast;
  };
  const auto sign = llvm::APInt::getSignMask(ptx::BitsOf(type));
  Value* result = b_.CreateOr(b_.CreateAnd(bits(Op(1)), b_.getInt(sign)), b_.CreateAnd(bits(Op(2)), b_.getInt(~sign)));
  Value* number = b_.CreateBitCast(result, TypeOf(type));
  MarkRegisterCast(number);
  Write(Op(0), number, type);
}

// rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh
template <>
void FunctionLifter::Lift<semantic::FloatUnary>(const Instruction& inst) {
  if (inst.opcode == Opcode::kAbs || inst.opcode == Opcode::kNeg) return LiftSign(inst);
  const ScalarType type = inst.type();
  const bool root = inst.opcode == Opcode::kRcp || inst.opcode == Opcode::kSqrt || inst.opcode == Opcode::kRsqrt;
  if (root && (SaysRounding(inst) || (type == ScalarType::kF64 && !inst.Has(Mod::kFtz)))) MarkBranches(b_);
  std::vector<Value*> lanes = ReadFloatLanes(Op(1), type, inst.Has(Mod::kFtz));
  for (Value*& lane : lanes) lane = type == ScalarType::kF64 ? UnaryF64(inst, lane) : UnaryF32(inst, lane);
  WriteFloatLanes(inst, lanes, type);
}

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
  Value* magnitude = ir.CreateSelect(odd, emit.SinCos(rest, true), emit.SinCos(rest, false));
  Value* sign = ir.CreateShl(ir.CreateAnd(number, 2), 30);
  return ir.CreateBitCast(ir.CreateXor(emit.Bits(magnitude), sign), ir.getFloatTy());
}

Value* FunctionLifter::UnaryF32(const Instruction& inst, Value* x) {
  const Rounding rounding = RoundingOf(inst);
  switch (inst.opcode) {
    case Opcode::kRcp:
      return rounding == Rounding::kRn ? b_.CreateFDiv(emit_.F32(1), x)
                                       : emit_.Round(emit_.Div(emit_.F32(1), x), rounding);
    case Opcode::kSqrt:
      return rounding == Rounding::kRn ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x)
                                       : emit_.Round(emit_.Sqrt(x), rounding);
    case Opcode::kRsqrt: return b_.CreateFDiv(emit_.F32(1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case Opcode::kSin:
    case Opcode::kCos:
      return HasText(inst, "2pi") ? SinCosOfTurns(b_, emit_, x, inst.opcode == Opcode::kCos)
                                  : emit_.SinCos(x, inst.opcode == Opcode::kCos);
    case Opcode::kLg2: return emit_.Log2(x);
    case Opcode::kEx2: return emit_.Exp2(x);
    case Opcode::kTanh: return emit_.Tanh(x);
    default: RefuseInstruction();
  }
}

// The .approx.ftz forms of f64 look at the upper word only and leave the lower word of the result zero (ISA, rcp and
// rsqrt .approx.ftz.f64).
Value* FunctionLifter::UnaryF64(const Instruction& inst, Value* x) {
  const Rounding rounding = RoundingOf(inst);
  const bool coarse = inst.Has(Mod::kApprox) && inst.Has(Mod::kFtz);
  auto upper = [&](Value* value) {
    return b_.CreateBitCast(b_.CreateAnd(emit_.Bits(value), ~std::uint64_t{0xffffffff}), b_.getDoubleTy());
  };
  if (coarse) x = emit_.Flush(upper(x));
  Value* result = nullptr;
  switch (inst.opcode) {
    case Opcode::kRcp:
      result = rounding == Rounding::kRn ? b_.CreateFDiv(emit_.F64(1), x)
                                         : RoundedF64(F64Op::kDiv, rounding, emit_.F64(1), x, nullptr);
      break;
    case Opcode::kSqrt:
      result = rounding == Rounding::kRn ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x)
                                         : RoundedF64(F64Op::kSqrt, rounding, x, nullptr, nullptr);
      break;
    case Opcode::kRsqrt: result = b_.CreateFDiv(emit_.F64(1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x)); break;
    default: RefuseInstruction();
  }
  return coarse ? emit_.Flush(upper(result)) : result;
}

}  // namespace gridloom::exec
