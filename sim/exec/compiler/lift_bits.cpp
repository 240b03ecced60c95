// Bit counting, bit fields and masks (PTX ISA, 9.7.1.14 to 9.7.1.22).
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

Value* FunctionLifter::Ctlz(Value* a) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, b_.getFalse()); }

template <>
void FunctionLifter::Lift<semantic::BitCount>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = Read(Op(1), type);
  if (inst.opcode == Opcode::kBrev) return Write(Op(0), b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, a), type);
  Value* count = inst.opcode == Opcode::kClz ? Ctlz(a) : b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a);
  Write(Op(0), b_.CreateZExtOrTrunc(count, b_.getInt32Ty()), ScalarType::kU32);
}

// bfind: place of the highest bit that is not a sign bit, -1 when there is none; .shiftamt: its distance from the top.
template <>
void FunctionLifter::Lift<semantic::Bfind>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = Read(Op(1), type);
  const unsigned top = a->getType()->getIntegerBitWidth() - 1;
  if (ptx::IsSigned(type)) a = b_.CreateXor(a, b_.CreateAShr(a, top));
  Value* distance = b_.CreateZExtOrTrunc(Ctlz(a), b_.getInt32Ty());
  Value* none = b_.CreateICmpEQ(a, llvm::Constant::getNullValue(a->getType()));
  Value* place = inst.Has(Mod::kShiftamt) ? distance : b_.CreateSub(b_.getInt32(top), distance);
  Write(Op(0), b_.CreateSelect(none, b_.getInt32(~0u), place), ScalarType::kU32);
}

// fns: place of the n-th set bit of `mask` counted from `base`, upwards for a positive `offset`, downwards for a
// negative one; offset 0 asks for bit `base` itself. Searched by halves, counting set bits.
template <>
void FunctionLifter::Lift<semantic::Fns>(const Instruction&) {
  Value* mask = Read(Op(1), ScalarType::kB32);
  Value* base = Read(Op(2), ScalarType::kU32);
  Value* offset = Read(Op(3), ScalarType::kS32);
  Value* zero = b_.getInt32(0);
  Value* one = b_.getInt32(1);
  Value* backwards = b_.CreateICmpSLT(offset, zero);
  Value* itself = b_.CreateICmpEQ(offset, zero);
  Value* bit = ShiftOrZero(one, base, true);
  Value* upwards = b_.CreateAnd(mask, ShiftOrZero(b_.getInt32(~0u), base, true));
  Value* downwards = b_.CreateAnd(mask, b_.CreateOr(b_.CreateSub(bit, one), bit));
  downwards = b_.CreateSelect(b_.CreateICmpUGE(base, b_.getInt32(32)), zero, downwards);
  Value* bits = b_.CreateSelect(backwards, b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, downwards), upwards);
  bits = b_.CreateSelect(itself, b_.CreateAnd(mask, bit), bits);
  Value* rank =
      b_.CreateSelect(itself, zero, b_.CreateSub(b_.CreateSelect(backwards, b_.CreateNeg(offset), offset), one));
  Value* found = b_.CreateICmpULT(rank, b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits));
  Value* place = zero;
  for (std::uint32_t half = 16; half != 0; half /= 2) {
    Value* low = b_.CreateAnd(b_.CreateLShr(bits, place), b_.getInt32((1u << half) - 1));
    Value* count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, low);
    Value* above = b_.CreateICmpUGE(rank, count);
    rank = b_.CreateSelect(above, b_.CreateSub(rank, count), rank);
    place = b_.CreateSelect(above, b_.CreateAdd(place, b_.getInt32(half)), place);
    place = b_.CreateAnd(place, 31);
  }
  place = b_.CreateSelect(backwards, b_.CreateSub(b_.getInt32(31), place), place);
  Write(Op(0), b_.CreateSelect(found, place, b_.getInt32(~0u)), ScalarType::kU32);
}

// Low `length` bits set, all of them from the width on.
Value* FunctionLifter::LowMask(llvm::Type* type, Value* length) {
  return b_.CreateNot(ShiftOrZero(llvm::Constant::getAllOnesValue(type), length, true));
}

template <>
void FunctionLifter::Lift<semantic::Bfe>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = Read(Op(1), type);
  Value* position = b_.CreateAnd(Read(Op(2), ScalarType::kU32), 0xff);
  Value* length = b_.CreateAnd(Read(Op(3), ScalarType::kU32), 0xff);
  if (!ptx::IsSigned(type)) {
    return Write(Op(0), b_.CreateAnd(ShiftOrZero(a, position, false), LowMask(a->getType(), length)), type);
  }
  // Bits above the word are copies of its sign, and so is the extracted field's sign when it reaches beyond.
  Value* field = ShiftSigned(a, position);
  Value* width = b_.getInt32(a->getType()->getIntegerBitWidth());
  Value* unused = b_.CreateZExtOrTrunc(
      b_.CreateSub(width, MinMax(MinMax(length, width, false, false), b_.getInt32(1), false, true)), a->getType());
  field = b_.CreateAShr(b_.CreateShl(field, unused), unused);
  Value* empty = b_.CreateICmpEQ(length, b_.getInt32(0));
  Write(Op(0), b_.CreateSelect(empty, llvm::Constant::getNullValue(a->getType()), field), type);
}

template <>
void FunctionLifter::Lift<semantic::Bfi>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = Read(Op(1), type);
  Value* b = Read(Op(2), type);
  Value* position = b_.CreateAnd(Read(Op(3), ScalarType::kU32), 0xff);
  Value* length = b_.CreateAnd(Read(Op(4), ScalarType::kU32), 0xff);
  Value* mask = ShiftOrZero(LowMask(a->getType(), length), position, true);
  Value* inserted = b_.CreateAnd(ShiftOrZero(a, position, true), mask);
  Write(Op(0), b_.CreateOr(b_.CreateAnd(b, b_.CreateNot(mask)), inserted), type);
}

// szext: zero- or sign-extends the low b bits; .clamp takes more than 31 as the whole word, .wrap as b modulo 32.
template <>
void FunctionLifter::Lift<semantic::Szext>(const Instruction& inst) {
  const ScalarType type = inst.type();
  Value* a = Read(Op(1), type);
  Value* b = Read(Op(2), ScalarType::kU32);
  Value* length = b_.CreateAnd(b, 31);
  Value* low = LowMask(a->getType(), length);
  Value* result = b_.CreateAnd(a, low);
  if (ptx::IsSigned(type)) {
    Value* sign_bit = b_.CreateAnd(b_.CreateLShr(b_.CreateAdd(low, b_.getInt32(1)), 1), low);
    Value* negative = b_.CreateICmpNE(b_.CreateAnd(a, sign_bit), b_.getInt32(0));
    result = b_.CreateSelect(negative, b_.CreateOr(result, b_.CreateNot(low)), result);
  }
  if (inst.Has(Mod::kClamp)) result = b_.CreateSelect(b_.CreateICmpUGE(b, b_.getInt32(32)), a, result);
  Write(Op(0), result, type);
}

// bmsk: b ones from bit a on, cut at the top.
template <>
void FunctionLifter::Lift<semantic::Bmsk>(const Instruction& inst) {
  Value* position = Read(Op(1), ScalarType::kU32);
  Value* length = Read(Op(2), ScalarType::kU32);
  if (!inst.Has(Mod::kClamp)) {
    position = b_.CreateAnd(position, 31);
    length = b_.CreateAnd(length, 31);
  }
  Write(Op(0), ShiftOrZero(LowMask(b_.getInt32Ty(), length), position, true), ScalarType::kB32);
}

}  // namespace gridloom::exec
