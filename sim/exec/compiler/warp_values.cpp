// Values of the warp form: scalars, affine bases, lanes.

#include "sim/exec/compiler/warp_values.h"

#include "sim/exec/compiler/warp_source.h"

namespace gridloom::exec {

using llvm::Value;

const Shape& WarpValues::ShapeOf(const Value* value) {
  auto [it, inserted] = shape_cache_.try_emplace(value);
  if (inserted) {
    it->second = source_.shapes.Of(value);
    // A value no path defines (unreachable code) can be anything.
    if (it->second.kind == ShapeKind::kUnknown) it->second = VectorShape();
  }
  return it->second;
}

llvm::AllocaInst* WarpValues::SlotOf(const llvm::Instruction* instruction) {
  llvm::AllocaInst*& slot = slots_[instruction];
  if (!slot) {
    llvm::Type* type =
        ShapeOf(instruction).vector() ? StorageType(WarpType(instruction->getType())) : instruction->getType();
    llvm::IRBuilder<> at(w_.entry, w_.entry->begin());
    slot = at.CreateAlloca(type);
  }
  return slot;
}

Value* WarpValues::LoadSlot(const llvm::Instruction* instruction) {
  llvm::AllocaInst* slot = SlotOf(instruction);
  Value* value = b_.CreateLoad(slot->getAllocatedType(), slot);
  if (!ShapeOf(instruction).vector()) return value;
  llvm::Type* type = WarpType(instruction->getType());
  return type == slot->getAllocatedType() ? value : b_.CreateBitCast(value, type);
}

/// `mask` (i32) limits the store to those lanes; null stores all.
void WarpValues::StoreSlot(const llvm::Instruction* instruction, Value* value, Value* mask) {
  llvm::AllocaInst* slot = SlotOf(instruction);
  llvm::Type* type = slot->getAllocatedType();
  if (mask && llvm::isa<llvm::ConstantInt>(mask)) mask = nullptr;
  if (type->isStructTy()) {
    if (mask) value = w_.SelectLanes(w_.ToLaneMask(mask), value, b_.CreateLoad(type, slot));
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
      value = b_.CreateSelect(b_.CreateShuffleVector(w_.ToLaneMask(mask), repeat), value, old);
    } else {
      value = b_.CreateSelect(w_.ToLaneMask(mask), value, old);
    }
  }
  b_.CreateStore(value, slot);
}

Value* WarpValues::Base(Value* value) {
  if (llvm::isa<llvm::Constant>(value)) return value;
  if (auto it = w_.base_cache.find(value); it != w_.base_cache.end()) return it->second;
  auto* instruction = llvm::cast<llvm::Instruction>(value);
  Value* loaded = IsEntryValue(value) ? EntryBase(instruction) : LoadSlot(instruction);
  w_.base_cache[value] = loaded;
  return loaded;
}

Value* WarpValues::Lanes(Value* value) {
  if (llvm::isa<llvm::UndefValue>(value)) return llvm::Constant::getNullValue(w_.LanesType(value->getType()));
  if (llvm::isa<llvm::Constant>(value)) return w_.Splat(value);
  if (auto it = w_.lanes_cache.find(value); it != w_.lanes_cache.end()) return it->second;
  Value* lanes = nullptr;
  if (auto* argument = llvm::dyn_cast<llvm::Argument>(value)) {
    lanes = w_.target->getArg(argument->getArgNo() + 2);
  } else {
    const Shape shape = ShapeOf(value);
    lanes = shape.vector() ? LoadSlot(llvm::cast<llvm::Instruction>(value)) : Materialize(value, shape);
  }
  w_.lanes_cache[value] = lanes;
  return lanes;
}

/// All lanes of a value kept as a scalar.
Value* WarpValues::Materialize(Value* value, const Shape& shape) {
  Value* lanes = w_.Splat(Base(value));
  if (shape.uniform()) return lanes;
  lanes = b_.CreateAdd(lanes, w_.PatternVector(shape.pattern, value->getType()));
  if (shape.kind != ShapeKind::kIndexed) return lanes;
  Value* index = Lanes(const_cast<Value*>(shape.index));
  llvm::Type* wide = w_.LanesType(value->getType());
  index = shape.index_signed ? b_.CreateSExt(index, wide) : b_.CreateZExt(index, wide);
  return b_.CreateAdd(lanes, b_.CreateMul(index, w_.Splat(b_.getInt64(static_cast<std::uint64_t>(shape.scale)))));
}

void WarpValues::Define(llvm::Instruction* instruction, Value* value) {
  const Shape& shape = ShapeOf(instruction);
  (shape.vector() ? w_.lanes_cache : w_.base_cache)[instruction] = value;
  if (w_.half_warp() || IsEntryValue(instruction) ||
      (!UsedOutside(*instruction) && !source_.shapes.IsIndex(instruction)))
    return;
  // In lockstep a block runs once per iteration for all lanes that reach it, and loop results leave through phis: no
  // other lane can still need the old value. Out of step every definition keeps the lanes that are off.
  StoreSlot(instruction, value,
            shape.vector() && w_.divergent && !source_.shapes.InStep(instruction->getParent()) ? w_.mask : nullptr);
}

}  // namespace gridloom::exec
