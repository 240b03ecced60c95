// Values of the warp form: scalars, affine bases, lanes; plain instructions in their 32-lane form.
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/raw_ostream.h>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::Value;

llvm::Type* WarpType(llvm::Type* type, unsigned lanes) {
  if (auto* structure = llvm::dyn_cast<llvm::StructType>(type)) {
    llvm::SmallVector<llvm::Type*, 8> parts;
    for (llvm::Type* part : structure->elements()) parts.push_back(WarpType(part, lanes));
    return llvm::StructType::get(type->getContext(), parts);
  }
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type)) {
    return llvm::FixedVectorType::get(vector->getElementType(), vector->getNumElements() * lanes);
  }
  if (type->isVoidTy()) return type;
  return llvm::FixedVectorType::get(type, lanes);
}

llvm::Type* StorageType(llvm::Type* warp_type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(warp_type);
  if (!vector || !vector->getElementType()->isIntegerTy(1)) return warp_type;
  return llvm::Type::getIntNTy(warp_type->getContext(), vector->getNumElements());
}

const Shape& WarpFunction::ShapeOf(const Value* value) {
  auto [it, inserted] = shape_cache_.try_emplace(value);
  if (inserted) {
    it->second = shapes_->Of(value);
    // A value no path defines (unreachable code) can be anything.
    if (it->second.kind == ShapeKind::kUnknown) it->second = VectorShape();
  }
  return it->second;
}

bool WarpFunction::UsedOutside(const llvm::Instruction& instruction) {
  for (const llvm::User* user : instruction.users()) {
    const auto* at = llvm::cast<llvm::Instruction>(user);
    if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(at)) {
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
        if (phi->getIncomingValue(i) == &instruction && phi->getIncomingBlock(i) != instruction.getParent())
          return true;
      }
    } else if (at->getParent() != instruction.getParent()) {
      return true;
    }
  }
  return false;
}

llvm::AllocaInst* WarpFunction::SlotOf(const llvm::Instruction* instruction) {
  llvm::AllocaInst*& slot = slots_[instruction];
  if (!slot) {
    llvm::Type* type =
        ShapeOf(instruction).vector() ? StorageType(WarpType(instruction->getType())) : instruction->getType();
    llvm::IRBuilder<> at(entry_, entry_->begin());
    slot = at.CreateAlloca(type);
  }
  return slot;
}

Value* WarpFunction::LoadSlot(const llvm::Instruction* instruction) {
  llvm::AllocaInst* slot = SlotOf(instruction);
  Value* value = b_.CreateLoad(slot->getAllocatedType(), slot);
  if (!ShapeOf(instruction).vector()) return value;
  llvm::Type* type = WarpType(instruction->getType());
  return type == slot->getAllocatedType() ? value : b_.CreateBitCast(value, type);
}

/// `mask` (i32) limits the store to those lanes; null stores all.
void WarpFunction::StoreSlot(const llvm::Instruction* instruction, Value* value, Value* mask) {
  llvm::AllocaInst* slot = SlotOf(instruction);
  llvm::Type* type = slot->getAllocatedType();
  if (mask && llvm::isa<llvm::ConstantInt>(mask)) mask = nullptr;
  if (type->isStructTy()) {
    if (mask) value = SelectLanes(ToLaneMask(mask), value, b_.CreateLoad(type, slot));
    b_.CreateStore(value, slot);
    return;
  }
  if (value->getType() != type) value = b_.CreateBitCast(value, type);
  if (mask) {
    Value* old = b_.CreateLoad(type, slot);
    if (type->isIntegerTy(32) && !ShapeOf(instruction).uniform() && instruction->getType()->isIntegerTy(1)) {
      value = b_.CreateOr(b_.CreateAnd(value, mask), b_.CreateAnd(old, b_.CreateNot(mask)));
    } else if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
               vector && vector->getNumElements() != kWarpSize) {
      llvm::SmallVector<int, 128> repeat;
      const unsigned count = vector->getNumElements() / kWarpSize;
      for (unsigned i = 0; i < vector->getNumElements(); ++i) repeat.push_back(static_cast<int>(i / count));
      value = b_.CreateSelect(b_.CreateShuffleVector(ToLaneMask(mask), repeat), value, old);
    } else {
      value = b_.CreateSelect(ToLaneMask(mask), value, old);
    }
  }
  b_.CreateStore(value, slot);
}

