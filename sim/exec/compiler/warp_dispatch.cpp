// The lanes of a diverged warp that are not running: a set of pending blocks with a mask each, the arrival of lanes at
// a block, and the dispatcher, which runs the earliest pending block.
#include "sim/exec/compiler/pending_set.h"
#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

// A pending set of up to this many words is kept in registers; a larger one stays in memory.
constexpr unsigned kRegisterWords = 2;

}  // namespace

Value* WarpFunction::PendingWord(unsigned word) {
  return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP2_32(pending_->getAllocatedType(), pending_, 0, word));
}

void WarpFunction::SetPendingWord(unsigned word, Value* value) {
  b_.CreateStore(value, b_.CreateConstInBoundsGEP2_32(pending_->getAllocatedType(), pending_, 0, word));
}

/// Nonzero (i64) when a block in [from, to] is pending.
Value* WarpFunction::AnyPendingUpTo(unsigned from, unsigned to) { return AnyBetween(b_, pending_, from, to); }

Value* WarpFunction::AnyPending() { return AnyPendingUpTo(0, static_cast<unsigned>(order_.blocks.size()) - 1); }

/// More lanes that will run `block` when it is taken out of a set.
void WarpFunction::AddLanesAt(unsigned block, Value* mask) {
  Value* slot = b_.CreateConstInBoundsGEP2_32(pending_masks_->getAllocatedType(), pending_masks_, 0, block);
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), slot), mask), slot);
  entries_[block] = entries_[block] ? entries_[block] : EntryTo(block);
}

void WarpFunction::Pend(unsigned block, Value* mask) {
  AddLanesAt(block, mask);
  SetPendingWord(block / 64, b_.CreateOr(PendingWord(block / 64), b_.getInt64(std::uint64_t{1} << (block % 64))));
}

/// Pend for a mask that may be empty: a pending block has lanes.
void WarpFunction::PendIfAny(unsigned block, Value* mask) {
  AddLanesAt(block, mask);
  Value* bit = b_.CreateSelect(b_.CreateICmpEQ(mask, b_.getInt32(0)), b_.getInt64(0),
                               b_.getInt64(std::uint64_t{1} << (block % 64)));
  SetPendingWord(block / 64, b_.CreateOr(PendingWord(block / 64), bit));
}

/// Where the dispatcher enters a block: the converged copy when all lanes came together again.
BasicBlock* WarpFunction::EntryTo(unsigned block) {
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  BasicBlock* entry = NewBlock("enter");
  b_.SetInsertPoint(entry);
  if (RepeatedLoopAt(order_.blocks[block])) {
    b_.CreateBr(divergent_blocks_[block]);  // its rounds are told one by one or all
    return entry;
  }
  Value* mask = b_.CreateLoad(b_.getInt32Ty(), mask_slot_);
  BasicBlock* whole = converged_[block];
  if (met_blocks_.contains(order_.blocks[block])) whole = NewBlock("all_met");
  b_.CreateCondBr(b_.CreateICmpEQ(mask, b_.getInt32(-1)), whole, divergent_blocks_[block]);
  if (whole != converged_[block]) {  // all lanes are here: what they have met for is what they exchange now
    b_.SetInsertPoint(whole);
    b_.CreateStore(b_.getInt32(0), MeetingField(offsetof(WarpMeetings, met)));
    b_.CreateBr(converged_[block]);
  }
  return entry;
}

/// Lanes arrive where others may already wait, or where earlier blocks must run first. Shared by all edges to `block`.
BasicBlock* WarpFunction::SlowArrival(unsigned block) {
  if (slow_arrivals_[block]) return slow_arrivals_[block];
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  slow_arrivals_[block] = NewBlock("arrive");
  b_.SetInsertPoint(slow_arrivals_[block]);
  Pend(block, b_.CreateLoad(b_.getInt32Ty(), mask_slot_));
  BasicBlock* merge = NewBlock("merge");
  Value* earlier = block == 0 ? static_cast<Value*>(b_.getInt64(0)) : AnyPendingUpTo(0, block - 1);
  b_.CreateCondBr(b_.CreateICmpEQ(earlier, b_.getInt64(0)), merge, dispatch_);
  b_.SetInsertPoint(merge);
  Value* slot = b_.CreateConstInBoundsGEP2_32(pending_masks_->getAllocatedType(), pending_masks_, 0, block);
  b_.CreateStore(b_.CreateLoad(b_.getInt32Ty(), slot), mask_slot_);
  b_.CreateStore(b_.getInt32(0), slot);
  SetPendingWord(block / 64, b_.CreateAnd(PendingWord(block / 64), b_.getInt64(~(std::uint64_t{1} << (block % 64)))));
  b_.CreateBr(entries_[block]);
  return slow_arrivals_[block];
}

