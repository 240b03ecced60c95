// Integer arithmetic (PTX ISA, 9.7.1 and 9.7.2).
#include "sim/exec/compiler/lift_fuse.h"
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

}  // namespace

llvm::AllocaInst* FunctionLifter::CarrySlot() {
  if (!carry_) carry_ = EntryAlloca(b_.getInt1Ty(), "cc");
  return carry_;
}

// d = a + b (+ CC), or a - b (- borrow), and the carry out of it. A GPU subtracts as a + ~b + 1: after sub.cc the flag
// is set where nothing was borrowed, and subc borrows where it is clear. PTX ISA 9.7.2 does not tell, but the code that
// NVVM emits for division of 128-bit numbers reads the flag of sub.cc by addc, and add.cc of 0 and 0 makes a subc
// borrow on real devices (stackoverflow.com/questions/66403252).
void FunctionLifter::LiftCarry(const Instruction& inst, Value* a, Value* b, bool subtract) {
  const bool with_carry = inst.opcode == Opcode::kAddc || inst.opcode == Opcode::kSubc || inst.opcode == Opcode::kMadc;
  Value* result = subtract ? b_.CreateSub(a, b) : b_.CreateAdd(a, b);
  Value* out = subtract ? b_.CreateICmpULT(a, b) : b_.CreateICmpULT(result, a);
  if (with_carry) {
    Value* flag = b_.CreateLoad(b_.getInt1Ty(), CarrySlot());
    Value* in = b_.CreateZExt(subtract ? b_.CreateNot(flag) : flag, a->getType());
    Value* partial = result;
    result = subtract ? b_.CreateSub(partial, in) : b_.CreateAdd(partial, in);
    out = b_.CreateOr(out, subtract ? b_.CreateICmpULT(partial, in) : b_.CreateICmpULT(result, in));
  }
  if (subtract) out = b_.CreateNot(out);
  Write(Op(0), result, inst.type());
  if (!inst.Has(Mod::kCc)) return;
  if (guard_) out = b_.CreateSelect(guard_, out, b_.CreateLoad(b_.getInt1Ty(), CarrySlot()));
  b_.CreateStore(out, CarrySlot());
}

template <>
void FunctionLifter::Lift<semantic::AddSub>(const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatArithmetic(inst);
  const bool subtract = inst.opcode == Opcode::kSub || inst.opcode == Opcode::kSubc;
  Value* a = Read(Op(1), type);
  Value* b = Read(Op(2), type);
  if (inst.Has(Mod::kCc) || inst.opcode == Opcode::kAddc || inst.opcode == Opcode::kSubc)
    return LiftCarry(inst, a, b, subtract);
  auto combine = [&](Value* x, Value* y) -> Value* {
    if (!inst.Has(Mod::kSat)) return subtract ? b_.CreateSub(x, y) : b_.CreateAdd(x, y);
    const bool is_signed = IsSignedType(type);
    return b_.CreateBinaryIntrinsic(subtract ? (is_signed ? llvm::Intrinsic::ssub_sat : llvm::Intrinsic::usub_sat)
                                             : (is_signed ? llvm::Intrinsic::sadd_sat : llvm::Intrinsic::uadd_sat),
                                    x, y);
  };
  Write(Op(0), MapLanes(a, b, Lanes(type), combine), type);
}

// High half of the full product.
Value* FunctionLifter::MulHigh(Value* a, Value* b, bool is_signed) {
  const unsigned bits = a->getType()->getIntegerBitWidth();
  auto* wide = b_.getIntNTy(bits * 2);
  Value* product = is_signed ? b_.CreateMul(b_.CreateSExt(a, wide), b_.CreateSExt(b, wide))
                             : b_.CreateMul(b_.CreateZExt(a, wide), b_.CreateZExt(b, wide));
  return b_.CreateTrunc(b_.CreateLShr(product, bits), a->getType());
}

// .lo, .hi or .wide product as the type it has.
Value* FunctionLifter::Product(const Instruction& inst, ScalarType& type) {
  const bool is_signed = IsSignedType(type);
  Value* a = Read(Op(1), type);
  Value* b = Read(Op(2), type);
  if (inst.Has(Mod::kHi)) return MulHigh(a, b, is_signed);
  if (!inst.Has(Mod::kWide)) return b_.CreateMul(a, b);
  type = Wider(type);
  if (type == ScalarType::kNone) RefuseInstruction("is not a valid width");
  return b_.CreateMul(Resize(a, TypeOf(type), is_signed), Resize(b, TypeOf(type), is_signed));
}

