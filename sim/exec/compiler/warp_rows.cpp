// Rows: accesses that only look irregular (a row index times an unknown pitch, plus the column or not), but are
// consecutive or the same in each half of a warp when they run.
#include "sim/exec/compiler/warp_rows.h"

#include <llvm/Support/MathExtras.h>

#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// Distance of consecutive lanes in units of what the addresses are kept in, 0: never a whole number of them.
std::int64_t RowAccess::RowStep(const Irregular& at, const Access& access) {
  const std::int64_t unit = at.index ? at.factor << at.shift : 1;
  return access.bytes % unit == 0 ? access.bytes / unit : 0;
}

/// Where `load` writes down whether its lanes turned out to be rows, for stores to the same places; it says that they
/// have not yet. Only in lockstep is what it says of all lanes that come by: there a block runs once for all that reach
/// it.
llvm::AllocaInst* RowAccess::RowNote(const llvm::CallInst& load, const Irregular& at, const Access& access) {
  if (!source_.shapes.InStep(load.getParent()) || at.index == nullptr) return nullptr;
  auto [it, inserted] = notes_.try_emplace(&load);
  RowNotes& note = it->second;
  if (inserted) {
    llvm::IRBuilder<> entry(w_.entry, w_.entry->begin());
    note = {values_.ShapeOf(at.address).index, RowStep(at, access), entry.CreateAlloca(b_.getInt1Ty())};
    notes_by_index_[note.index].push_back(&load);
  }
  b_.CreateStore(b_.getFalse(), note.in_rows);
  return note.in_rows;
}

/// i1: the lanes of `store` are rows, as a load before it has found; null when there was none.
Value* RowAccess::RowsSeen(const llvm::CallInst& store, const Irregular& at, const Access& access) {
  if (at.index == nullptr || w_.half_warp()) return nullptr;
  for (const llvm::CallInst* load : notes_by_index_.lookup(values_.ShapeOf(at.address).index)) {
    const RowNotes& note = notes_.find(load)->second;
    if (note.step == RowStep(at, access) && source_.dominators.dominates(load, &store))
      return b_.CreateLoad(b_.getInt1Ty(), note.in_rows);
  }
  return nullptr;
}

/// i1: the active lanes of each half lie `step` apart, in units of what the addresses are kept in.
Value* RowAccess::HalvesInStep(Value* lanes, std::int64_t step) {
  LanePattern steps;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) steps[lane] = static_cast<std::int64_t>(lane % kHalfWarp) * step;
  Value* starts = b_.CreateSub(lanes, w_.PatternVector(steps, lanes->getType()->getScalarType()));
  llvm::SmallVector<int, 32> first;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) first.push_back(static_cast<int>(lane / kHalfWarp * kHalfWarp));
  Value* differ = b_.CreateICmpNE(starts, b_.CreateShuffleVector(starts, first));
  if (w_.divergent) differ = b_.CreateAnd(differ, w_.MaskLanes());
  return b_.CreateICmpEQ(w_.ToBits(differ), b_.getInt32(0));
}

/// The host address (i64) of the first lane of a half.
Value* RowAccess::HalfAddress(const Irregular& at, unsigned half, const Window& window) {
  Value* start = nullptr;
  if (at.index) {
    Value* index = b_.CreateSExt(b_.CreateExtractElement(at.index, std::uint64_t{half * kHalfWarp}), b_.getInt64Ty());
    start = b_.CreateAdd(values_.Base(at.address),
                         b_.CreateMul(index, b_.getInt64(static_cast<std::uint64_t>(at.factor << at.shift))));
  } else {
    start = b_.CreateExtractElement(at.lanes, std::uint64_t{half * kHalfWarp});
  }
  return window.host ? b_.CreateAdd(start, window.host) : start;
}

// Addresses that only look irregular (a row index times an unknown pitch, plus the column or not) often are consecutive
// or the same in each half. Goes to a new block for each case; the first two lanes decide which full test is worth its
// time.
RowBlocks RowAccess::SplitByRows(const Irregular& at, const Access& access, bool with_same) {
  if (w_.divergent) w_.MaskLanes();
  Value* lanes = at.index ? at.index : at.lanes;
  const std::int64_t step = RowStep(at, access);
  const bool local = access.space == Space::kLocal;  // lanes have memories of their own
  const RowBlocks split{!local && step != 0 ? w_.NewBlock("rows") : nullptr,
                        !local && with_same ? w_.NewBlock("same") : nullptr, w_.NewBlock("others"),
                        w_.NewBlock("joined")};
  Value* apart =
      b_.CreateSub(b_.CreateExtractElement(lanes, std::uint64_t{1}), b_.CreateExtractElement(lanes, std::uint64_t{0}));
  if (split.rows && split.same && llvm::isPowerOf2_64(static_cast<std::uint64_t>(step))) {
    // Neither: one test for both, because that is what real gathers pay.
    BasicBlock* either = w_.NewBlock("either");
    Value* rest = b_.CreateAnd(apart, llvm::ConstantInt::get(apart->getType(), ~static_cast<std::uint64_t>(step)));
    b_.CreateCondBr(b_.CreateICmpEQ(rest, llvm::ConstantInt::get(apart->getType(), 0)), either, split.others);
    b_.SetInsertPoint(either);
  }
  const auto branch = [&](BasicBlock* to, std::int64_t distance, const char* name) {
    if (!to) return;
    BasicBlock* test = w_.NewBlock("test");
    BasicBlock* next = w_.NewBlock(name);
    b_.CreateCondBr(
        b_.CreateICmpEQ(apart, llvm::ConstantInt::get(apart->getType(), static_cast<std::uint64_t>(distance))), test,
        next);
    b_.SetInsertPoint(test);
    b_.CreateCondBr(HalvesInStep(lanes, distance), to, split.others);
    b_.SetInsertPoint(next);
  };
  branch(split.rows, step, "not_rows");
  branch(split.same, 0, "not_same");
  b_.CreateBr(split.others);
  return split;
}

}  // namespace gridloom::exec
