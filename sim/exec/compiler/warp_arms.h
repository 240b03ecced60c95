// Short ifs, whose arms run under their masks in place.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class WarpValues;
class RecordGroups;
class BlockCopies;

class ArmEmitter : Emitter {
 public:
  ArmEmitter(WarpBuilder& w, WarpValues& values, RecordGroups& record_groups, BlockCopies& copies)
      : Emitter(w),
        values_(values),
        record_groups_(record_groups),
        copies_(copies),
        nests_(w.module.options.record == Recording::kNone && !w.module.memcheck()) {}

  /// Where both ways of a divergent branch meet again after small arms, or null.
  llvm::BasicBlock* JoinOfArms(const llvm::BranchInst& branch) const;
  /// The blocks of those arms.
  llvm::SmallVector<const llvm::BasicBlock*, 4> BlocksOfArms(const llvm::BranchInst& branch) const;
  void EmitArms(const llvm::BranchInst& branch, llvm::BasicBlock* join, Value* taken, bool both);

 private:
  struct Arm {
    llvm::SmallVector<const llvm::BasicBlock*, 4> blocks;
    unsigned cost = 0;
    llvm::BasicBlock* end = nullptr;  ///< where it leads; null: it is no small arm
  };
  bool AddTo(Arm& arm, const llvm::BasicBlock* block) const;
  bool AddIf(Arm& arm, const llvm::BasicBlock& block, unsigned depth, const llvm::BasicBlock*& join) const;
  Arm ArmFrom(const llvm::BasicBlock* first, const llvm::BasicBlock* from, unsigned depth) const;
  Arm ArmsOf(const llvm::BranchInst& branch, unsigned depth) const;
  llvm::BasicBlock* EmitArmBlock(llvm::BasicBlock& block);
  void EmitWays(const llvm::BranchInst& branch, llvm::BasicBlock* join, Value* taken, bool both);
  void EmitArm(llvm::BasicBlock* arm, llvm::BasicBlock* join, Value* mask, bool surely);

  WarpValues& values_;
  RecordGroups& record_groups_;
  BlockCopies& copies_;
  const bool nests_;  ///< arms may have ifs of their own; not where the order of blocks is recorded
};

}  // namespace gridloom::exec