template <>
void FunctionLifter::Lift<semantic::Mul>(const Instruction& inst) {
  ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatArithmetic(inst);
  Value* product = Product(inst, type);
  Write(Op(0), product, type);
}

template <>
void FunctionLifter::Lift<semantic::Mad>(const Instruction& inst) {
  ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return Lift<semantic::Fma>(inst);
  Value* product = Product(inst, type);
  Value* c = Read(Op(3), type);
  if (inst.Has(Mod::kCc) || inst.opcode == Opcode::kMadc) return LiftCarry(inst, product, c, false);
  Value* sum =
      inst.Has(Mod::kSat) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, product, c) : b_.CreateAdd(product, c);
  Write(Op(0), sum, type);
}

// clmad.{lo,hi}.u64 d, a, b, c (ISA 9.3, 9.7.1.5): half of the product of polynomials over GF(2), xor c. Factors of
// every fourth bit have an ordinary product whose columns stand four bits apart. A column adds up 16 ones at most, its
// parity is its lowest bit, and only in the last one do they make a carry, which leaves the 64 bits. The high half is
// the low one of the factors with their bits in reverse.
template <>
void FunctionLifter::Lift<semantic::Clmad>(const Instruction& inst) {
  constexpr std::uint64_t kEveryFourth = 0x1111'1111'1111'1111;
  const bool high = inst.Has(Mod::kHi);
  if ((!high && !inst.Has(Mod::kLo)) || inst.type() != ScalarType::kU64) RefuseInstruction();
  const auto turned = [&](Value* x) { return high ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, x) : x; };
  Value* a = turned(Read(Op(1), ScalarType::kU64));
  Value* b = turned(Read(Op(2), ScalarType::kU64));
  Value* product = b_.getInt64(0);
  for (unsigned column = 0; column < 4; ++column) {
    Value* sum = b_.getInt64(0);
    for (unsigned bit = 0; bit < 4; ++bit) {
      Value* x = b_.CreateAnd(a, kEveryFourth << bit);
      Value* y = b_.CreateAnd(b, kEveryFourth << (column + 4 - bit) % 4);
      sum = b_.CreateXor(sum, b_.CreateMul(x, y));
    }
    product = b_.CreateOr(product, b_.CreateAnd(sum, kEveryFourth << column));
  }
  if (high) product = b_.CreateLShr(turned(product), 1);
  Write(Op(0), b_.CreateXor(product, Read(Op(3), ScalarType::kU64)), ScalarType::kU64);
}

// mul24, mad24: product of the low 24 bits; .lo its bits 0 to 31, .hi its bits 16 to 47.
template <>
void FunctionLifter::Lift<semantic::Mul24>(const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool is_signed = IsSignedType(type);
  auto narrow = [&](const Operand& operand) {
    Value* low = b_.CreateTrunc(Read(operand, type), b_.getIntNTy(24));
    return is_signed ? b_.CreateSExt(low, b_.getInt64Ty()) : b_.CreateZExt(low, b_.getInt64Ty());
  };
  Value* product = b_.CreateMul(narrow(Op(1)), narrow(Op(2)));
  if (inst.Has(Mod::kHi)) product = b_.CreateLShr(product, 16);
  Value* result = b_.CreateTrunc(product, b_.getInt32Ty());
  if (inst.opcode == Opcode::kMad24) {
    Value* c = Read(Op(3), type);
    result =
        inst.Has(Mod::kSat) ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, result, c) : b_.CreateAdd(result, c);
  }
  Write(Op(0), result, type);
}

