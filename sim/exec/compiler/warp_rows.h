// Accesses that only look irregular: tests for rows when they run, and notes of what the tests have found.
#pragma once

#include "sim/exec/compiler/warp_builder.h"
#include "sim/exec/compiler/warp_places.h"

namespace gridloom::exec {

class WarpValues;

/// Where accesses go on: as rows, as one place, as any places, and behind all of them. A way that cannot be is null.
struct RowBlocks {
  llvm::BasicBlock *rows, *same, *others, *joined;
};

/// What a load has found out about its lanes.
struct RowNotes {
  const llvm::Value* index;
  std::int64_t step;
  llvm::AllocaInst* in_rows;  ///< i1
};

class RowAccess : Emitter {
 public:
  RowAccess(WarpBuilder& w, WarpValues& values) : Emitter(w), values_(values) {}

  Value* HalfAddress(const Irregular& at, unsigned half, const Window& window);
  RowBlocks SplitByRows(const Irregular& at, const Access& access, bool with_same);
  llvm::AllocaInst* RowNote(const llvm::CallInst& load, const Irregular& at, const Access& access);
  Value* RowsSeen(const llvm::CallInst& store, const Irregular& at, const Access& access);

  const llvm::MapVector<const llvm::CallInst*, RowNotes>& notes() const { return notes_; }

 private:
  Value* HalvesInStep(Value* lanes, std::int64_t step);
  static std::int64_t RowStep(const Irregular& at, const Access& access);

  WarpValues& values_;
  llvm::MapVector<const llvm::CallInst*, RowNotes> notes_;  ///< by load
  llvm::DenseMap<const Value*, llvm::SmallVector<const llvm::CallInst*, 2>> notes_by_index_;
};

}  // namespace gridloom::exec