/// select(lanes, chosen, otherwise), for structs part by part.
Value* WarpFunction::SelectLanes(Value* lanes, Value* chosen, Value* otherwise) {
  if (!chosen->getType()->isStructTy()) return b_.CreateSelect(lanes, chosen, otherwise);
  Value* merged = otherwise;
  for (unsigned i = 0; i < chosen->getType()->getStructNumElements(); ++i) {
    Value* part = b_.CreateSelect(lanes, b_.CreateExtractValue(chosen, i), b_.CreateExtractValue(otherwise, i));
    merged = b_.CreateInsertValue(merged, part, i);
  }
  return merged;
}

Value* WarpFunction::Splat(Value* scalar) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(scalar->getType())) {
    llvm::SmallVector<int, 128> repeat;
    for (unsigned lane = 0; lane < width_; ++lane) {
      for (unsigned i = 0; i < vector->getNumElements(); ++i) repeat.push_back(static_cast<int>(i));
    }
    return b_.CreateShuffleVector(scalar, repeat);
  }
  if (auto* structure = llvm::dyn_cast<llvm::StructType>(scalar->getType())) {
    Value* out = llvm::PoisonValue::get(LanesType(structure));
    for (unsigned i = 0; i < structure->getNumElements(); ++i) {
      out = b_.CreateInsertValue(out, Splat(b_.CreateExtractValue(scalar, i)), i);
    }
    return out;
  }
  return b_.CreateVectorSplat(width_, scalar);
}

Value* WarpFunction::PatternVector(const LanePattern& pattern, llvm::Type* element) {
  llvm::SmallVector<llvm::Constant*, 32> lanes;
  for (const std::int64_t value : pattern)
    lanes.push_back(llvm::ConstantInt::get(element, static_cast<std::uint64_t>(value), true));
  Value* whole = llvm::ConstantVector::get(lanes);
  return half_warp() ? Pack(whole) : whole;
}

Value* WarpFunction::Base(Value* value) {
  if (llvm::isa<llvm::Constant>(value)) return value;
  if (auto it = base_cache_.find(value); it != base_cache_.end()) return it->second;
  auto* instruction = llvm::cast<llvm::Instruction>(value);
  Value* loaded = IsEntryValue(value) ? EntryBase(instruction) : LoadSlot(instruction);
  base_cache_[value] = loaded;
  return loaded;
}

Value* WarpFunction::Lanes(Value* value) {
  if (llvm::isa<llvm::UndefValue>(value)) return llvm::Constant::getNullValue(LanesType(value->getType()));
  if (llvm::isa<llvm::Constant>(value)) return Splat(value);
  if (auto it = lanes_cache_.find(value); it != lanes_cache_.end()) return it->second;
  Value* lanes = nullptr;
  if (auto* argument = llvm::dyn_cast<llvm::Argument>(value)) {
    lanes = target_->getArg(argument->getArgNo() + 2);
  } else {
    const Shape shape = ShapeOf(value);
    lanes = shape.vector() ? LoadSlot(llvm::cast<llvm::Instruction>(value)) : Materialize(value, shape);
  }
  lanes_cache_[value] = lanes;
  return lanes;
}

/// All lanes of a value kept as a scalar.
Value* WarpFunction::Materialize(Value* value, const Shape& shape) {
  Value* lanes = Splat(Base(value));
  if (shape.uniform()) return lanes;
  lanes = b_.CreateAdd(lanes, PatternVector(shape.pattern, value->getType()));
  if (shape.kind != ShapeKind::kIndexed) return lanes;
  Value* index = Lanes(const_cast<Value*>(shape.index));
  llvm::Type* wide = LanesType(value->getType());
  index = shape.index_signed ? b_.CreateSExt(index, wide) : b_.CreateZExt(index, wide);
  return b_.CreateAdd(lanes, b_.CreateMul(index, Splat(b_.getInt64(static_cast<std::uint64_t>(shape.scale)))));
}

void WarpFunction::Define(llvm::Instruction* instruction, Value* value) {
  const Shape& shape = ShapeOf(instruction);
  (shape.vector() ? lanes_cache_ : base_cache_)[instruction] = value;
  if (half_warp() || IsEntryValue(instruction) || (!UsedOutside(*instruction) && !shapes_->IsIndex(instruction)))
    return;
  // In lockstep a block runs once per iteration for all lanes that reach it, and loop results leave through phis: no
  // other lane can still need the old value. Out of step every definition keeps the lanes that are off.
  StoreSlot(instruction, value,
            shape.vector() && divergent_ && !shapes_->InStep(instruction->getParent()) ? mask_ : nullptr);
}