// Division by zero gives all ones, as hardware does; the most negative number divided by -1 wraps.
template <>
void FunctionLifter::Lift<semantic::DivRem>(const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatDivide(inst);
  if (type != ScalarType::kU32) MarkBranches(b_);
  const bool is_signed = IsSignedType(type);
  const bool remainder = inst.opcode == Opcode::kRem;
  Value* a = Read(Op(1), type);
  Value* b = Read(Op(2), type);
  auto* all_ones = llvm::Constant::getAllOnesValue(a->getType());
  Value* one = llvm::ConstantInt::get(a->getType(), 1);
  Value* is_zero = b_.CreateICmpEQ(b, llvm::Constant::getNullValue(b->getType()));
  Value* is_minus_one = is_signed ? b_.CreateICmpEQ(b, all_ones) : nullptr;
  Value* divisor = b_.CreateSelect(is_signed ? b_.CreateOr(is_zero, is_minus_one) : is_zero, one, b);
  Value* result = remainder ? (is_signed ? b_.CreateSRem(a, divisor) : b_.CreateURem(a, divisor))
                            : (is_signed ? b_.CreateSDiv(a, divisor) : b_.CreateUDiv(a, divisor));
  if (is_signed && !remainder) result = b_.CreateSelect(is_minus_one, b_.CreateNeg(a), result);
  Write(Op(0), b_.CreateSelect(is_zero, all_ones, result), type);
}

// sad: c + |a - b|
template <>
void FunctionLifter::Lift<semantic::Sad>(const Instruction& inst) {
  const ScalarType type = inst.type();
  const bool is_signed = IsSignedType(type);
  Value* a = Read(Op(1), type);
  Value* b = Read(Op(2), type);
  Value* difference = b_.CreateSub(MinMax(a, b, is_signed, true), MinMax(a, b, is_signed, false));
  Write(Op(0), b_.CreateAdd(Read(Op(3), type), difference), type);
}

template <>
void FunctionLifter::Lift<semantic::AbsNeg>(const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return Lift<semantic::FloatUnary>(inst);
  auto of_lane = [&](Value* a, Value*) -> Value* {
    Value* negated = b_.CreateNeg(a);
    if (inst.opcode == Opcode::kNeg) return negated;
    return b_.CreateSelect(b_.CreateICmpSLT(a, llvm::Constant::getNullValue(a->getType())), negated, a);
  };
  Value* a = Read(Op(1), type);
  Write(Op(0), MapLanes(a, a, Lanes(type), of_lane), type);
}

Value* FunctionLifter::MinMax(Value* a, Value* b, bool is_signed, bool max) {
  using llvm::Intrinsic::ID;
  const ID id = max ? (is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax)
                    : (is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
  return b_.CreateBinaryIntrinsic(id, a, b);
}

template <>
void FunctionLifter::Lift<semantic::MinMax>(const Instruction& inst) {
  const ScalarType type = inst.type();
  if (ptx::IsFloat(type)) return LiftFloatMinMax(inst);
  const bool max = inst.opcode == Opcode::kMax;
  auto combine = [&](Value* a, Value* b) -> Value* {
    Value* result = MinMax(a, b, IsSignedType(type), max);
    if (inst.Has(Mod::kRelu)) result = MinMax(result, llvm::Constant::getNullValue(result->getType()), true, true);
    return result;
  };
  Write(Op(0), MapLanes(Read(Op(1), type), Read(Op(2), type), Lanes(type), combine), type);
}

// dp4a: c + sum of four byte products; dp2a: c + a.h0 * b.b0 + a.h1 * b.b1, or b2 and b3 with .hi.
template <>
void FunctionLifter::Lift<semantic::DotProduct>(const Instruction& inst) {
  const bool four = inst.opcode == Opcode::kDp4a;
  const ScalarType a_type = inst.type(0), b_type = inst.type(1);
  const std::vector<Value*> a = SplitLanes(Read(Op(1), a_type), four ? 4 : 2);
  const std::vector<Value*> b = SplitLanes(Read(Op(2), b_type), 4);
  Value* sum = Read(Op(3), ScalarType::kB32);
  for (std::size_t i = 0; i < a.size(); ++i) {
    Value* x = Resize(a[i], b_.getInt32Ty(), IsSignedType(a_type));
    Value* y = Resize(b[inst.Has(Mod::kHi) ? i + 2 : i], b_.getInt32Ty(), IsSignedType(b_type));
    sum = b_.CreateAdd(sum, b_.CreateMul(x, y));
  }
  Write(Op(0), sum, ScalarType::kB32);
}

}  // namespace gridloom::exec
