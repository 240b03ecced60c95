// Logic, shifts and byte permutation (PTX ISA, 9.7.8 and 9.7.9.7).
#include "sim/exec/compiler/lift_parts.h"
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
Value* ShiftOrZero(Lifter& l, Value* a, Value* count, bool left) {
  const unsigned bits = a->getType()->getIntegerBitWidth();
  Value* inside = l.b.CreateICmpULT(count, llvm::ConstantInt::get(count->getType(), bits));
  Value* amount = l.b.CreateZExtOrTrunc(l.b.CreateSelect(inside, count, llvm::Constant::getNullValue(count->getType())),
                                        a->getType());
  Value* shifted = left ? l.b.CreateShl(a, amount) : l.b.CreateLShr(a, amount);
  return l.b.CreateSelect(inside, shifted, llvm::Constant::getNullValue(a->getType()));
}

// Arithmetic shift right by any count: all sign from the width on.
Value* ShiftSigned(Lifter& l, Value* a, Value* count) {
  auto* last = llvm::ConstantInt::get(count->getType(), a->getType()->getIntegerBitWidth() - 1);
  return l.b.CreateAShr(a, l.b.CreateZExtOrTrunc(MinMax(l, count, last, false, false), a->getType()));
}

template <>
void Lift<semantic::Logic>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = l.Read(l.Op(1), type);
  Value* result = nullptr;
  switch (inst.opcode) {
    case Opcode::kNot: result = l.b.CreateNot(a); break;
    case Opcode::kAnd: result = l.b.CreateAnd(a, l.Read(l.Op(2), type)); break;
    case Opcode::kOr: result = l.b.CreateOr(a, l.Read(l.Op(2), type)); break;
    default: result = l.b.CreateXor(a, l.Read(l.Op(2), type)); break;
  }
  l.Write(l.Op(0), result, type);
}

template <>
void Lift<semantic::Cnot>(Lifter& l, const Instruction& inst) {
  Value* a = l.Read(l.Op(1), inst.type());
  l.Write(l.Op(0), l.b.CreateZExt(l.b.CreateICmpEQ(a, llvm::Constant::getNullValue(a->getType())), a->getType()),
          inst.type());
}

template <>
void Lift<semantic::Shift>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = l.Read(l.Op(1), type);
  Value* count = l.Read(l.Op(2), ScalarType::kU32);
  const bool left = inst.opcode == Opcode::kShl;
  l.Write(l.Op(0), !left && ptx::IsSigned(type) ? ShiftSigned(l, a, count) : ShiftOrZero(l, a, count, left), type);
}

// shf.l/.r: the upper or lower word of {b, a} shifted.
template <>
void Lift<semantic::FunnelShift>(Lifter& l, const Instruction& inst) {
  Value* a = l.Read(l.Op(1), ScalarType::kB32);
  Value* b = l.Read(l.Op(2), ScalarType::kB32);
  Value* count = l.Read(l.Op(3), ScalarType::kU32);
  const bool left = inst.Has(Mod::kL);
  Value* result =
      l.b.CreateIntrinsic(left ? llvm::Intrinsic::fshl : llvm::Intrinsic::fshr, {l.b.getInt32Ty()}, {b, a, count});
  if (inst.Has(Mod::kClamp))
    result = l.b.CreateSelect(l.b.CreateICmpUGE(count, l.b.getInt32(32)), left ? a : b, result);
  l.Write(l.Op(0), result, ScalarType::kB32);
}

namespace {

// Truth table of three inputs, by the first one: x ? high : low.
Value* Lut3(Lifter& l, Value* a, Value* b, Value* c, unsigned table) {
  Value* low = Lut2(l.b, b, c, table & 15);
  Value* high = Lut2(l.b, b, c, (table >> 4) & 15);
  if ((table & 15) == ((table >> 4) & 15)) return low;
  if ((table & 15) == (~(table >> 4) & 15)) return l.b.CreateXor(low, a);
  return l.b.CreateOr(l.b.CreateAnd(a, high), l.b.CreateAnd(l.b.CreateNot(a), low));
}

}  // namespace

