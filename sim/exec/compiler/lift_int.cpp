// Integer arithmetic (PTX ISA, 9.7.1 and 9.7.2).
#include "sim/exec/compiler/lift_fuse.h"
#include "sim/exec/compiler/lift_parts.h"
#include "sim/exec/compiler/lifter.h"

namespace gridloom::exec {

namespace {

bool IsSignedType(ScalarType type) { return ptx::IsSigned(type); }

ScalarType Wider(ScalarType type) {
  switch (type) {
    case ScalarType::kU16: return ScalarType::kU32;
    case ScalarType::kS16: return ScalarType::kS32;
    case ScalarType::kU32: return ScalarType::kU64;
    case ScalarType::kS32: return ScalarType::kS64;
    default: return ScalarType::kNone;
  }
}

unsigned Lanes(ScalarType type) { return ptx::Info(type).lanes; }

llvm::AllocaInst* CarrySlot(Lifter& l) {
  if (!l.carry) l.carry = l.EntryAlloca(l.b.getInt1Ty(), "cc");
  return l.carry;
}

// d = a + b (+ CC), or a - b (- borrow), and the carry out of it. A GPU subtracts as a + ~b + 1: after sub.cc the flag
// is set where nothing was borrowed, and subc borrows where it is clear. PTX ISA 9.7.2 does not tell, but the code that
// NVVM emits for division of 128-bit numbers reads the flag of sub.cc by addc, and add.cc of 0 and 0 makes a subc
// borrow on real devices (stackoverflow.com/questions/66403252).
void LiftCarry(Lifter& l, const Instruction& inst, Value* a, Value* b, bool subtract) {
  const bool with_carry = inst.opcode == Opcode::kAddc || inst.opcode == Opcode::kSubc || inst.opcode == Opcode::kMadc;
  Value* result = subtract ? l.b.CreateSub(a, b) : l.b.CreateAdd(a, b);
  Value* out = subtract ? l.b.CreateICmpULT(a, b) : l.b.CreateICmpULT(result, a);
  if (with_carry) {
    Value* flag = l.b.CreateLoad(l.b.getInt1Ty(), CarrySlot(l));
    Value* in = l.b.CreateZExt(subtract ? l.b.CreateNot(flag) : flag, a->getType());
    Value* partial = result;
    result = subtract ? l.b.CreateSub(partial, in) : l.b.CreateAdd(partial, in);
    out = l.b.CreateOr(out, subtract ? l.b.CreateICmpULT(partial, in) : l.b.CreateICmpULT(result, in));
  }
  if (subtract) out = l.b.CreateNot(out);
  l.Write(l.Op(0), result, inst.type());
  if (!inst.Has(Mod::kCc)) return;
  if (l.guard) out = l.b.CreateSelect(l.guard, out, l.b.CreateLoad(l.b.getInt1Ty(), CarrySlot(l)));
  l.b.CreateStore(out, CarrySlot(l));
}

}  // namespace

template <>
void Lift<semantic::AddSub>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatArithmetic(l, inst);
  const bool subtract = inst.opcode == Opcode::kSub || inst.opcode == Opcode::kSubc;
  Value* a = l.Read(l.Op(1), type);
  Value* b = l.Read(l.Op(2), type);
  if (inst.Has(Mod::kCc) || inst.opcode == Opcode::kAddc || inst.opcode == Opcode::kSubc)
    return LiftCarry(l, inst, a, b, subtract);
  auto combine = [&](Value* x, Value* y) -> Value* {
    if (!inst.Has(Mod::kSat)) return subtract ? l.b.CreateSub(x, y) : l.b.CreateAdd(x, y);
    const bool is_signed = IsSignedType(type);
    return l.b.CreateBinaryIntrinsic(subtract ? (is_signed ? llvm::Intrinsic::ssub_sat : llvm::Intrinsic::usub_sat)
                                              : (is_signed ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::uadd_sat),
                                     x, y);
  };
  l.Write(l.Op(0), l.MapLanes(a, b, Lanes(type), combine), type);
}

