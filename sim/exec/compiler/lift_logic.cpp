// Logic, shifts and byte permutation (PTX ISA, 9.7.8 and 9.7.9.7).
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {
namespace {

// A function of two bits as a table: bit (a << 1 | b).
Value* Lut2(llvm::IRBuilder<>& ir, Value* a, Value* b, unsigned table) {
  switch (table) {
    case 0x0: return llvm::Constant::getNullValue(a->getType());
    case 0x1: return ir.CreateNot(ir.CreateOr(a, b));
    case 0x2: return ir.CreateAnd(ir.CreateNot(a), b);
    case 0x3: return ir.CreateNot(a);
    case 0x4: return ir.CreateAnd(a, ir.CreateNot(b));
    case 0x5: return ir.CreateNot(b);
    case 0x6: return ir.CreateXor(a, b);
    case 0x7: return ir.CreateNot(ir.CreateAnd(a, b));
    case 0x8: return ir.CreateAnd(a, b);
    case 0x9: return ir.CreateNot(ir.CreateXor(a, b));
    case 0xa: return b;
    case 0xb: return ir.CreateOr(ir.CreateNot(a), b);
    case 0xc: return a;
    case 0xd: return ir.CreateOr(a, ir.CreateNot(b));
    case 0xe: return ir.CreateOr(a, b);
    default: return llvm::Constant::getAllOnesValue(a->getType());
  }
}

}  // namespace

// Shift left or logically right by any count: 0 from the width on. A constant count folds the select away.
Value* FunctionLifter::ShiftOrZero(Value* a, Value* count, bool left) {
  const unsigned bits = a->getType()->getIntegerBitWidth();
  Value* inside = b_.CreateICmpULT(count, llvm::ConstantInt::get(count->getType(), bits));
  Value* amount = b_.CreateZExtOrTrunc(b_.CreateSelect(inside, count, llvm::Constant::getNullValue(count->getType())),
                                       a->getType());
  Value* shifted = left ? b_.CreateShl(a, amount) : b_.CreateLShr(a, amount);
  return b_.CreateSelect(inside, shifted, llvm::Constant::getNullValue(a->getType()));
}

// Arithmetic shift right by any count: all sign from the width on.
Value* FunctionLifter::ShiftSigned(Value* a, Value* count) {
  auto* last = llvm::ConstantInt::get(count->getType(), a->getType()->getIntegerBitWidth() - 1);
  return b_.CreateAShr(a, b_.CreateZExtOrTrunc(MinMax(count, last, false, false), a->getType()));
}

template <>
void FunctionLifter::Lift<semantic::Logic>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = Read(Op(1), type);
  Value* result = nullptr;
  switch (inst.opcode) {
    case Opcode::kNot: result = b_.CreateNot(a); break;
    case Opcode::kAnd: result = b_.CreateAnd(a, Read(Op(2), type)); break;
    case Opcode::kOr: result = b_.CreateOr(a, Read(Op(2), type)); break;
    default: result = b_.CreateXor(a, Read(Op(2), type)); break;
  }
  Write(Op(0), result, type);
}

template <>
void FunctionLifter::Lift<semantic::Cnot>(const Instruction& inst) {
  Value* a = Read(Op(1), inst.type());
  Write(Op(0), b_.CreateZExt(b_.CreateICmpEQ(a, llvm::Constant::getNullValue(a->getType())), a->getType()),
        inst.type());
}

template <>
void FunctionLifter::Lift<semantic::Shift>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = Read(Op(1), type);
  Value* count = Read(Op(2), ScalarType::kU32);
  const bool left = inst.opcode == Opcode::kShl;
  Write(Op(0), !left && ptx::IsSigned(type) ? ShiftSigned(a, count) : ShiftOrZero(a, count, left), type);
}

// shf.l/.r: the upper or lower word of {b, a} shifted.
template <>
void FunctionLifter::Lift<semantic::FunnelShift>(const Instruction& inst) {
  Value* a = Read(Op(1), ScalarType::kB32);
  Value* b = Read(Op(2), ScalarType::kB32);
  Value* count = Read(Op(3), ScalarType::kU32);
  const bool left = inst.Has(Mod::kL);
  Value* result =
      b_.CreateIntrinsic(left ? llvm::Intrinsic::fshl : llvm::Intrinsic::fshr, {b_.getInt32Ty()}, {b, a, count});
  if (inst.Has(Mod::kClamp)) result = b_.CreateSelect(b_.CreateICmpUGE(count, b_.getInt32(32)), left ? a : b, result);
  Write(Op(0), result, ScalarType::kB32);
}

