#include "sim/exec/compiler/bytecode_expand.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <optional>

namespace gridloom::exec {

namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

Value* IsNegative(llvm::IRBuilderBase& b, Value* value) {
  return b.CreateICmpSLT(value, llvm::Constant::getNullValue(value->getType()));
}

// ---------------------------------------------------------------------------------------------------------------------
// Intrinsics
// ---------------------------------------------------------------------------------------------------------------------

/// The result of an operation and whether it did not fit, as a struct.
Value* WithOverflow(llvm::IRBuilderBase& b, Value* result, Value* overflow) {
  Value* both = llvm::PoisonValue::get(llvm::StructType::get(result->getType(), overflow->getType()));
  return b.CreateInsertValue(b.CreateInsertValue(both, result, 0), overflow, 1);
}

Value* SumWithOverflow(llvm::IRBuilderBase& b, Intrinsic::ID id, Value* x, Value* y) {
  const bool adds = id == Intrinsic::uadd_with_overflow || id == Intrinsic::sadd_with_overflow;
  Value* result = adds ? b.CreateAdd(x, y) : b.CreateSub(x, y);
  switch (id) {
    case Intrinsic::uadd_with_overflow: return WithOverflow(b, result, b.CreateICmpULT(result, x));
    case Intrinsic::usub_with_overflow: return WithOverflow(b, result, b.CreateICmpULT(x, y));
    // The result's sign is neither of those that were added, or not that of what was subtracted from, with signs that
    // differ.
    case Intrinsic::sadd_with_overflow:
      return WithOverflow(b, result, IsNegative(b, b.CreateAnd(b.CreateXor(x, result), b.CreateXor(y, result))));
    default: return WithOverflow(b, result, IsNegative(b, b.CreateAnd(b.CreateXor(x, y), b.CreateXor(x, result))));
  }
}

/// By a product of twice the width; where there is none, by dividing again.
Value* ProductWithOverflow(llvm::IRBuilderBase& b, bool is_signed, Value* x, Value* y) {
  llvm::Type* const type = x->getType();
  const unsigned width = type->getScalarSizeInBits();
  Value* const zero = llvm::Constant::getNullValue(type);
  if (width <= 64) {
    llvm::Type* const wide = type->getExtendedType();
    Value* exact = is_signed ? b.CreateMul(b.CreateSExt(x, wide), b.CreateSExt(y, wide))
                             : b.CreateMul(b.CreateZExt(x, wide), b.CreateZExt(y, wide));
    Value* result = b.CreateTrunc(exact, type);
    return WithOverflow(b, result,
                        b.CreateICmpNE(exact, is_signed ? b.CreateSExt(result, wide) : b.CreateZExt(result, wide)));
  }
  Value* result = b.CreateMul(x, y);
  Value* by_zero = b.CreateICmpEQ(x, zero);
  Value* divisor = b.CreateSelect(by_zero, llvm::ConstantInt::get(type, 1), x);
  if (!is_signed) {
    Value* differs = b.CreateICmpNE(b.CreateUDiv(result, divisor), y);
    return WithOverflow(b, result, b.CreateAnd(b.CreateNot(by_zero), differs));
  }
  // -1 times the least number is that number again, and no quotient tells.
  Value* by_minus_one = b.CreateICmpEQ(x, llvm::Constant::getAllOnesValue(type));
  divisor = b.CreateSelect(by_minus_one, llvm::ConstantInt::get(type, 1), divisor);
  Value* differs = b.CreateICmpNE(b.CreateSDiv(result, divisor), y);
  Value* least = b.CreateICmpEQ(y, llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(width)));
  return WithOverflow(b, result, b.CreateSelect(by_minus_one, least, b.CreateAnd(b.CreateNot(by_zero), differs)));
}

/// -1, 0 or 1.
Value* ThreeWay(llvm::IRBuilderBase& b, bool is_signed, Value* x, Value* y, llvm::Type* type) {
  Value* less = is_signed ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
  Value* greater = is_signed ? b.CreateICmpSGT(x, y) : b.CreateICmpUGT(x, y);
  return b.CreateSelect(less, llvm::Constant::getAllOnesValue(type), b.CreateZExt(greater, type));
}

/// A number beside a NaN is the result.
Value* MinMaxNumber(llvm::IRBuilderBase& b, bool least, Value* x, Value* y) {
  Value* first = least ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y);
  return b.CreateSelect(b.CreateOr(first, b.CreateFCmpUNO(y, y)), x, y);
}

