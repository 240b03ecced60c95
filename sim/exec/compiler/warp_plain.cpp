// Plain instructions in their form for a warp.
#include "sim/exec/compiler/warp_plain.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>

#include "sim/exec/compiler/warp_blocks.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::Value;

/// A uniform instruction: itself on the scalars.
Value* PlainEmitter::EmitScalar(llvm::Instruction& instruction) {
  llvm::Instruction* copy = instruction.clone();
  for (llvm::Use& use : copy->operands()) {
    if (!llvm::isa<llvm::Constant>(use)) use.set(values_.Base(use.get()));
  }
  copy->setName("");
  copy->dropPoisonGeneratingFlags();
  copy->dropUnknownNonDebugMetadata();
  return b_.Insert(copy);
}

// Base of an affine or indexed result: the same operation on the bases, for what the pattern rules of ShapeAnalysis
// allow.
Value* PlainEmitter::EmitAffineBase(llvm::Instruction& instruction, const Shape& shape) {
  llvm::Type* type = instruction.getType();
  if (llvm::isa<llvm::SExtInst>(instruction) || llvm::isa<llvm::ZExtInst>(instruction)) {
    if (shape.kind == ShapeKind::kIndexed) return llvm::Constant::getNullValue(type);
    // Lanes are known to lie in [0, 2^31), so the signed base plus the pattern is right for both extensions.
    return b_.CreateSExt(values_.Base(instruction.getOperand(0)), type);
  }
  if (llvm::isa<llvm::TruncInst>(instruction)) return b_.CreateTrunc(values_.Base(instruction.getOperand(0)), type);
  if (llvm::isa<llvm::FreezeInst>(instruction)) return values_.Base(instruction.getOperand(0));
  if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction)) {
    return b_.CreateSelect(values_.Base(select->getCondition()), values_.Base(select->getTrueValue()),
                           values_.Base(select->getFalseValue()));
  }
  Value* a = values_.Base(instruction.getOperand(0));
  Value* b = values_.Base(instruction.getOperand(1));
  if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction)) return b_.CreateICmp(compare->getPredicate(), a, b);
  switch (instruction.getOpcode()) {
    case llvm::Instruction::Or: return b_.CreateAdd(a, b);  // disjoint
    case llvm::Instruction::Xor: return a;                  // flips only pattern bits
    default: return b_.CreateBinOp(llvm::cast<llvm::BinaryOperator>(instruction).getOpcode(), a, b);
  }
}

Value* PlainEmitter::EmitLanes(llvm::Instruction& instruction) {
  llvm::Type* type = w_.LanesType(instruction.getType());
  switch (instruction.getOpcode()) {
    case llvm::Instruction::ICmp:
    case llvm::Instruction::FCmp:
      return b_.CreateCmp(llvm::cast<llvm::CmpInst>(instruction).getPredicate(),
                          values_.Lanes(instruction.getOperand(0)), values_.Lanes(instruction.getOperand(1)));
    case llvm::Instruction::Select: {
      Value* condition = instruction.getOperand(0);
      const bool uniform = values_.ShapeOf(condition).uniform() && !condition->getType()->isVectorTy();
      Value* chooser = uniform ? values_.Base(condition) : values_.Lanes(condition);
      Value* a = values_.Lanes(instruction.getOperand(1));
      Value* b = values_.Lanes(instruction.getOperand(2));
      if (!uniform && chooser->getType() != b_.getInt1Ty()) {
        auto* wide = llvm::dyn_cast<llvm::FixedVectorType>(a->getType());
        const unsigned lanes = llvm::cast<llvm::FixedVectorType>(chooser->getType())->getNumElements();
        if (wide && wide->getNumElements() != lanes) {
          llvm::SmallVector<int, 128> repeat;
          for (unsigned i = 0; i < wide->getNumElements(); ++i)
            repeat.push_back(static_cast<int>(i / (wide->getNumElements() / lanes)));
          chooser = b_.CreateShuffleVector(chooser, repeat);
        }
      }
      return b_.CreateSelect(chooser, a, b);
    }
    case llvm::Instruction::FNeg: return b_.CreateFNeg(values_.Lanes(instruction.getOperand(0)));
    case llvm::Instruction::Freeze: return values_.Lanes(instruction.getOperand(0));
    case llvm::Instruction::ExtractValue:
      return b_.CreateExtractValue(values_.Lanes(instruction.getOperand(0)),
                                   llvm::cast<llvm::ExtractValueInst>(instruction).getIndices());
    case llvm::Instruction::InsertValue:
      return b_.CreateInsertValue(values_.Lanes(instruction.getOperand(0)), values_.Lanes(instruction.getOperand(1)),
                                  llvm::cast<llvm::InsertValueInst>(instruction).getIndices());
    case llvm::Instruction::ExtractElement:
    case llvm::Instruction::InsertElement:
    case llvm::Instruction::ShuffleVector: return EmitSmallVectorOp(instruction);
    case llvm::Instruction::Call: return EmitLanesIntrinsic(llvm::cast<llvm::CallInst>(instruction));
    default: break;
  }
  if (instruction.isCast()) {
    return b_.CreateCast(llvm::cast<llvm::CastInst>(instruction).getOpcode(), values_.Lanes(instruction.getOperand(0)),
                         type);
  }
  if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) return EmitLanesBinary(*binary);
  module_.error = std::string("instruction '") + instruction.getOpcodeName() + "' has no 32-lane form";
  return llvm::PoisonValue::get(type);
}

