// What a warp keeps in its stack frame while its lanes go different ways.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

/// A pending set of up to this many words is kept in registers; a larger one stays in memory.
inline constexpr unsigned kRegisterWords = 2;

/// Sets of blocks have a bit for each block of the order, in 64-bit words.
class WarpFrame : Emitter {
 public:
  explicit WarpFrame(WarpBuilder& w) : Emitter(w) {}

  /// At the function's entry.
  void Allocate();
  Value* PendingWord(unsigned word);
  void SetPendingWord(unsigned word, Value* value);
  Value* AnyPendingUpTo(unsigned from, unsigned to);
  Value* AnyPending();
  void SetPendingBit(Value* index, bool set);
  Value* AnyIn(llvm::AllocaInst* set);
  void ReleaseAll(llvm::AllocaInst* set);
  Value* MeetingField(std::size_t offset);
  Value* WaitingLanes();

  unsigned words = 1;                         ///< of a set
  llvm::AllocaInst* mask = nullptr;           ///< of the lanes that arrive at a block
  llvm::AllocaInst* pending = nullptr;        ///< words of the pending set
  llvm::AllocaInst* parked = nullptr;         ///< same, lanes waiting at a barrier
  llvm::AllocaInst* pending_masks = nullptr;  ///< mask per block
  llvm::AllocaInst* fuel = nullptr;           ///< null without loops that wait
  llvm::AllocaInst* meetings = nullptr;       ///< a WarpMeetings; null without meetings
};

}  // namespace gridloom::exec