/// A NaN is the result, and -0 is less than 0.
Value* MinMaxWithNaN(llvm::IRBuilderBase& b, bool least, Value* x, Value* y) {
  llvm::Type* const type = x->getType();
  llvm::Type* const bits = type->getWithNewBitWidth(type->getScalarSizeInBits());
  Value* zeros = least ? b.CreateOr(b.CreateBitCast(x, bits), b.CreateBitCast(y, bits))
                       : b.CreateAnd(b.CreateBitCast(x, bits), b.CreateBitCast(y, bits));
  Value* chosen = b.CreateSelect(least ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y), x, y);
  chosen = b.CreateSelect(b.CreateFCmpOEQ(x, y), b.CreateBitCast(zeros, type), chosen);
  return b.CreateSelect(b.CreateFCmpUNO(x, y), b.CreateFAdd(x, y), chosen);
}

/// A conversion that takes the nearest number there is, and 0 for a NaN.
Value* SaturatingConversion(llvm::IRBuilderBase& b, bool is_signed, Value* x, llvm::Type* to) {
  const unsigned width = to->getScalarSizeInBits();
  const llvm::APInt least = is_signed ? llvm::APInt::getSignedMinValue(width) : llvm::APInt(width, 0);
  const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width);
  const auto bound = [&](const llvm::APInt& number) {
    llvm::APFloat rounded(x->getType()->getScalarType()->getFltSemantics());
    rounded.convertFromAPInt(number, is_signed, llvm::APFloat::rmTowardZero);
    return llvm::ConstantFP::get(x->getType(), rounded);
  };
  Value* too_small = b.CreateFCmpOLT(x, bound(least));
  Value* too_large = b.CreateFCmpOGT(x, bound(most));
  Value* none = b.CreateFCmpUNO(x, x);
  Value* fits =
      b.CreateSelect(b.CreateOr(b.CreateOr(too_small, too_large), none), llvm::Constant::getNullValue(x->getType()), x);
  Value* converted = is_signed ? b.CreateFPToSI(fits, to) : b.CreateFPToUI(fits, to);
  converted = b.CreateSelect(too_small, llvm::ConstantInt::get(to, least), converted);
  return b.CreateSelect(too_large, llvm::ConstantInt::get(to, most), converted);
}

/// A half's class from its bits: `classes` is LLVM's set of them.
Value* HalfClass(llvm::IRBuilderBase& b, Value* x, unsigned classes) {
  llvm::Type* const type = x->getType()->getWithNewBitWidth(16);
  const auto number = [&](std::uint64_t value) { return llvm::ConstantInt::get(type, value); };
  Value* bits = b.CreateBitCast(x, type);
  Value* magnitude = b.CreateAnd(bits, number(0x7fff));
  Value* negative = IsNegative(b, bits);
  Value* found = llvm::Constant::getNullValue(negative->getType());
  const auto between = [&](unsigned first, unsigned last) {
    return b.CreateICmpULE(b.CreateSub(magnitude, number(first)), number(last - first));
  };
  const auto allow = [&](unsigned of_negative, unsigned of_positive, unsigned first, unsigned last) {
    if ((classes & (of_negative | of_positive)) == 0) return;
    Value* is = between(first, last);
    if ((classes & of_negative) == 0) is = b.CreateAnd(is, b.CreateNot(negative));
    if ((classes & of_positive) == 0) is = b.CreateAnd(is, negative);
    found = b.CreateOr(found, is);
  };
  allow(llvm::fcNegZero, llvm::fcPosZero, 0, 0);
  allow(llvm::fcNegSubnormal, llvm::fcPosSubnormal, 1, 0x3ff);
  allow(llvm::fcNegNormal, llvm::fcPosNormal, 0x400, 0x7bff);
  allow(llvm::fcNegInf, llvm::fcPosInf, 0x7c00, 0x7c00);
  if ((classes & llvm::fcSNan) != 0) found = b.CreateOr(found, between(0x7c01, 0x7dff));
  if ((classes & llvm::fcQNan) != 0) found = b.CreateOr(found, between(0x7e00, 0x7fff));
  return found;
}

/// A predicate as a number; the interpreter widens it to all types but half.
Value* HalfOfPredicate(llvm::IRBuilderBase& b, llvm::CastInst& cast) {
  const bool converts = llvm::isa<llvm::UIToFPInst, llvm::SIToFPInst>(cast);
  Value* const predicate = cast.getOperand(0);
  if (!converts || !cast.getType()->getScalarType()->isHalfTy() || !predicate->getType()->isIntOrIntVectorTy(1))
    return nullptr;
  const double one = llvm::isa<llvm::SIToFPInst>(cast) ? -1.0 : 1.0;
  return b.CreateSelect(predicate, llvm::ConstantFP::get(cast.getType(), one),
                        llvm::Constant::getNullValue(cast.getType()));
}