Value* PlainEmitter::EmitLanesBinary(llvm::BinaryOperator& op) {
  Value* a = values_.Lanes(op.getOperand(0));
  Value* b = values_.Lanes(op.getOperand(1));
  switch (op.getOpcode()) {
    case llvm::Instruction::UDiv:
    case llvm::Instruction::SDiv:
    case llvm::Instruction::URem:
    case llvm::Instruction::SRem: return EmitDivision(op.getOpcode(), a, b);
    case llvm::Instruction::FDiv:
      if (module_.avx512 && op.getType()->isFloatTy() &&
          llvm::PatternMatch::match(op.getOperand(0), llvm::PatternMatch::m_FPOne())) {
        return EmitReciprocal(b);
      }
      [[fallthrough]];
    default: return b_.CreateBinOp(op.getOpcode(), a, b);
  }
}

// Lanes that are off may hold any divisor, so the guard the program has does not protect them: every division is made
// total. 32 bits and less go through f64, which is exact: a/b rounded to 53 bits never reaches the next integer.
Value* PlainEmitter::EmitDivision(unsigned opcode, Value* a, Value* b) {
  const bool is_signed = opcode == llvm::Instruction::SDiv || opcode == llvm::Instruction::SRem;
  const bool remainder = opcode == llvm::Instruction::URem || opcode == llvm::Instruction::SRem;
  llvm::Type* type = a->getType();
  const unsigned bits = type->getScalarSizeInBits();
  if (llvm::isa<llvm::ConstantDataVector>(b) && b_.CreateIsNotNull(b) &&
      llvm::cast<llvm::Constant>(b)->getSplatValue() &&
      !llvm::cast<llvm::Constant>(b)->getSplatValue()->isNullValue() &&
      !llvm::cast<llvm::Constant>(b)->getSplatValue()->isAllOnesValue()) {
    return b_.CreateBinOp(static_cast<llvm::Instruction::BinaryOps>(opcode), a, b);  // LLVM multiplies instead
  }
  Value* one = llvm::ConstantInt::get(type, 1);
  Value* safe = b_.CreateSelect(b_.CreateIsNull(b), one, b);
  if (bits <= 32) {
    llvm::Type* real = llvm::FixedVectorType::get(b_.getDoubleTy(), kWarpSize);
    llvm::Type* wide = llvm::FixedVectorType::get(b_.getInt64Ty(), kWarpSize);
    const auto to_real = [&](Value* v) { return is_signed ? b_.CreateSIToFP(v, real) : b_.CreateUIToFP(v, real); };
    Value* quotient = b_.CreateFDiv(to_real(a), to_real(safe));
    quotient = b_.CreateTrunc(b_.CreateFPToSI(quotient, wide), type);
    return remainder ? b_.CreateSub(a, b_.CreateMul(quotient, safe)) : quotient;
  }
  if (!is_signed) return b_.CreateBinOp(static_cast<llvm::Instruction::BinaryOps>(opcode), a, safe);
  Value* minus_one = b_.CreateICmpEQ(safe, llvm::Constant::getAllOnesValue(type));
  Value* quotient =
      b_.CreateBinOp(static_cast<llvm::Instruction::BinaryOps>(opcode), a, b_.CreateSelect(minus_one, one, safe));
  Value* special = remainder ? llvm::Constant::getNullValue(type) : b_.CreateNeg(a);
  return b_.CreateSelect(minus_one, special, quotient);
}

