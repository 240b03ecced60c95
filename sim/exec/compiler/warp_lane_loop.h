// Loops that lanes leave one by one: the rest of such a loop for few lanes.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class WarpValues;
class MemoryWindows;
class SlowAccess;
class MemoryEmitter;
class WarpFrame;
class BlockCopies;
class AddressGuards;

/// What a loop uses that is there when a lane begins.
struct LiveIn {
  std::vector<llvm::Value*> lanes;    ///< header phis and what the loop uses, where lanes differ
  std::vector<llvm::Value*> uniform;  ///< the rest
};

/// The rest of a loop for one lane, as it is being emitted.
struct OneLane {
  const llvm::Loop& loop;
  std::function<llvm::Value*(llvm::Value*)> outside;  ///< what comes from before, and the header's phis begin with
  std::function<void(llvm::PHINode&, llvm::Value*)> leave;  ///< takes what the lane gives a phi of the exit
  llvm::DenseMap<const llvm::Value*, llvm::Value*> made{};  ///< by what it stands for
  llvm::DenseMap<const llvm::BasicBlock*, llvm::BasicBlock*> starts{}, ends{};
};

/// The rest of a loop for a half warp, as it is being emitted.
struct HalfLoop {
  llvm::BasicBlock *head = nullptr, *in_turn = nullptr, *body = nullptr, *done = nullptr;
  llvm::PHINode* active = nullptr;                                 ///< the lanes that are in the loop
  std::vector<std::pair<llvm::PHINode*, llvm::PHINode*>> carried;  ///< the header's phis, and those of the half warp
  std::vector<llvm::PHINode*> left;                                ///< what lanes that have left took along
};

class LaneLoopEmitter : Emitter {
 public:
  LaneLoopEmitter(WarpBuilder& w, WarpValues& values, MemoryWindows& windows, SlowAccess& slow, MemoryEmitter& memory,
                  WarpFrame& frame, BlockCopies& copies, AddressGuards& guards)
      : Emitter(w),
        values_(values),
        windows_(windows),
        slow_(slow),
        memory_(memory),
        frame_(frame),
        copies_(copies),
        guards_(guards) {}

  bool RunsLaneByLane(const llvm::Loop& loop);
  bool AlwaysRunsLaneByLane(const llvm::BasicBlock* block);
  void EmitLaneLoop(const llvm::Loop& loop);

 private:
  bool IsSameAllAlong(const Value* value);
  bool IsLiveIn(const llvm::Loop& loop, const Value* value);
  void NoteLane(Value* number);
  LiveIn LiveInOf(const llvm::Loop& loop);
  std::vector<Value*> EmitLanesInTurn(const llvm::Loop& loop, const LiveIn& live_in,
                                      const std::vector<Value*>& results);
  Value* ScalarOf(const OneLane& lane, Value* value);
  void EmitLaneInstruction(OneLane& lane, llvm::Instruction& instruction);
  void EmitLaneBranch(OneLane& lane, llvm::BasicBlock* block, llvm::BasicBlock* done);
  void EmitLane(OneLane& lane);
  Value* EmitLaneAccess(llvm::CallInst& call, const MarkerInfo& info, const std::function<Value*(Value*)>& scalar);
  void PackLiveIn(const llvm::Loop& loop, const LiveIn& live_in);
  bool RunsAsHalf(const llvm::Loop& loop);
  std::vector<Value*> EmitHalfLoop(const llvm::Loop& loop, const LiveIn& live_in);
  HalfLoop BeginHalfLoop(const llvm::Loop& loop);
  void EmitHalfRound(const llvm::Loop& loop, HalfLoop& half, std::vector<Value*>& results,
                     const std::function<llvm::BasicBlock*()>& left);
  Value* EmitHalfIteration(const llvm::Loop& loop, Value* active, std::vector<Value*>& results,
                           const std::function<llvm::BasicBlock*()>& left);

  WarpValues& values_;
  MemoryWindows& windows_;
  SlowAccess& slow_;
  MemoryEmitter& memory_;
  WarpFrame& frame_;
  BlockCopies& copies_;
  AddressGuards& guards_;
};

}  // namespace gridloom::exec