Value* Expand(llvm::Instruction& instruction) {
  llvm::IRBuilder<> builder(&instruction);
  if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) return HalfOfPredicate(builder, *cast);
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!call) return nullptr;
  return ExpandIntrinsic(builder, call->getIntrinsicID(), llvm::SmallVector<Value*, 3>(call->args()), call->getType());
}

void ExpandInstructions(llvm::Function& function) {
  for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
    Value* const expanded = Expand(instruction);
    if (!expanded) continue;
    instruction.replaceAllUsesWith(expanded);
    instruction.eraseFromParent();
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Integers of odd widths
// ---------------------------------------------------------------------------------------------------------------------

bool IsOdd(const llvm::Type* type) {
  if (!type->isIntegerTy()) return false;
  const unsigned width = type->getIntegerBitWidth();
  return width <= 128 && width != 1 && (width < 8 || (width & (width - 1)) != 0);
}

bool TouchesOdd(const llvm::Instruction& instruction) {
  return IsOdd(instruction.getType()) ||
         llvm::any_of(instruction.operands(), [](const llvm::Use& use) { return IsOdd(use->getType()); });
}

/// Values of odd widths in the next wider type, whose upper bits mean nothing: what they matter to takes them extended.
class WidenOdd {
 public:
  explicit WidenOdd(llvm::Function& function) : function_(function), b_(function.getContext()) {}

  void Run() {
    std::vector<llvm::Instruction*> odd;
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_)) {
      for (llvm::Instruction& instruction : *block) {
        if (!TouchesOdd(instruction)) continue;
        if (!Knows(instruction)) return;
        odd.push_back(&instruction);
      }
    }
    for (llvm::Instruction* instruction : odd) Widen(*instruction);
    for (llvm::Instruction* instruction : odd) {
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) FillPhi(*phi);
    }
    for (llvm::Instruction* instruction : odd)
      instruction->replaceAllUsesWith(llvm::PoisonValue::get(instruction->getType()));
    for (llvm::Instruction* instruction : odd) instruction->eraseFromParent();
  }

 private:
  static bool Knows(const llvm::Instruction& instruction) {
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
      switch (call->getIntrinsicID()) {
        case Intrinsic::bitreverse:
        case Intrinsic::bswap:
        case Intrinsic::ctpop:
        case Intrinsic::ctlz:
        case Intrinsic::cttz:
        case Intrinsic::abs:
        case Intrinsic::umin:
        case Intrinsic::umax:
        case Intrinsic::smin:
        case Intrinsic::smax:
        case Intrinsic::uadd_sat:
        case Intrinsic::usub_sat:
        case Intrinsic::sadd_sat:
        case Intrinsic::ssub_sat:
        case Intrinsic::fshl:
        case Intrinsic::fshr: return true;
        default: return false;
      }
    }
    if (llvm::isa<llvm::BitCastInst>(instruction)) return false;
    return llvm::isa<llvm::BinaryOperator, llvm::ICmpInst, llvm::SelectInst, llvm::CastInst, llvm::FreezeInst,
                     llvm::PHINode>(instruction);
  }

  llvm::Type* WideType(llvm::Type* type) {
    if (!IsOdd(type)) return type;
    return b_.getIntNTy(std::max(8u, static_cast<unsigned>(llvm::PowerOf2Ceil(type->getIntegerBitWidth()))));
  }
  /// With upper bits of any kind; what is not odd as it is.
  Value* Any(Value* value) {
    if (!IsOdd(value->getType())) return value;
    llvm::Type* const wide = WideType(value->getType());
    if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(value))
      return llvm::ConstantInt::get(wide, number->getValue().zext(wide->getIntegerBitWidth()));
    if (llvm::isa<llvm::Constant>(value)) return llvm::Constant::getNullValue(wide);
    return wide_.lookup(value);
  }
  Value* Unsigned(Value* value) {
    if (!IsOdd(value->getType())) return value;
    llvm::Type* const wide = WideType(value->getType());
    return b_.CreateAnd(
        Any(value), llvm::ConstantInt::get(wide, llvm::APInt::getLowBitsSet(wide->getIntegerBitWidth(), Bits(value))));
  }
  Value* Signed(Value* value) {
    if (!IsOdd(value->getType())) return value;
    const unsigned above = WideType(value->getType())->getIntegerBitWidth() - Bits(value);
    return b_.CreateAShr(b_.CreateShl(Any(value), above), above);
  }
  static unsigned Bits(const Value* value) { return value->getType()->getIntegerBitWidth(); }

  void Widen(llvm::Instruction& instruction) {
    llvm::Type* const type = WideType(instruction.getType());
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
      wide_[phi] = llvm::PHINode::Create(type, phi->getNumIncomingValues(), "", phi->getIterator());
      return;
    }
    b_.SetInsertPoint(&instruction);
    Value* made = Make(instruction, type);
    if (IsOdd(instruction.getType())) wide_[&instruction] = made;
    else instruction.replaceAllUsesWith(made);
  }
  void FillPhi(llvm::PHINode& phi) {
    auto* const wide = llvm::cast<llvm::PHINode>(wide_.lookup(&phi));
    for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
      wide->addIncoming(Any(phi.getIncomingValue(i)), phi.getIncomingBlock(i));
  }

  Value* Make(llvm::Instruction& instruction, llvm::Type* type) {
    Value* const x = instruction.getOperand(0);
    if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) return MakeIntrinsic(*call, type);
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction))
      return b_.CreateSelect(x, Any(select->getTrueValue()), Any(select->getFalseValue()));
    if (llvm::isa<llvm::FreezeInst>(instruction)) return b_.CreateFreeze(Any(x));
    if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction)) {
      Value* const y = compare->getOperand(1);
      return compare->isSigned() ? b_.CreateICmp(compare->getPredicate(), Signed(x), Signed(y))
                                 : b_.CreateICmp(compare->getPredicate(), Unsigned(x), Unsigned(y));
    }
    switch (instruction.getOpcode()) {
      case llvm::Instruction::ZExt: return b_.CreateZExtOrTrunc(Unsigned(x), type);
      case llvm::Instruction::SExt: return b_.CreateSExtOrTrunc(Signed(x), type);
      case llvm::Instruction::Trunc: return b_.CreateZExtOrTrunc(Any(x), type);
      case llvm::Instruction::UIToFP: return b_.CreateUIToFP(Unsigned(x), type);
      case llvm::Instruction::SIToFP: return b_.CreateSIToFP(Signed(x), type);
      case llvm::Instruction::FPToUI: return b_.CreateFPToUI(x, type);
      case llvm::Instruction::FPToSI: return b_.CreateFPToSI(x, type);
      default: return MakeBinary(llvm::cast<llvm::BinaryOperator>(instruction));
    }
  }

  Value* MakeBinary(llvm::BinaryOperator& op) {
    Value *const x = op.getOperand(0), *const y = op.getOperand(1);
    switch (op.getOpcode()) {
      case llvm::Instruction::Shl: return b_.CreateShl(Any(x), Unsigned(y));
      case llvm::Instruction::LShr: return b_.CreateLShr(Unsigned(x), Unsigned(y));
      case llvm::Instruction::AShr: return b_.CreateAShr(Signed(x), Unsigned(y));
      case llvm::Instruction::UDiv: return b_.CreateUDiv(Unsigned(x), Unsigned(y));
      case llvm::Instruction::URem: return b_.CreateURem(Unsigned(x), Unsigned(y));
      case llvm::Instruction::SDiv: return b_.CreateSDiv(Signed(x), Signed(y));
      case llvm::Instruction::SRem: return b_.CreateSRem(Signed(x), Signed(y));
      default: return b_.CreateBinOp(op.getOpcode(), Any(x), Any(y));
    }
  }

  Value* MakeIntrinsic(llvm::IntrinsicInst& call, llvm::Type* type) {
    const Intrinsic::ID id = call.getIntrinsicID();
    Value *const x = call.getArgOperand(0), *const y = call.arg_size() > 1 ? call.getArgOperand(1) : nullptr;
    const unsigned bits = Bits(x), above = type->getIntegerBitWidth() - bits;
    const auto number = [&](const llvm::APInt& value) { return llvm::ConstantInt::get(type, value); };
    const unsigned width = type->getIntegerBitWidth();
    const auto clamp = [&](Value* value) {
      Value* least =
          b_.CreateBinaryIntrinsic(Intrinsic::smin, value, number(llvm::APInt::getSignedMaxValue(bits).sext(width)));
      return b_.CreateBinaryIntrinsic(Intrinsic::smax, least, number(llvm::APInt::getSignedMinValue(bits).sext(width)));
    };
    switch (id) {
      case Intrinsic::bitreverse:
      case Intrinsic::bswap: return b_.CreateLShr(b_.CreateUnaryIntrinsic(id, Any(x)), above);
      case Intrinsic::ctpop: return b_.CreateUnaryIntrinsic(id, Unsigned(x));
      case Intrinsic::ctlz:
        return b_.CreateSub(b_.CreateBinaryIntrinsic(id, Unsigned(x), b_.getFalse()),
                            llvm::ConstantInt::get(type, above));
      case Intrinsic::cttz:
        return b_.CreateBinaryIntrinsic(id, b_.CreateOr(Any(x), number(llvm::APInt::getOneBitSet(width, bits))),
                                        b_.getFalse());
      case Intrinsic::abs: return b_.CreateBinaryIntrinsic(id, Signed(x), b_.getFalse());
      case Intrinsic::umin:
      case Intrinsic::umax: return b_.CreateBinaryIntrinsic(id, Unsigned(x), Unsigned(y));
      case Intrinsic::smin:
      case Intrinsic::smax: return b_.CreateBinaryIntrinsic(id, Signed(x), Signed(y));
      case Intrinsic::uadd_sat:
        return b_.CreateBinaryIntrinsic(Intrinsic::umin, b_.CreateAdd(Unsigned(x), Unsigned(y)),
                                        number(llvm::APInt::getLowBitsSet(width, bits)));
      case Intrinsic::usub_sat: return b_.CreateBinaryIntrinsic(id, Unsigned(x), Unsigned(y));
      case Intrinsic::sadd_sat: return clamp(b_.CreateAdd(Signed(x), Signed(y)));
      case Intrinsic::ssub_sat: return clamp(b_.CreateSub(Signed(x), Signed(y)));
      default: {  // funnel shifts
        Value* const distance = b_.CreateURem(Unsigned(call.getArgOperand(2)), llvm::ConstantInt::get(type, bits));
        Value* const rest = b_.CreateSub(llvm::ConstantInt::get(type, bits), distance);
        const bool left = id == Intrinsic::fshl;
        return b_.CreateOr(b_.CreateShl(Any(x), left ? distance : rest),
                           b_.CreateLShr(Unsigned(y), left ? rest : distance));
      }
    }
  }

  llvm::Function& function_;
  llvm::IRBuilder<> b_;
  llvm::DenseMap<const Value*, Value*> wide_;
};

}  // namespace