/// Element-wise intrinsics take their vector overload; operands that must stay scalar do.
Value* PlainEmitter::EmitLanesIntrinsic(llvm::CallInst& call) {
  const llvm::Intrinsic::ID id = call.getCalledFunction()->getIntrinsicID();
  llvm::SmallVector<Value*, 4> args;
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    const bool immediate = call.getCalledFunction()->getAttributes().hasParamAttr(i, llvm::Attribute::ImmArg) ||
                           (id == llvm::Intrinsic::powi && i == 1);
    args.push_back(immediate ? call.getArgOperand(i) : values_.Lanes(call.getArgOperand(i)));
  }
  // "Poison when zero" holds for lanes that are on; lanes that are off must stay harmless, too.
  if (id == llvm::Intrinsic::ctlz || id == llvm::Intrinsic::cttz || id == llvm::Intrinsic::abs) args[1] = b_.getFalse();
  switch (id) {
    case llvm::Intrinsic::abs:
    case llvm::Intrinsic::smax:
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::umax:
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::fshl:
    case llvm::Intrinsic::fshr:
    case llvm::Intrinsic::ctpop:
    case llvm::Intrinsic::ctlz:
    case llvm::Intrinsic::cttz:
    case llvm::Intrinsic::bswap:
    case llvm::Intrinsic::bitreverse:
    case llvm::Intrinsic::sadd_sat:
    case llvm::Intrinsic::uadd_sat:
    case llvm::Intrinsic::ssub_sat:
    case llvm::Intrinsic::usub_sat:
    case llvm::Intrinsic::fma:
    case llvm::Intrinsic::fabs:
    case llvm::Intrinsic::sqrt:
    case llvm::Intrinsic::copysign:
    case llvm::Intrinsic::minnum:
    case llvm::Intrinsic::maxnum:
    case llvm::Intrinsic::minimum:
    case llvm::Intrinsic::maximum:
    case llvm::Intrinsic::rint:
    case llvm::Intrinsic::nearbyint:
    case llvm::Intrinsic::floor:
    case llvm::Intrinsic::ceil:
    case llvm::Intrinsic::trunc:
    case llvm::Intrinsic::round:
    case llvm::Intrinsic::roundeven:
    case llvm::Intrinsic::sadd_with_overflow:
    case llvm::Intrinsic::uadd_with_overflow:
    case llvm::Intrinsic::ssub_with_overflow:
    case llvm::Intrinsic::usub_with_overflow:
    case llvm::Intrinsic::smul_with_overflow:
    case llvm::Intrinsic::umul_with_overflow: return b_.CreateIntrinsic(id, {args[0]->getType()}, args);
    case llvm::Intrinsic::fptosi_sat:
    case llvm::Intrinsic::fptoui_sat:
      return b_.CreateIntrinsic(id, {WarpType(call.getType()), args[0]->getType()}, args);
    case llvm::Intrinsic::is_fpclass: {
      return b_.CreateIntrinsic(id, {args[0]->getType()}, args);
    }
    default: break;
  }
  module_.error = std::string("intrinsic '") + call.getCalledFunction()->getName().str() + "' has no 32-lane form";
  return llvm::PoisonValue::get(WarpType(call.getType()));
}

/// Small vectors of one thread (f16x2 as <2 x half>) lie lane by lane: element i of lane l is element l*k+i.
Value* PlainEmitter::EmitSmallVectorOp(llvm::Instruction& instruction) {
  if (auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction)) {
    const unsigned count = llvm::cast<llvm::FixedVectorType>(extract->getVectorOperandType())->getNumElements();
    if (const auto* index = llvm::dyn_cast<llvm::ConstantInt>(extract->getIndexOperand())) {
      llvm::SmallVector<int, 32> pick;
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        pick.push_back(static_cast<int>(lane * count + index->getZExtValue()));
      return b_.CreateShuffleVector(values_.Lanes(extract->getVectorOperand()), pick);
    }
  }
  if (auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction)) {
    const unsigned count = llvm::cast<llvm::FixedVectorType>(insert->getType())->getNumElements();
    if (const auto* index = llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2))) {
      llvm::SmallVector<int, 128> widen, pick;
      for (unsigned i = 0; i < count * kWarpSize; ++i) {
        widen.push_back(static_cast<int>(i / count));
        pick.push_back(static_cast<int>(i % count == index->getZExtValue() ? i + count * kWarpSize : i));
      }
      Value* wide = b_.CreateShuffleVector(values_.Lanes(insert->getOperand(1)), widen);
      return b_.CreateShuffleVector(values_.Lanes(insert->getOperand(0)), wide, pick);
    }
  }
  if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction)) {
    const int in =
        static_cast<int>(llvm::cast<llvm::FixedVectorType>(shuffle->getOperand(0)->getType())->getNumElements());
    llvm::SmallVector<int, 128> pick;
    for (int lane = 0; lane < static_cast<int>(kWarpSize); ++lane) {
      for (const int source : shuffle->getShuffleMask()) {
        if (source < 0) {
          pick.push_back(-1);
        } else {
          pick.push_back(source < in ? lane * in + source : static_cast<int>(kWarpSize) * in + lane * in + source - in);
        }
      }
    }
    return b_.CreateShuffleVector(values_.Lanes(shuffle->getOperand(0)), values_.Lanes(shuffle->getOperand(1)), pick);
  }
  module_.error = std::string("vector element access by a variable index");
  return llvm::PoisonValue::get(WarpType(instruction.getType()));
}

void PlainEmitter::EmitPlain(llvm::Instruction& instruction) {
  const Shape shape = values_.ShapeOf(&instruction);
  if (shape.vector()) return values_.Define(&instruction, EmitLanes(instruction));
  if (shape.uniform()) {
    const bool scalar_operands = std::all_of(instruction.op_begin(), instruction.op_end(), [&](const llvm::Use& use) {
      return llvm::isa<llvm::Function>(use) || values_.ShapeOf(use).uniform();
    });
    if (scalar_operands) return values_.Define(&instruction, EmitScalar(instruction));
  }
  values_.Define(&instruction, EmitAffineBase(instruction, shape));
}

}  // namespace gridloom::exec
