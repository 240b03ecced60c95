// Bit counting, bit fields and masks (PTX ISA, 9.7.1.14 to 9.7.1.22).
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

Value* Ctlz(Lifter& l, Value* a) { return l.b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, l.b.getFalse()); }

}  // namespace

template <>
void Lift<semantic::BitCount>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = l.Read(l.Op(1), type);
  if (inst.opcode == Opcode::kBrev)
    return l.Write(l.Op(0), l.b.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, a), type);
  Value* count = inst.opcode == Opcode::kClz ? Ctlz(l, a) : l.b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
  l.Write(l.Op(0), l.b.CreateZExtOrTrunc(count, l.b.getInt32Ty()), ScalarType::kU32);
}

// bfind: place of the highest bit that is not a sign bit, -1 when there is none; .shiftamt: its distance from the top.
template <>
void Lift<semantic::Bfind>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = l.Read(l.Op(1), type);
  const unsigned top = a->getType()->getIntegerBitWidth() - 1;
  if (ptx::IsSigned(type)) a = l.b.CreateXor(a, l.b.CreateAShr(a, top));
  Value* distance = l.b.CreateZExtOrTrunc(Ctlz(l, a), l.b.getInt32Ty());
  Value* none = l.b.CreateICmpEQ(a, llvm::Constant::getNullValue(a->getType()));
  Value* place = inst.Has(Mod::kShiftamt) ? distance : l.b.CreateSub(l.b.getInt32(top), distance);
  l.Write(l.Op(0), l.b.CreateSelect(none, l.b.getInt32(~0u), place), ScalarType::kU32);
}

// fns: place of the n-th set bit of `mask` counted from `base`, upwards for a positive `offset`, downwards for a
// negative one; offset 0 asks for bit `base` itself. Searched by halves, counting set bits.
template <>
void Lift<semantic::Fns>(Lifter& l, const Instruction&) {
  Value* mask = l.Read(l.Op(1), ScalarType::kB32);
  Value* base = l.Read(l.Op(2), ScalarType::kU32);
  Value* offset = l.Read(l.Op(3), ScalarType::kS32);
  Value* zero = l.b.getInt32(0);
  Value* one = l.b.getInt32(1);
  Value* backwards = l.b.CreateICmpSLT(offset, zero);
  Value* itself = l.b.CreateICmpEQ(offset, zero);
  Value* bit = ShiftOrZero(l, one, base, true);
  Value* upwards = l.b.CreateAnd(mask, ShiftOrZero(l, l.b.getInt32(~0u), base, true));
  Value* downwards = l.b.CreateAnd(mask, l.b.CreateOr(l.b.CreateSub(bit, one), bit));
  downwards = l.b.CreateSelect(l.b.CreateICmpUGE(base, l.b.getInt32(32)), zero, downwards);
  Value* bits = l.b.CreateSelect(backwards, l.b.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, downwards), upwards);
  bits = l.b.CreateSelect(itself, l.b.CreateAnd(mask, bit), bits);
  Value* rank =
      l.b.CreateSelect(itself, zero, l.b.CreateSub(l.b.CreateSelect(backwards, l.b.CreateNeg(offset), offset), one));
  Value* found = l.b.CreateICmpULT(rank, l.b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits));
  Value* place = zero;
  for (std::uint32_t half = 16; half != 0; half /= 2) {
    Value* low = l.b.CreateAnd(l.b.CreateLShr(bits, place), l.b.getInt32((1u << half) - 1));
    Value* count = l.b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, low);
    Value* above = l.b.CreateICmpUGE(rank, count);
    rank = l.b.CreateSelect(above, l.b.CreateSub(rank, count), rank);
    place = l.b.CreateSelect(above, l.b.CreateAdd(place, l.b.getInt32(half)), place);
    place = l.b.CreateAnd(place, 31);
  }
  place = l.b.CreateSelect(backwards, l.b.CreateSub(l.b.getInt32(31), place), place);
  l.Write(l.Op(0), l.b.CreateSelect(found, place, l.b.getInt32(~0u)), ScalarType::kU32);
}