Value* ExpandIntrinsic(llvm::IRBuilderBase& b, Intrinsic::ID id, llvm::ArrayRef<Value*> arguments, llvm::Type* type) {
  switch (id) {
    case Intrinsic::uadd_with_overflow:
    case Intrinsic::usub_with_overflow:
    case Intrinsic::sadd_with_overflow:
    case Intrinsic::ssub_with_overflow: return SumWithOverflow(b, id, arguments[0], arguments[1]);
    case Intrinsic::umul_with_overflow: return ProductWithOverflow(b, false, arguments[0], arguments[1]);
    case Intrinsic::smul_with_overflow: return ProductWithOverflow(b, true, arguments[0], arguments[1]);
    case Intrinsic::ucmp: return ThreeWay(b, false, arguments[0], arguments[1], type);
    case Intrinsic::scmp: return ThreeWay(b, true, arguments[0], arguments[1], type);
    case Intrinsic::minnum: return MinMaxNumber(b, true, arguments[0], arguments[1]);
    case Intrinsic::maxnum: return MinMaxNumber(b, false, arguments[0], arguments[1]);
    case Intrinsic::minimum: return MinMaxWithNaN(b, true, arguments[0], arguments[1]);
    case Intrinsic::maximum: return MinMaxWithNaN(b, false, arguments[0], arguments[1]);
    case Intrinsic::fptoui_sat: return SaturatingConversion(b, false, arguments[0], type);
    case Intrinsic::fptosi_sat: return SaturatingConversion(b, true, arguments[0], type);
    case Intrinsic::is_fpclass:
      if (!arguments[0]->getType()->getScalarType()->isHalfTy()) return nullptr;
      return HalfClass(b, arguments[0],
                       static_cast<unsigned>(llvm::cast<llvm::ConstantInt>(arguments[1])->getZExtValue()));
    default: return nullptr;
  }
}

void ExpandForBytecode(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    ExpandInstructions(function);
    WidenOdd(function).Run();
  }
}

}  // namespace gridloom::exec
