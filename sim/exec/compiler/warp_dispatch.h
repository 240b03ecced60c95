// The dispatcher of a diverged warp.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class HelperCalls;
class WarpFrame;
class BlockCopies;
class MeetingEmitter;
class BarrierEmitter;

class DispatchEmitter : Emitter {
 public:
  DispatchEmitter(WarpBuilder& w, HelperCalls& calls, WarpFrame& frame, BlockCopies& copies, MeetingEmitter& meetings,
                  BarrierEmitter& barriers)
      : Emitter(w), calls_(calls), frame_(frame), copies_(copies), meetings_(meetings), barriers_(barriers) {}

  void EmitDispatch();

 private:
  Value* EarliestPending(llvm::BasicBlock* empty);

  HelperCalls& calls_;
  WarpFrame& frame_;
  BlockCopies& copies_;
  MeetingEmitter& meetings_;
  BarrierEmitter& barriers_;
};

}  // namespace gridloom::exec