namespace {

// High half of the full product.
Value* MulHigh(Lifter& l, Value* a, Value* b, bool is_signed) {
  const unsigned bits = a->getType()->getIntegerBitWidth();
  auto* wide = l.b.getIntNTy(bits * 2);
  Value* product = is_signed ? l.b.CreateMul(l.b.CreateSExt(a, wide), l.b.CreateSExt(b, wide))
                             : l.b.CreateMul(l.b.CreateZExt(a, wide), l.b.CreateZExt(b, wide));
  return l.b.CreateTrunc(l.b.CreateLShr(product, bits), a->getType());
}

// .lo, .hi or .wide product as the type it has.
Value* Product(Lifter& l, const Instruction& inst, ScalarType& type) {
  const bool is_signed = IsSignedType(type);
  Value* a = l.Read(l.Op(1), type);
  Value* b = l.Read(l.Op(2), type);
  if (inst.Has(Mod::kHi)) return MulHigh(l, a, b, is_signed);
  if (!inst.Has(Mod::kWide)) return l.b.CreateMul(a, b);
  type = Wider(type);
  if (type == ScalarType::kNone) l.RefuseInstruction("is not a valid width");
  return l.b.CreateMul(l.Resize(a, l.TypeOf(type), is_signed), l.Resize(b, l.TypeOf(type), is_signed));
}

}  // namespace

template <>
void Lift<semantic::Mul>(Lifter& l, const Instruction& inst) {
  ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatArithmetic(l, inst);
  Value* product = Product(l, inst, type);
  l.Write(l.Op(0), product, type);
}

template <>
void Lift<semantic::Mad>(Lifter& l, const Instruction& inst) {
  ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return Lift<semantic::Fma>(l, inst);
  Value* product = Product(l, inst, type);
  Value* c = l.Read(l.Op(3), type);
  if (inst.Has(Mod::kCc) || inst.opcode == Opcode::kMadc) return LiftCarry(l, inst, product, c, false);
  Value* sum = inst.Has(Mod::kSat) ? l.b.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, c)
                                   : l.b.CreateAdd(product, c);
  l.Write(l.Op(0), sum, type);
}

// clmad.{lo,hi}.u64 d, a, b, c (ISA 9.3, 9.7.1.5): half of the product of polynomials over GF(2), xor c. Factors of
// every fourth bit have an ordinary product whose columns stand four bits apart. A column adds up 16 ones at most, its
// parity is its lowest bit, and only in the last one do they make a carry, which leaves the 64 bits. The high half is
// the low one of the factors with their bits in reverse.
template <>
void Lift<semantic::Clmad>(Lifter& l, const Instruction& inst) {
  constexpr std::uint64_t kEveryFourth = 0x1111'1111'1111'1111;
  const bool high = inst.Has(Mod::kHi);
  if ((!high && !inst.Has(Mod::kLo)) || inst.type() != ScalarType::kU64) l.RefuseInstruction();
  const auto turned = [&](Value* x) { return high ? l.b.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, x) : x; };
  Value* a = turned(l.Read(l.Op(1), ScalarType::kU64));
  Value* b = turned(l.Read(l.Op(2), ScalarType::kU64));
  Value* product = l.b.getInt64(0);
  for (unsigned column = 0; column < 4; ++column) {
    Value* sum = l.b.getInt64(0);
    for (unsigned bit = 0; bit < 4; ++bit) {
      Value* x = l.b.CreateAnd(a, kEveryFourth << bit);
      Value* y = l.b.CreateAnd(b, kEveryFourth << (column + 4 - bit) % 4);
      sum = l.b.CreateXor(sum, l.b.CreateMul(x, y));
    }
    product = l.b.CreateOr(product, l.b.CreateAnd(sum, kEveryFourth << column));
  }
  if (high) product = l.b.CreateLShr(turned(product), 1);
  l.Write(l.Op(0), l.b.CreateXor(product, l.Read(l.Op(3), ScalarType::kU64)), ScalarType::kU64);
}

// mul24, mad24: product of the low 24 bits; .lo its bits 0 to 31, .hi its bits 16 to 47.
template <>
void Lift<semantic::Mul24>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool is_signed = IsSignedType(type);
  auto narrow = [&](const Operand& operand) {
    Value* low = l.b.CreateTrunc(l.Read(operand, type), l.b.getIntNTy(24));
    return is_signed ? l.b.CreateSExt(low, l.b.getInt64Ty()) : l.b.CreateZExt(low, l.b.getInt64Ty());
  };
  Value* product = l.b.CreateMul(narrow(l.Op(1)), narrow(l.Op(2)));
  if (inst.Has(Mod::kHi)) product = l.b.CreateLShr(product, 16);
  Value* result = l.b.CreateTrunc(product, l.b.getInt32Ty());
  if (inst.opcode == Opcode::kMad24) {
    Value* c = l.Read(l.Op(3), type);
    result = inst.Has(Mod::kSat) ? l.b.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, result, c)
                                 : l.b.CreateAdd(result, c);
  }
  l.Write(l.Op(0), result, type);
}

