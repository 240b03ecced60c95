// .sync instructions whose members come from different places.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class HelperCalls;
class WarpValues;
class WarpFrame;
class BlockCopies;

class MeetingEmitter : Emitter {
 public:
  MeetingEmitter(WarpBuilder& w, HelperCalls& calls, WarpValues& values, WarpFrame& frame, BlockCopies& copies)
      : Emitter(w), calls_(calls), values_(values), frame_(frame), copies_(copies) {}

  void BeginMeetings();
  void BeginMet();
  void EmitMeet(const llvm::CallInst& meet, const MarkerInfo& info, llvm::BasicBlock* to);
  void EmitMet(llvm::CallInst& met, const MarkerInfo& info);
  void MeetAgain(bool none_can_run);
  void EmitReleased();
  void LanesHaveEnded();

  void BeginBlock() { met_ = nullptr; }

 private:
  Value* MetResult(unsigned index, Value* given);

  HelperCalls& calls_;
  WarpValues& values_;
  WarpFrame& frame_;
  BlockCopies& copies_;
  Value* met_ = nullptr;   ///< behind a meeting, in the divergent copy: active lanes that have results to take (i32)
  Value* here_ = nullptr;  ///< with it: all active lanes
  llvm::BasicBlock* released_ = nullptr;  ///< makes the lanes pending that a helper has released
};

}  // namespace gridloom::exec
