// The two copies of each block, and how lanes arrive at them.

#include "sim/exec/compiler/warp_copies.h"

#include "sim/exec/compiler/pending_set.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_guard.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_record_loop.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// Parallel copy of the values flowing into `to` from the current block, for the lanes of `mask` (null: all).
/// On a back edge all lanes take the copy where those that are off need nothing any more: what they had leaves the loop
/// through phis of its exit. A mask would tie each iteration to the compare that ended the one before. Numbers that are
/// not integers keep theirs: left to run on they may become subnormal, which costs more.
void BlockCopies::CopyPhis(BasicBlock* to, Value* mask) {
  BasicBlock* from = source_.order.blocks[w_.current];
  const bool free =
      mask && source_.order.IndexOf(to) <= w_.current && source_.RunsTogether(*source_.loops.getLoopFor(to));
  llvm::SmallVector<std::pair<llvm::PHINode*, Value*>, 8> copies;
  for (llvm::PHINode& phi : to->phis()) {
    Value* incoming = phi.getIncomingValueForBlock(from);
    const Shape& shape = values_.ShapeOf(&phi);
    copies.emplace_back(&phi, shape.vector() ? values_.Lanes(incoming) : values_.Base(incoming));
  }
  for (auto& [phi, value] : copies) {
    values_.StoreSlot(phi, value,
                      values_.ShapeOf(phi).vector() && !(free && phi->getType()->isIntegerTy()) ? mask : nullptr);
  }
}

/// More lanes that will run `block` when it is taken out of a set.
void BlockCopies::AddLanesAt(unsigned block, Value* mask) {
  Value* slot = b_.CreateConstInBoundsGEP2_32(frame_.pending_masks->getAllocatedType(), frame_.pending_masks, 0, block);
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), slot), mask), slot);
  entries[block] = entries[block] ? entries[block] : EntryTo(block);
}

void BlockCopies::Pend(unsigned block, Value* mask) {
  AddLanesAt(block, mask);
  frame_.SetPendingWord(block / 64,
                        b_.CreateOr(frame_.PendingWord(block / 64), b_.getInt64(std::uint64_t{1} << (block % 64))));
}

/// Pend for a mask that may be empty: a pending block has lanes.
void BlockCopies::PendIfAny(unsigned block, Value* mask) {
  AddLanesAt(block, mask);
  Value* bit = b_.CreateSelect(b_.CreateICmpEQ(mask, b_.getInt32(0)), b_.getInt64(0),
                               b_.getInt64(std::uint64_t{1} << (block % 64)));
  frame_.SetPendingWord(block / 64, b_.CreateOr(frame_.PendingWord(block / 64), bit));
}

/// Where the dispatcher enters a block: the converged copy when all lanes came together again.
BasicBlock* BlockCopies::EntryTo(unsigned block) {
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  BasicBlock* entry = w_.NewBlock("enter");
  b_.SetInsertPoint(entry);
  if (loop_records_.RepeatedLoopAt(source_.order.blocks[block])) {
    b_.CreateBr(divergent[block]);  // its rounds are told one by one or all
    return entry;
  }
  Value* mask = b_.CreateLoad(b_.getInt32Ty(), frame_.mask);
  BasicBlock* whole = converged[block];
  if (source_.met_blocks.contains(source_.order.blocks[block])) whole = w_.NewBlock("all_met");
  b_.CreateCondBr(b_.CreateICmpEQ(mask, guards_.WholeMask()), whole, divergent[block]);
  if (whole != converged[block]) {  // all lanes are here: what they have met for is what they exchange now
    b_.SetInsertPoint(whole);
    b_.CreateStore(b_.getInt32(0), frame_.MeetingField(offsetof(WarpMeetings, met)));
    b_.CreateBr(converged[block]);
  }
  return entry;
}

/// Lanes arrive where others may already wait, or where earlier blocks must run first. Shared by all edges to `block`.
BasicBlock* BlockCopies::SlowArrival(unsigned block) {
  if (slow_arrivals_[block]) return slow_arrivals_[block];
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  slow_arrivals_[block] = w_.NewBlock("arrive");
  b_.SetInsertPoint(slow_arrivals_[block]);
  Pend(block, b_.CreateLoad(b_.getInt32Ty(), frame_.mask));
  BasicBlock* merge = w_.NewBlock("merge");
  Value* earlier = block == 0 ? static_cast<Value*>(b_.getInt64(0)) : frame_.AnyPendingUpTo(0, block - 1);
  b_.CreateCondBr(b_.CreateICmpEQ(earlier, b_.getInt64(0)), merge, dispatch);
  b_.SetInsertPoint(merge);
  Value* slot = b_.CreateConstInBoundsGEP2_32(frame_.pending_masks->getAllocatedType(), frame_.pending_masks, 0, block);
  b_.CreateStore(b_.CreateLoad(b_.getInt32Ty(), slot), frame_.mask);
  b_.CreateStore(b_.getInt32(0), slot);
  frame_.SetPendingWord(block / 64,
                        b_.CreateAnd(frame_.PendingWord(block / 64), b_.getInt64(~(std::uint64_t{1} << (block % 64)))));
  b_.CreateBr(entries[block]);
  return slow_arrivals_[block];
}

