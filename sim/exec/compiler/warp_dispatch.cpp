// The dispatcher, which runs the earliest pending block of a diverged warp.

#include "sim/exec/compiler/warp_dispatch.h"

#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_meeting.h"
#include "sim/exec/compiler/warp_waiting.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// The number (i64) of the earliest pending block, in a block of its own; where there is none, goes to `empty`.
Value* DispatchEmitter::EarliestPending(BasicBlock* empty) {
  BasicBlock* pick = w_.NewBlock("pick");
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::PHINode* word_index = nullptr;
  Value* word = nullptr;
  if (frame_.words <= kRegisterWords) {
    word = frame_.PendingWord(0);
    Value* index = b_.getInt64(0);
    if (frame_.words == 2) {
      Value* first_empty = b_.CreateICmpEQ(word, b_.getInt64(0));
      word = b_.CreateSelect(first_empty, frame_.PendingWord(1), word);
      index = b_.CreateSelect(first_empty, b_.getInt64(1), b_.getInt64(0));
    }
    b_.CreateCondBr(b_.CreateICmpEQ(word, b_.getInt64(0)), empty, pick);
    b_.SetInsertPoint(pick);
    word_index = b_.CreatePHI(i64, 1);
    word_index->addIncoming(index, copies_.dispatch);
  } else {
    // Many blocks: walk the words. The variable index keeps the set in memory.
    BasicBlock* loop = w_.NewBlock("find");
    BasicBlock* next = w_.NewBlock("find_next");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    auto* at = b_.CreatePHI(i64, 2);
    at->addIncoming(b_.getInt64(0), copies_.dispatch);
    word = b_.CreateLoad(
        i64, b_.CreateInBoundsGEP(frame_.pending->getAllocatedType(), frame_.pending, {b_.getInt64(0), at}));
    b_.CreateCondBr(b_.CreateICmpNE(word, b_.getInt64(0)), pick, next);
    b_.SetInsertPoint(next);
    Value* plus = b_.CreateAdd(at, b_.getInt64(1));
    at->addIncoming(plus, next);
    b_.CreateCondBr(b_.CreateICmpEQ(plus, b_.getInt64(frame_.words)), empty, loop);
    b_.SetInsertPoint(pick);
    word_index = b_.CreatePHI(i64, 1);
    word_index->addIncoming(at, loop);
  }
  Value* bit = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, word, b_.getTrue());
  return b_.CreateAdd(b_.CreateShl(word_index, 6), bit);
}

// Runs the earliest pending block. When none is left, lanes parked at a barrier wait for the other warps.
void DispatchEmitter::EmitDispatch() {
  b_.SetInsertPoint(copies_.dispatch);
  BasicBlock* empty = w_.NewBlock("none_pending");
  copies_.TakePending(EarliestPending(empty));

  b_.SetInsertPoint(empty);
  if (frame_.meetings) meetings_.MeetAgain(true);  // whom they wait for waits, too, or never comes
  if (source_.barriers == 0) {
    b_.CreateBr(copies_.done);
    return;
  }
  BasicBlock* wait = w_.NewBlock("wait_parked");
  b_.CreateCondBr(b_.CreateICmpEQ(frame_.AnyIn(frame_.parked), b_.getInt64(0)), copies_.done, wait);
  b_.SetInsertPoint(wait);
  if (module_.simple_barriers) {
    barriers_.EmitFullBarrier();
  } else {
    calls_.CallHelper(Helper::kBarrierWait, b_.getInt32(-1), b_.getInt32(0), 0, {});
  }
  frame_.ReleaseAll(frame_.parked);  // to an empty set
  b_.CreateBr(copies_.dispatch);
}

}  // namespace gridloom::exec