/// A mask (i32) as <width x i1>, and back.
Value* WarpFunction::ToLaneMask(Value* mask) {
  return b_.CreateBitCast(b_.CreateTrunc(mask, b_.getIntNTy(width_)), LanesType(b_.getInt1Ty()));
}

Value* WarpFunction::ToBits(Value* lane_mask) {
  return b_.CreateZExt(b_.CreateBitCast(lane_mask, b_.getIntNTy(width_)), b_.getInt32Ty());
}

Value* WarpFunction::MaskLanes() {
  if (!mask_lanes_) mask_lanes_ = ToLaneMask(mask_);
  return mask_lanes_;
}

// ---------------------------------------------------------------------------------------------------------------------
// Instructions
// ---------------------------------------------------------------------------------------------------------------------

void WarpFunction::EmitInstruction(llvm::Instruction& instruction) {
  if (llvm::isa<llvm::DbgInfoIntrinsic>(instruction)) return;
  b_.SetCurrentDebugLocation(instruction.getDebugLoc());
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    if (intrinsic->isAssumeLikeIntrinsic() && instruction.getType()->isVoidTy()) return;
  }
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
    if (const MarkerInfo* info = module_.MarkerOf(instruction)) return EmitMarker(*call, *info);
    if (!call->getCalledFunction() || !call->getCalledFunction()->isIntrinsic()) return EmitCall(*call);
  }
  const Shape shape = ShapeOf(&instruction);
  if (shape.vector()) return Define(&instruction, EmitLanes(instruction));
  if (shape.uniform()) {
    const bool scalar_operands = std::all_of(instruction.op_begin(), instruction.op_end(), [&](const llvm::Use& use) {
      return llvm::isa<llvm::Function>(use) || ShapeOf(use).uniform();
    });
    if (scalar_operands) return Define(&instruction, EmitScalar(instruction));
  }
  Define(&instruction, EmitAffineBase(instruction, shape));
}

/// A uniform instruction: itself on the scalars.
Value* WarpFunction::EmitScalar(llvm::Instruction& instruction) {
  llvm::Instruction* copy = instruction.clone();
  for (llvm::Use& use : copy->operands()) {
    if (!llvm::isa<llvm::Constant>(use)) use.set(Base(use.get()));
  }
  copy->setName("");
  copy->dropPoisonGeneratingFlags();
  copy->dropUnknownNonDebugMetadata();
  return b_.Insert(copy);
}

// Base of an affine or indexed result: the same operation on the bases, for what the pattern rules of ShapeAnalysis
// allow.
Value* WarpFunction::EmitAffineBase(llvm::Instruction& instruction, const Shape& shape) {
  llvm::Type* type = instruction.getType();
  if (llvm::isa<llvm::SExtInst>(instruction) || llvm::isa<llvm::ZExtInst>(instruction)) {
    if (shape.kind == ShapeKind::kIndexed) return llvm::Constant::getNullValue(type);
    // Lanes are known to lie in [0, 2^31), so the signed base plus the pattern is right for both extensions.
    return b_.CreateSExt(Base(instruction.getOperand(0)), type);
  }
  if (llvm::isa<llvm::TruncInst>(instruction)) return b_.CreateTrunc(Base(instruction.getOperand(0)), type);
  if (llvm::isa<llvm::FreezeInst>(instruction)) return Base(instruction.getOperand(0));
  if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction)) {
    return b_.CreateSelect(Base(select->getCondition()), Base(select->getTrueValue()), Base(select->getFalseValue()));
  }
  Value* a = Base(instruction.getOperand(0));
  Value* b = Base(instruction.getOperand(1));
  if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&instruction)) return b_.CreateICmp(compare->getPredicate(), a, b);
  switch (instruction.getOpcode()) {
    case llvm::Instruction::Or: return b_.CreateAdd(a, b);  // disjoint
    case llvm::Instruction::Xor: return a;                  // flips only pattern bits
    default: return b_.CreateBinOp(llvm::cast<llvm::BinaryOperator>(instruction).getOpcode(), a, b);
  }
}