// Division by zero gives all ones, as hardware does; the most negative number divided by -1 wraps.
template <>
void Lift<semantic::DivRem>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatDivide(l, inst);
  if (type != ScalarType::kU32) MarkBranches(l.b);
  const bool is_signed = IsSignedType(type);
  const bool remainder = inst.opcode == Opcode::kRem;
  Value* a = l.Read(l.Op(1), type);
  Value* b = l.Read(l.Op(2), type);
  auto* all_ones = llvm::Constant::getAllOnesValue(a->getType());
  Value* one = llvm::ConstantInt::get(a->getType(), 1);
  Value* is_zero = l.b.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType()));
  Value* is_minus_one = is_signed ? l.b.CreateICmpEQ(b, all_ones) : nullptr;
  Value* divisor = l.b.CreateSelect(is_signed ? l.b.CreateOr(is_zero, is_minus_one) : is_zero, one, b);
  Value* result = remainder ? (is_signed ? l.b.CreateSRem(a, divisor) : l.b.CreateURem(a, divisor))
                            : (is_signed ? l.b.CreateSDiv(a, divisor) : l.b.CreateUDiv(a, divisor));
  if (is_signed && !remainder) result = l.b.CreateSelect(is_minus_one, l.b.CreateNeg(a), result);
  l.Write(l.Op(0), l.b.CreateSelect(is_zero, all_ones, result), type);
}

// sad: c + |a - b|
template <>
void Lift<semantic::Sad>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool is_signed = IsSignedType(type);
  Value* a = l.Read(l.Op(1), type);
  Value* b = l.Read(l.Op(2), type);
  Value* difference = l.b.CreateSub(MinMax(l, a, b, is_signed, true), MinMax(l, a, b, is_signed, false));
  l.Write(l.Op(0), l.b.CreateAdd(l.Read(l.Op(3), type), difference), type);
}

template <>
void Lift<semantic::AbsNeg>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return Lift<semantic::FloatUnary>(l, inst);
  auto of_lane = [&](Value* a, Value*) -> Value* {
    Value* negated = l.b.CreateNeg(a);
    if (inst.opcode == Opcode::kNeg) return negated;
    return l.b.CreateSelect(l.b.CreateICmpSLT(a, llvm::Constant::getNullValue(a->getType())), negated, a);
  };
  Value* a = l.Read(l.Op(1), type);
  l.Write(l.Op(0), l.MapLanes(a, a, Lanes(type), of_lane), type);
}

Value* MinMax(Lifter& l, Value* a, Value* b, bool is_signed, bool max) {
  using llvm::Intrinsic::ID;
  const ID id = max ? (is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax)
                    : (is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
  return l.b.CreateBinaryIntrinsic(id, a, b);
}

template <>
void Lift<semantic::MinMax>(Lifter& l, const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatMinMax(l, inst);
  const bool max = inst.opcode == Opcode::kMax;
  auto combine = [&](Value* a, Value* b) -> Value* {
    Value* result = MinMax(l, a, b, IsSignedType(type), max);
    if (inst.Has(Mod::kRelu)) result = MinMax(l, result, llvm::Constant::getNullValue(result->getType()), true, true);
    return result;
  };
  l.Write(l.Op(0), l.MapLanes(l.Read(l.Op(1), type), l.Read(l.Op(2), type), Lanes(type), combine), type);
}

// dp4a: c + sum of four byte products; dp2a: c + a.h0 * b.b0 + a.h1 * b.b1, or b2 and b3 with .hi.
template <>
void Lift<semantic::DotProduct>(Lifter& l, const Instruction& inst) {
  const bool four = inst.opcode == Opcode::kDp4a;
  const ScalarType a_type = inst.type(0), b_type = inst.type(1);
  const std::vector<Value*> a = l.SplitLanes(l.Read(l.Op(1), a_type), four ? 4 : 2);
  const std::vector<Value*> b = l.SplitLanes(l.Read(l.Op(2), b_type), 4);
  Value* sum = l.Read(l.Op(3), ScalarType::kB32);
  for (std::size_t i = 0; i < a.size(); ++i) {
    Value* x = l.Resize(a[i], l.b.getInt32Ty(), IsSignedType(a_type));
    Value* y = l.Resize(b[inst.Has(Mod::kHi) ? i + 2 : i], l.b.getInt32Ty(), IsSignedType(b_type));
    sum = l.b.CreateAdd(sum, l.b.CreateMul(x, y));
  }
  l.Write(l.Op(0), sum, ScalarType::kB32);
}

}  // namespace gridloom::exec