/// Takes the lanes of `mask` to block `to` in the divergent copy; phis are already copied.
void BlockCopies::Arrive(unsigned to, Value* mask) {
  b_.CreateStore(mask, frame_.mask);
  if (to <= w_.current) return ArriveBack(to, mask);
  const bool only_way = source_.order.blocks[to]->hasNPredecessors(1);
  if (only_way && to == w_.current + 1) {
    b_.CreateBr(divergent[to]);
    return;
  }
  // Nothing at or before the current block is pending as long as lanes run in order.
  const unsigned from = source_.shapes.lockstep() ? w_.current + 1 : 0;
  Value* any = frame_.AnyPendingUpTo(from, to);
  b_.CreateCondBr(b_.CreateICmpEQ(any, b_.getInt64(0)), divergent[to], SlowArrival(to));
}

/// Back edge, always latch -> header. In loops that wait for other threads it burns fuel; when that is used up another
/// group of this warp runs, and if there is none, another warp.
void BlockCopies::ArriveBack(unsigned to, Value* mask) {
  const llvm::Loop* loop = source_.loops.getLoopFor(source_.order.blocks[to]);
  if (!source_.shapes.Waits(loop)) {
    b_.CreateBr(divergent[to]);
    return;
  }
  BasicBlock* others = w_.NewBlock("others");
  BasicBlock* alone = w_.NewBlock("alone");
  BurnFuel(mask, divergent[to]);
  b_.CreateCondBr(b_.CreateICmpNE(frame_.AnyPending(), b_.getInt64(0)), others, alone);
  b_.SetInsertPoint(alone);
  b_.CreateBr(divergent[to]);
  b_.SetInsertPoint(others);
  Pend(to, mask);
  TakePending(NextAfter(b_, frame_.pending, w_.current, to));
}

/// One trip of a loop that waits for other threads, on to `next`. Leaves the insert point where the fuel is used up and
/// other warps have had their turn.
void BlockCopies::BurnFuel(Value* mask, BasicBlock* next) {
  BasicBlock* tired = w_.NewBlock("tired");
  Value* fuel = b_.CreateSub(b_.CreateLoad(b_.getInt32Ty(), frame_.fuel), b_.getInt32(1));
  b_.CreateStore(fuel, frame_.fuel);
  b_.CreateCondBr(b_.CreateICmpEQ(fuel, b_.getInt32(0)), tired, next, w_.Unlikely());
  b_.SetInsertPoint(tired);
  b_.CreateStore(b_.getInt32(kFuel), frame_.fuel);
  calls_.CallHelper(Helper::kWarpYield, mask, b_.getInt32(0), 0, {});
}

/// Takes pending block number `index` (i64) out of the set and goes there.
void BlockCopies::TakePending(Value* index) {
  frame_.SetPendingBit(index, false);
  Value* slot =
      b_.CreateInBoundsGEP(frame_.pending_masks->getAllocatedType(), frame_.pending_masks, {b_.getInt64(0), index});
  b_.CreateStore(b_.CreateLoad(b_.getInt32Ty(), slot), frame_.mask);
  b_.CreateStore(b_.getInt32(0), slot);
  if (!unreachable_) {
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    unreachable_ = w_.NewBlock("unreachable");
    b_.SetInsertPoint(unreachable_);
    b_.CreateUnreachable();
  }
  b_.CreateSwitch(index, unreachable_, 16)->setMetadata("gl.dispatch", llvm::MDNode::get(b_.getContext(), {}));
}

/// Gives every dispatching switch its targets, now that all blocks that can be pending are known.
void BlockCopies::ConnectDispatch() {
  for (BasicBlock& block : *w_.target) {
    auto* choose = llvm::dyn_cast_or_null<llvm::SwitchInst>(block.getTerminator());
    if (!choose || !choose->getMetadata("gl.dispatch")) continue;
    choose->setMetadata("gl.dispatch", nullptr);
    for (unsigned i = 0; i < entries.size(); ++i) {
      if (entries[i]) choose->addCase(b_.getInt64(i), entries[i]);
    }
  }
}

/// The active lanes wait in `set` to go on at `to`.
void BlockCopies::WaitIn(llvm::AllocaInst* set, BasicBlock* to) {
  const unsigned index = source_.order.IndexOf(to);
  CopyPhis(to, w_.mask);
  AddLanesAt(index, w_.mask);
  Value* word = b_.CreateConstInBoundsGEP2_32(set->getAllocatedType(), set, 0, index / 64);
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt64Ty(), word), b_.getInt64(std::uint64_t{1} << (index % 64))),
                 word);
}

void BlockCopies::Prepare() {
  const std::size_t count = source_.order.blocks.size();
  for (std::size_t i = 0; i < count; ++i) {
    converged.push_back(w_.NewBlock("c"));
    divergent.push_back(w_.NewBlock("d"));
  }
  slow_arrivals_.assign(count, nullptr);
  entries.assign(count, nullptr);
  dispatch = w_.NewBlock("dispatch");
  ended = dispatch;
  done = w_.NewBlock("done");
}

}  // namespace gridloom::exec
