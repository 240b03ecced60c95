// Barriers, and lanes that end in calls.
#pragma once

#include <utility>
#include <vector>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;
class RecordGroups;
class WarpFrame;
class BlockCopies;

class BarrierEmitter : Emitter {
 public:
  BarrierEmitter(WarpBuilder& w, HelperCalls& calls, WarpValues& values, RecordGroups& record_groups, WarpFrame& frame,
                 BlockCopies& copies)
      : Emitter(w), calls_(calls), values_(values), record_groups_(record_groups), frame_(frame), copies_(copies) {}

  void DropEndedLanes(llvm::BasicBlock* to);
  void EmitFullBarrier();
  void EmitBarrierEnd(const llvm::CallInst& call, const MarkerInfo& info);
  /// Once all code is there and all slots are known.
  void ForgetSlots();

 private:
  HelperCalls& calls_;
  WarpValues& values_;
  RecordGroups& record_groups_;
  WarpFrame& frame_;
  BlockCopies& copies_;
  /// Turns that end in the converged copy, and the block of the program that follows.
  std::vector<std::pair<llvm::Instruction*, llvm::BasicBlock*>> whole_turns_;
};

}  // namespace gridloom::exec