/// Takes the lanes of `mask` to block `to` in the divergent copy; phis are already copied.
void WarpFunction::Arrive(unsigned to, Value* mask) {
  b_.CreateStore(mask, mask_slot_);
  if (to <= current_) return ArriveBack(to, mask);
  const bool only_way = order_.blocks[to]->hasNPredecessors(1);
  if (only_way && to == current_ + 1) {
    b_.CreateBr(divergent_blocks_[to]);
    return;
  }
  // Nothing at or before the current block is pending as long as lanes run in order.
  const unsigned from = shapes_->lockstep() ? current_ + 1 : 0;
  Value* any = AnyPendingUpTo(from, to);
  b_.CreateCondBr(b_.CreateICmpEQ(any, b_.getInt64(0)), divergent_blocks_[to], SlowArrival(to));
}

/// Back edge, always latch -> header. In loops that wait for other threads it burns fuel; when that is used up another
/// group of this warp runs, and if there is none, another warp.
void WarpFunction::ArriveBack(unsigned to, Value* mask) {
  const llvm::Loop* loop = loops_->getLoopFor(order_.blocks[to]);
  if (!shapes_->Waits(loop)) {
    b_.CreateBr(divergent_blocks_[to]);
    return;
  }
  BasicBlock* others = NewBlock("others");
  BasicBlock* alone = NewBlock("alone");
  BurnFuel(mask, divergent_blocks_[to]);
  b_.CreateCondBr(b_.CreateICmpNE(AnyPending(), b_.getInt64(0)), others, alone);
  b_.SetInsertPoint(alone);
  b_.CreateBr(divergent_blocks_[to]);
  b_.SetInsertPoint(others);
  Pend(to, mask);
  TakePending(NextAfter(b_, pending_, current_, to));
}

/// One trip of a loop that waits for other threads, on to `next`. Leaves the insert point where the fuel is used up and
/// other warps have had their turn.
void WarpFunction::BurnFuel(Value* mask, BasicBlock* next) {
  BasicBlock* tired = NewBlock("tired");
  Value* fuel = b_.CreateSub(b_.CreateLoad(b_.getInt32Ty(), fuel_slot_), b_.getInt32(1));
  b_.CreateStore(fuel, fuel_slot_);
  b_.CreateCondBr(b_.CreateICmpEQ(fuel, b_.getInt32(0)), tired, next, Unlikely());
  b_.SetInsertPoint(tired);
  b_.CreateStore(b_.getInt32(kFuel), fuel_slot_);
  CallHelper(Helper::kWarpYield, mask, b_.getInt32(0), 0, {});
}

/// Puts block number `index` (i64) into the set, or takes it out.
void WarpFunction::SetPendingBit(Value* index, bool pending) {
  Value* bit = b_.CreateShl(b_.getInt64(1), b_.CreateAnd(index, b_.getInt64(63)));
  const auto changed = [&](Value* word, Value* bits) {
    return pending ? b_.CreateOr(word, bits) : b_.CreateAnd(word, b_.CreateNot(bits));
  };
  if (pending_words_ <= kRegisterWords) {
    for (unsigned word = 0; word < pending_words_; ++word) {
      Value* here = b_.CreateICmpEQ(b_.CreateLShr(index, 6), b_.getInt64(word));
      SetPendingWord(word, changed(PendingWord(word), b_.CreateSelect(here, bit, b_.getInt64(0))));
    }
    return;
  }
  Value* word = b_.CreateInBoundsGEP(pending_->getAllocatedType(), pending_, {b_.getInt64(0), b_.CreateLShr(index, 6)});
  b_.CreateStore(changed(b_.CreateLoad(b_.getInt64Ty(), word), bit), word);
}