// lop3.b32 d, a, b, c, table;  lop3.BoolOp.b32 d|p, a, b, c, table, q:  p = (d != 0) BoolOp q
template <>
void Lift<semantic::Lop3>(Lifter& l, const Instruction& inst) {
  const bool pair = l.Op(0).kind == OperandKind::kPair;
  if (l.Op(4).kind != OperandKind::kInt) l.RefuseInstruction("needs a constant table");
  Value* result = Lut3(l, l.Read(l.Op(1), ScalarType::kB32), l.Read(l.Op(2), ScalarType::kB32),
                       l.Read(l.Op(3), ScalarType::kB32), static_cast<unsigned>(l.Op(4).int_literal.value));
  Value* test = nullptr;
  if (pair) test = CombinePredicate(l, inst, l.b.CreateICmpNE(result, l.b.getInt32(0)), 5);
  l.Write(pair ? l.Op(0).elements[0] : l.Op(0), result, ScalarType::kB32);
  if (pair) l.Write(l.Op(0).elements[1], test, ScalarType::kPred);
}

// prmt: each result byte is a byte of {b, a}, in the default mode chosen by a nibble whose top bit replicates its sign.
template <>
void Lift<semantic::Prmt>(Lifter& l, const Instruction& inst) {
  Value* a = l.Read(l.Op(1), ScalarType::kB32);
  Value* b = l.Read(l.Op(2), ScalarType::kB32);
  Value* selector = l.Read(l.Op(3), ScalarType::kB32);
  auto* i64 = l.b.getInt64Ty();
  Value* bytes = l.b.CreateOr(l.b.CreateShl(l.b.CreateZExt(b, i64), 32), l.b.CreateZExt(a, i64));
  Value* s = l.b.CreateAnd(selector, 3);
  auto index = [&](std::uint32_t i) -> Value* {
    if (inst.Has(Mod::kF4e)) return l.b.CreateAdd(s, l.b.getInt32(i));
    if (inst.Has(Mod::kB4e)) return l.b.CreateAnd(l.b.CreateSub(s, l.b.getInt32(i)), 7);
    if (inst.Has(Mod::kRc8)) return s;
    if (inst.Has(Mod::kEcl)) return MinMax(l, s, l.b.getInt32(i), false, true);
    if (inst.Has(Mod::kEcr)) return MinMax(l, s, l.b.getInt32(i), false, false);
    if (inst.Has(Mod::kRc16)) return l.b.CreateOr(l.b.CreateShl(l.b.CreateAnd(s, 1), 1), l.b.getInt32(i & 1));
    return l.b.CreateAnd(l.b.CreateLShr(selector, 4 * i), 7);
  };
  const bool modal = inst.Has(Mod::kF4e) || inst.Has(Mod::kB4e) || inst.Has(Mod::kRc8) || inst.Has(Mod::kEcl) ||
                     inst.Has(Mod::kEcr) || inst.Has(Mod::kRc16);
  std::vector<Value*> result;
  for (std::uint32_t i = 0; i < 4; ++i) {
    Value* shift = l.b.CreateZExt(l.b.CreateShl(index(i), 3), i64);
    Value* byte = l.b.CreateTrunc(l.b.CreateLShr(bytes, shift), l.b.getInt8Ty());
    if (!modal) {
      Value* sign = l.b.CreateTrunc(l.b.CreateLShr(selector, 4 * i + 3), l.b.getInt1Ty());
      byte = l.b.CreateSelect(sign, l.b.CreateAShr(byte, 7), byte);
    }
    result.push_back(byte);
  }
  l.Write(l.Op(0), l.JoinLanes(result, l.b.getInt32Ty()), ScalarType::kB32);
}

}  // namespace gridloom::exec