namespace {

// Low `length` bits set, all of them from the width on.
Value* LowMask(Lifter& l, llvm::Type* type, Value* length) {
  return l.b.CreateNot(ShiftOrZero(l, llvm::Constant::getAllOnesValue(type), length, true));
}

}  // namespace

template <>
void Lift<semantic::Bfe>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = l.Read(l.Op(1), type);
  Value* position = l.b.CreateAnd(l.Read(l.Op(2), ScalarType::kU32), 0xff);
  Value* length = l.b.CreateAnd(l.Read(l.Op(3), ScalarType::kU32), 0xff);
  if (!ptx::IsSigned(type)) {
    return l.Write(l.Op(0), l.b.CreateAnd(ShiftOrZero(l, a, position, false), LowMask(l, a->getType(), length)), type);
  }
  // Bits above the word are copies of its sign, and so is the extracted field's sign when it reaches beyond.
  Value* field = ShiftSigned(l, a, position);
  Value* width = l.b.getInt32(a->getType()->getIntegerBitWidth());
  Value* unused = l.b.CreateZExtOrTrunc(
      l.b.CreateSub(width, MinMax(l, MinMax(l, length, width, false, false), l.b.getInt32(1), false, true)),
      a->getType());
  field = l.b.CreateAShr(l.b.CreateShl(field, unused), unused);
  Value* empty = l.b.CreateICmpEQ(length, l.b.getInt32(0));
  l.Write(l.Op(0), l.b.CreateSelect(empty, llvm::Constant::getNullValue(a->getType()), field), type);
}

template <>
void Lift<semantic::Bfi>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = l.Read(l.Op(1), type);
  Value* b = l.Read(l.Op(2), type);
  Value* position = l.b.CreateAnd(l.Read(l.Op(3), ScalarType::kU32), 0xff);
  Value* length = l.b.CreateAnd(l.Read(l.Op(4), ScalarType::kU32), 0xff);
  Value* mask = ShiftOrZero(l, LowMask(l, a->getType(), length), position, true);
  Value* inserted = l.b.CreateAnd(ShiftOrZero(l, a, position, true), mask);
  l.Write(l.Op(0), l.b.CreateOr(l.b.CreateAnd(b, l.b.CreateNot(mask)), inserted), type);
}

// szext: zero- or sign-extends the low b bits; .clamp takes more than 31 as the whole word, .wrap as b modulo 32.
template <>
void Lift<semantic::Szext>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = l.Read(l.Op(1), type);
  Value* b = l.Read(l.Op(2), ScalarType::kU32);
  Value* length = l.b.CreateAnd(b, 31);
  Value* low = LowMask(l, a->getType(), length);
  Value* result = l.b.CreateAnd(a, low);
  if (ptx::IsSigned(type)) {
    Value* sign_bit = l.b.CreateAnd(l.b.CreateLShr(l.b.CreateAdd(low, l.b.getInt32(1)), 1), low);
    Value* negative = l.b.CreateICmpNE(l.b.CreateAnd(a, sign_bit), l.b.getInt32(0));
    result = l.b.CreateSelect(negative, l.b.CreateOr(result, l.b.CreateNot(low)), result);
  }
  if (inst.Has(Mod::kClamp)) result = l.b.CreateSelect(l.b.CreateICmpUGE(b, l.b.getInt32(32)), a, result);
  l.Write(l.Op(0), result, type);
}

// bmsk: b ones from bit a on, cut at the top.
template <>
void Lift<semantic::Bmsk>(Lifter& l, const Instruction& inst) {
  Value* position = l.Read(l.Op(1), ScalarType::kU32);
  Value* length = l.Read(l.Op(2), ScalarType::kU32);
  if (!inst.Has(Mod::kClamp)) {
    position = l.b.CreateAnd(position, 31);
    length = l.b.CreateAnd(length, 31);
  }
  l.Write(l.Op(0), ShiftOrZero(l, LowMask(l, l.b.getInt32Ty(), length), position, true), ScalarType::kB32);
}

}  // namespace gridloom::exec
