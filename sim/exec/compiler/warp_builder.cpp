// The builder that all emitters of a function share: fields of the warp, masks, lanes, buffers.
#include "sim/exec/compiler/warp_builder.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/PatternMatch.h>

#include <cstddef>

#include "sim/exec/compiler/turns.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

BasicBlock* WarpBuilder::NewBlock(const char* name) { return BasicBlock::Create(b.getContext(), name, target); }

llvm::MDNode* WarpBuilder::Unlikely() { return llvm::MDBuilder(b.getContext()).createBranchWeights(1, 2000); }

llvm::MDNode* WarpBuilder::Likely() { return llvm::MDBuilder(b.getContext()).createBranchWeights(2000, 1); }

Value* WarpBuilder::AtEntry(const std::string& key, const std::function<Value*()>& make) {
  if (auto it = entry_values.find(key); it != entry_values.end()) return it->second;
  llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(head->getTerminator());
  Value* value = make();
  entry_values[key] = value;
  return value;
}

Value* WarpBuilder::FieldOf(Value* base, char which, std::size_t offset, llvm::Type* type) {
  return AtEntry(FieldKey(which, offset), [&]() -> Value* {
    auto* load = b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
    return load;
  });
}

Value* WarpBuilder::ExitedMask() {
  return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), warp, offsetof(WarpCtx, exited_mask));
}

Value* WarpBuilder::WarpField(std::size_t offset, llvm::Type* type) { return FieldOf(warp, 'w', offset, type); }

Value* WarpBuilder::LaunchField(std::size_t offset, llvm::Type* type) {
  return FieldOf(WarpField(offsetof(WarpCtx, launch), b.getPtrTy()), 'l', offset, type);
}

Value* WarpBuilder::CtaField(std::size_t offset, llvm::Type* type) {
  return FieldOf(WarpField(offsetof(WarpCtx, cta), b.getPtrTy()), 'c', offset, type);
}

Value* WarpBuilder::Scratch(unsigned slot, unsigned bytes) {
  auto& [buffer, size] = scratch[slot];
  bytes = std::max(bytes, 128u);
  if (!buffer) {
    llvm::IRBuilder<> at(entry, entry->begin());
    buffer = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), bytes));
    buffer->setAlignment(llvm::Align(64));
    MarkShared(*buffer);
    size = bytes;
  } else if (size < bytes) {
    buffer->setAllocatedType(llvm::ArrayType::get(b.getInt8Ty(), bytes));
    size = bytes;
  }
  return buffer;
}

Value* WarpBuilder::SpillLanes(unsigned slot, Value* lanes) {
  llvm::Type* type = StorageType(lanes->getType());
  if (type != lanes->getType()) lanes = b.CreateBitCast(lanes, type);
  const unsigned bytes = static_cast<unsigned>(target->getParent()->getDataLayout().getTypeStoreSize(type));
  Value* buffer = Scratch(slot, bytes);
  b.CreateAlignedStore(lanes, buffer, llvm::Align(64));
  return buffer;
}

Value* WarpBuilder::ReloadLanes(Value* buffer, llvm::Type* warp_type) {
  llvm::Type* type = StorageType(warp_type);
  Value* value = b.CreateAlignedLoad(type, buffer, llvm::Align(64));
  return type == warp_type ? value : b.CreateBitCast(value, warp_type);
}

/// <32 x i1>: the active lanes.
Value* WarpBuilder::ActiveLanes() {
  return divergent ? MaskLanes() : llvm::Constant::getAllOnesValue(LanesType(b.getInt1Ty()));
}

/// select(lanes, chosen, otherwise), for structs part by part.
Value* WarpBuilder::SelectLanes(Value* lanes, Value* chosen, Value* otherwise) {
  if (!chosen->getType()->isStructTy()) return b.CreateSelect(lanes, chosen, otherwise);
  Value* merged = otherwise;
  for (unsigned i = 0; i < chosen->getType()->getStructNumElements(); ++i) {
    Value* part = b.CreateSelect(lanes, b.CreateExtractValue(chosen, i), b.CreateExtractValue(otherwise, i));
    merged = b.CreateInsertValue(merged, part, i);
  }
  return merged;
}

Value* WarpBuilder::Splat(Value* scalar) {
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(scalar->getType())) {
    llvm::SmallVector<int, 128> repeat;
    for (unsigned lane = 0; lane < width; ++lane) {
      for (unsigned i = 0; i < vector->getNumElements(); ++i) repeat.push_back(static_cast<int>(i));
    }
    return b.CreateShuffleVector(scalar, repeat);
  }
  if (auto* structure = llvm::dyn_cast<llvm::StructType>(scalar->getType())) {
    Value* out = llvm::PoisonValue::get(LanesType(structure));
    for (unsigned i = 0; i < structure->getNumElements(); ++i) {
      out = b.CreateInsertValue(out, Splat(b.CreateExtractValue(scalar, i)), i);
    }
    return out;
  }
  return b.CreateVectorSplat(width, scalar);
}

Value* WarpBuilder::PatternVector(const LanePattern& pattern, llvm::Type* element) {
  llvm::SmallVector<llvm::Constant*, 32> lanes;
  for (const std::int64_t value : pattern)
    lanes.push_back(llvm::ConstantInt::get(element, static_cast<std::uint64_t>(value), true));
  Value* whole = llvm::ConstantVector::get(lanes);
  return half_warp() ? Pack(whole) : whole;
}

/// A mask (i32) as <width x i1>. Without AVX-512 a mask is no register: LLVM would take it apart bit by bit, in 100
/// instructions for 32 lanes. Where it was made of lanes those are taken; else each lane looks at its bit of all.
Value* WarpBuilder::ToLaneMask(Value* mask) {
  if (module.avx512 || half_warp())
    return b.CreateBitCast(b.CreateTrunc(mask, b.getIntNTy(width)), LanesType(b.getInt1Ty()));
  if (auto it = lanes_of_mask.find(mask); it != lanes_of_mask.end()) return it->second;
  Value* others = nullptr;
  if (llvm::PatternMatch::match(mask, llvm::PatternMatch::m_Not(llvm::PatternMatch::m_Value(others)))) {
    if (auto it = lanes_of_mask.find(others); it != lanes_of_mask.end()) return b.CreateNot(it->second);
  }
  LanePattern bits;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) bits[lane] = std::int64_t{1} << lane;
  Value* own = PatternVector(bits, b.getInt32Ty());
  return b.CreateICmpEQ(b.CreateAnd(Splat(mask), own), own);
}

/// And back.
Value* WarpBuilder::ToBits(Value* lane_mask) {
  Value* bits = b.CreateZExt(b.CreateBitCast(lane_mask, b.getIntNTy(width)), b.getInt32Ty());
  if (!llvm::isa<llvm::Constant>(bits)) lanes_of_mask[bits] = lane_mask;
  return bits;
}

Value* WarpBuilder::MaskLanes() {
  if (!mask_lanes) mask_lanes = ToLaneMask(mask);
  return mask_lanes;
}

void WarpBuilder::BeginBlock(unsigned index, bool in_divergent_copy) {
  current = index;
  divergent = divergent_copy = in_divergent_copy;
  base_cache.clear();
  lanes_cache.clear();
  mask_lanes = nullptr;
}

}  // namespace gridloom::exec
