// The two copies of each block, and how lanes arrive at them.
#pragma once

#include <vector>

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class HelperCalls;
class LoopRecordEmitter;
class WarpFrame;
class AddressGuards;
class WarpValues;

inline constexpr std::uint32_t kFuel = 64;  ///< trips of a waiting loop before others have their turn

class BlockCopies : Emitter {
 public:
  BlockCopies(WarpBuilder& w, HelperCalls& calls, WarpValues& values, LoopRecordEmitter& loop_records, WarpFrame& frame,
              AddressGuards& guards)
      : Emitter(w), calls_(calls), values_(values), loop_records_(loop_records), frame_(frame), guards_(guards) {}

  /// Makes the blocks, all of them empty.
  void Prepare();
  void AddLanesAt(unsigned block, Value* mask);
  void Pend(unsigned block, Value* mask);
  void PendIfAny(unsigned block, Value* mask);
  void WaitIn(llvm::AllocaInst* set, llvm::BasicBlock* to);
  llvm::BasicBlock* EntryTo(unsigned block);
  void Arrive(unsigned to, Value* mask);
  void BurnFuel(Value* mask, llvm::BasicBlock* next);
  void TakePending(Value* index);
  void CopyPhis(llvm::BasicBlock* to, Value* mask);
  void ConnectDispatch();

  // By number in the order of blocks.
  std::vector<llvm::BasicBlock*> converged, divergent;
  std::vector<llvm::BasicBlock*> entries;  ///< where the dispatcher enters; null where it never does
  llvm::BasicBlock* dispatch = nullptr;
  llvm::BasicBlock* done = nullptr;
  llvm::BasicBlock* ended = nullptr;  ///< where lanes end

 private:
  llvm::BasicBlock* SlowArrival(unsigned block);
  void ArriveBack(unsigned to, Value* mask);

  HelperCalls& calls_;
  WarpValues& values_;
  LoopRecordEmitter& loop_records_;
  WarpFrame& frame_;
  AddressGuards& guards_;
  std::vector<llvm::BasicBlock*> slow_arrivals_;
  llvm::BasicBlock* unreachable_ = nullptr;
};

}  // namespace gridloom::exec