/// Takes pending block number `index` (i64) out of the set and goes there.
void WarpFunction::TakePending(Value* index) {
  SetPendingBit(index, false);
  Value* slot = b_.CreateInBoundsGEP(pending_masks_->getAllocatedType(), pending_masks_, {b_.getInt64(0), index});
  b_.CreateStore(b_.CreateLoad(b_.getInt32Ty(), slot), mask_slot_);
  b_.CreateStore(b_.getInt32(0), slot);
  if (!unreachable_) {
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    unreachable_ = NewBlock("unreachable");
    b_.SetInsertPoint(unreachable_);
    b_.CreateUnreachable();
  }
  b_.CreateSwitch(index, unreachable_, 16)->setMetadata("gl.dispatch", llvm::MDNode::get(context_, {}));
}

// Runs the earliest pending block. When none is left, lanes parked at a barrier wait for the other warps.
void WarpFunction::EmitDispatch() {
  b_.SetInsertPoint(dispatch_);
  auto* words = pending_->getAllocatedType();
  BasicBlock* empty = NewBlock("none_pending");
  BasicBlock* pick = NewBlock("pick");
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::PHINode* word_index = nullptr;
  Value* word = nullptr;
  if (pending_words_ <= kRegisterWords) {
    word = PendingWord(0);
    Value* index = b_.getInt64(0);
    if (pending_words_ == 2) {
      Value* first_empty = b_.CreateICmpEQ(word, b_.getInt64(0));
      word = b_.CreateSelect(first_empty, PendingWord(1), word);
      index = b_.CreateSelect(first_empty, b_.getInt64(1), b_.getInt64(0));
    }
    b_.CreateCondBr(b_.CreateICmpEQ(word, b_.getInt64(0)), empty, pick);
    b_.SetInsertPoint(pick);
    word_index = b_.CreatePHI(i64, 1);
    word_index->addIncoming(index, dispatch_);
  } else {
    // Many blocks: walk the words. The variable index keeps the set in memory.
    BasicBlock* loop = NewBlock("find");
    BasicBlock* next = NewBlock("find_next");
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    auto* at = b_.CreatePHI(i64, 2);
    at->addIncoming(b_.getInt64(0), dispatch_);
    word = b_.CreateLoad(i64, b_.CreateInBoundsGEP(words, pending_, {b_.getInt64(0), at}));
    b_.CreateCondBr(b_.CreateICmpNE(word, b_.getInt64(0)), pick, next);
    b_.SetInsertPoint(next);
    Value* plus = b_.CreateAdd(at, b_.getInt64(1));
    at->addIncoming(plus, next);
    b_.CreateCondBr(b_.CreateICmpEQ(plus, b_.getInt64(pending_words_)), empty, loop);
    b_.SetInsertPoint(pick);
    word_index = b_.CreatePHI(i64, 1);
    word_index->addIncoming(at, loop);
  }
  Value* bit = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, word, b_.getTrue());
  TakePending(b_.CreateAdd(b_.CreateShl(word_index, 6), bit));

  b_.SetInsertPoint(empty);
  if (meetings_) MeetAgain(true);  // whom they wait for waits, too, or never comes
  if (barriers_ == 0) {
    b_.CreateBr(done_);
    return;
  }
  BasicBlock* wait = NewBlock("wait_parked");
  b_.CreateCondBr(b_.CreateICmpEQ(AnyIn(parked_), b_.getInt64(0)), done_, wait);
  b_.SetInsertPoint(wait);
  if (module_.simple_barriers) {
    EmitFullBarrier();
  } else {
    CallHelper(Helper::kBarrierWait, b_.getInt32(-1), b_.getInt32(0), 0, {});
  }
  ReleaseAll(parked_);  // to an empty set
  b_.CreateBr(dispatch_);
}

/// Gives every dispatching switch its targets, now that all blocks that can be pending are known.
void WarpFunction::ConnectDispatch() {
  for (BasicBlock& block : *target_) {
    auto* choose = llvm::dyn_cast_or_null<llvm::SwitchInst>(block.getTerminator());
    if (!choose || !choose->getMetadata("gl.dispatch")) continue;
    choose->setMetadata("gl.dispatch", nullptr);
    for (unsigned i = 0; i < entries_.size(); ++i) {
      if (entries_[i]) choose->addCase(b_.getInt64(i), entries_[i]);
    }
  }
}

}  // namespace gridloom::exec
