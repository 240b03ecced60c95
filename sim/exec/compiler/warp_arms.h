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
      : Emitter(w), values_(values), record_groups_(record_groups), copies_(copies) {}

  llvm::BasicBlock* JoinOfArms(const llvm::BranchInst& branch) const;
  void EmitArms(const llvm::BranchInst& branch, llvm::BasicBlock* join, Value* taken, bool both);

 private:
  bool IsSmallArm(const llvm::BasicBlock* block, const llvm::BasicBlock* from) const;
  void EmitArm(llvm::BasicBlock* arm, llvm::BasicBlock* join, Value* mask, bool surely);

  WarpValues& values_;
  RecordGroups& record_groups_;
  BlockCopies& copies_;
};

}  // namespace gridloom::exec