// Truth table of three inputs, by the first one: x ? high : low.
Value* FunctionLifter::Lut3(Value* a, Value* b, Value* c, unsigned table) {
  Value* low = Lut2(b_, b, c, table & 15);
  Value* high = Lut2(b_, b, c, (table >> 4) & 15);
  if ((table & 15) == ((table >> 4) & 15)) return low;
  if ((table & 15) == (~(table >> 4) & 15)) return b_.CreateXor(low, a);
  return b_.CreateOr(b_.CreateAnd(a, high), b_.CreateAnd(b_.CreateNot(a), low));
}

// lop3.b32 d, a, b, c, table;  lop3.BoolOp.b32 d|p, a, b, c, table, q:  p = (d != 0) BoolOp q
template <>
void FunctionLifter::Lift<semantic::Lop3>(const Instruction& inst) {
  const bool pair = Op(0).kind == OperandKind::kPair;
  if (Op(4).kind != OperandKind::kInt) RefuseInstruction("needs a constant table");
  Value* result = Lut3(Read(Op(1), ScalarType::kB32), Read(Op(2), ScalarType::kB32), Read(Op(3), ScalarType::kB32),
                       static_cast<unsigned>(Op(4).int_literal.value));
  Value* test = nullptr;
  if (pair) test = Combine(inst, b_.CreateICmpNE(result, b_.getInt32(0)), 5);
  Write(pair ? Op(0).elements[0] : Op(0), result, ScalarType::kB32);
  if (pair) Write(Op(0).elements[1], test, ScalarType::kPred);
}

// prmt: each result byte is a byte of {b, a}, in the default mode chosen by a nibble whose top bit replicates its sign.
template <>
void FunctionLifter::Lift<semantic::Prmt>(const Instruction& inst) {
  Value* a = Read(Op(1), ScalarType::kB32);
  Value* b = Read(Op(2), ScalarType::kB32);
  Value* selector = Read(Op(3), ScalarType::kB32);
  auto* i64 = b_.getInt64Ty();
  Value* bytes = b_.CreateOr(b_.CreateShl(b_.CreateZExt(b, i64), 32), b_.CreateZExt(a, i64));
  Value* s = b_.CreateAnd(selector, 3);
  auto index = [&](std::uint32_t i) -> Value* {
    if (inst.Has(Mod::kF4e)) return b_.CreateAdd(s, b_.getInt32(i));
    if (inst.Has(Mod::kB4e)) return b_.CreateAnd(b_.CreateSub(s, b_.getInt32(i)), 7);
    if (inst.Has(Mod::kRc8)) return s;
    if (inst.Has(Mod::kEcl)) return MinMax(s, b_.getInt32(i), false, true);
    if (inst.Has(Mod::kEcr)) return MinMax(s, b_.getInt32(i), false, false);
    if (inst.Has(Mod::kRc16)) return b_.CreateOr(b_.CreateShl(b_.CreateAnd(s, 1), 1), b_.getInt32(i & 1));
    return b_.CreateAnd(b_.CreateLShr(selector, 4 * i), 7);
  };
  const bool modal = inst.Has(Mod::kF4e) || inst.Has(Mod::kB4e) || inst.Has(Mod::kRc8) || inst.Has(Mod::kEcl) ||
                     inst.Has(Mod::kEcr) || inst.Has(Mod::kRc16);
  std::vector<Value*> result;
  for (std::uint32_t i = 0; i < 4; ++i) {
    Value* shift = b_.CreateZExt(b_.CreateShl(index(i), 3), i64);
    Value* byte = b_.CreateTrunc(b_.CreateLShr(bytes, shift), b_.getInt8Ty());
    if (!modal) {
      Value* sign = b_.CreateTrunc(b_.CreateLShr(selector, 4 * i + 3), b_.getInt1Ty());
      byte = b_.CreateSelect(sign, b_.CreateAShr(byte, 7), byte);
    }
    result.push_back(byte);
  }
  Write(Op(0), JoinLanes(result, b_.getInt32Ty()), ScalarType::kB32);
}

}  // namespace gridloom::exec