Value* WarpFunction::EmitLanes(llvm::Instruction& instruction) {
  llvm::Type* type = LanesType(instruction.getType());
  switch (instruction.getOpcode()) {
    case llvm::Instruction::ICmp:
    case llvm::Instruction::FCmp:
      return b_.CreateCmp(llvm::cast<llvm::CmpInst>(instruction).getPredicate(), Lanes(instruction.getOperand(0)),
                          Lanes(instruction.getOperand(1)));
    case llvm::Instruction::Select: {
      Value* condition = instruction.getOperand(0);
      const bool uniform = ShapeOf(condition).uniform() && !condition->getType()->isVectorTy();
      Value* chooser = uniform ? Base(condition) : Lanes(condition);
      Value* a = Lanes(instruction.getOperand(1));
      Value* b = Lanes(instruction.getOperand(2));
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
    case llvm::Instruction::FNeg: return b_.CreateFNeg(Lanes(instruction.getOperand(0)));
    case llvm::Instruction::Freeze: return Lanes(instruction.getOperand(0));
    case llvm::Instruction::ExtractValue:
      return b_.CreateExtractValue(Lanes(instruction.getOperand(0)),
                                   llvm::cast<llvm::ExtractValueInst>(instruction).getIndices());
    case llvm::Instruction::InsertValue:
      return b_.CreateInsertValue(Lanes(instruction.getOperand(0)), Lanes(instruction.getOperand(1)),
                                  llvm::cast<llvm::InsertValueInst>(instruction).getIndices());
    case llvm::Instruction::ExtractElement:
    case llvm::Instruction::InsertElement:
    case llvm::Instruction::ShuffleVector: return EmitSmallVectorOp(instruction);
    case llvm::Instruction::Call: return EmitLanesIntrinsic(llvm::cast<llvm::CallInst>(instruction));
    default: break;
  }
  if (instruction.isCast()) {
    return b_.CreateCast(llvm::cast<llvm::CastInst>(instruction).getOpcode(), Lanes(instruction.getOperand(0)), type);
  }
  if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) return EmitLanesBinary(*binary);
  module_.error = std::string("instruction '") + instruction.getOpcodeName() + "' has no 32-lane form";
  return llvm::PoisonValue::get(type);
}

Value* WarpFunction::EmitLanesBinary(llvm::BinaryOperator& op) {
  Value* a = Lanes(op.getOperand(0));
  Value* b = Lanes(op.getOperand(1));
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
Value* WarpFunction::EmitDivision(unsigned opcode, Value* a, Value* b) {
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
Value* WarpFunction::EmitLanesIntrinsic(llvm::CallInst& call) {
  const llvm::Intrinsic::ID id = call.getCalledFunction()->getIntrinsicID();
  llvm::SmallVector<Value*, 4> args;
  for (unsigned i = 0; i < call.arg_size(); ++i) {
    const bool immediate = call.getCalledFunction()->getAttributes().hasParamAttr(i, llvm::Attribute::ImmArg) ||
                           (id == llvm::Intrinsic::powi && i == 1);
    args.push_back(immediate ? call.getArgOperand(i) : Lanes(call.getArgOperand(i)));
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
Value* WarpFunction::EmitSmallVectorOp(llvm::Instruction& instruction) {
  if (auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction)) {
    const unsigned count = llvm::cast<llvm::FixedVectorType>(extract->getVectorOperandType())->getNumElements();
    if (const auto* index = llvm::dyn_cast<llvm::ConstantInt>(extract->getIndexOperand())) {
      llvm::SmallVector<int, 32> pick;
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        pick.push_back(static_cast<int>(lane * count + index->getZExtValue()));
      return b_.CreateShuffleVector(Lanes(extract->getVectorOperand()), pick);
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
      Value* wide = b_.CreateShuffleVector(Lanes(insert->getOperand(1)), widen);
      return b_.CreateShuffleVector(Lanes(insert->getOperand(0)), wide, pick);
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
    return b_.CreateShuffleVector(Lanes(shuffle->getOperand(0)), Lanes(shuffle->getOperand(1)), pick);
  }
  module_.error = std::string("vector element access by a variable index");
  return llvm::PoisonValue::get(WarpType(instruction.getType()));
}

}  // namespace gridloom::exec
