// Control flow of the warp form: two copies of every block, the pending set, dispatch, joins, barriers.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

namespace {

// A pending set of up to this many words is kept in registers; a larger one stays in memory.
constexpr unsigned kRegisterWords = 2;

std::uint64_t BitsFromTo(unsigned first, unsigned last) {  // both within one word, first <= last
  const std::uint64_t upto = last == 63 ? ~std::uint64_t{0} : (std::uint64_t{1} << (last + 1)) - 1;
  return upto & ~((std::uint64_t{1} << first) - 1);
}

}  // namespace

BasicBlock* WarpFunction::NewBlock(const char* name) { return BasicBlock::Create(context_, name, target_); }

llvm::MDNode* WarpFunction::Unlikely() { return llvm::MDBuilder(context_).createBranchWeights(1, 2000); }
llvm::MDNode* WarpFunction::Likely() { return llvm::MDBuilder(context_).createBranchWeights(2000, 1); }

void WarpFunction::PrepareBlocks() {
  const unsigned count = static_cast<unsigned>(order_.blocks.size());
  entry_ = NewBlock("entry");
  for (unsigned i = 0; i < count; ++i) {
    converged_.push_back(NewBlock("c"));
    divergent_blocks_.push_back(NewBlock("d"));
  }
  slow_arrivals_.assign(count, nullptr);
  entries_.assign(count, nullptr);
  dispatch_ = NewBlock("dispatch");
  done_ = NewBlock("done");
  pending_words_ = (count + 63) / 64;
  whole_warp_blocks_.assign(pending_words_, 0);
  for (BasicBlock* block : order_.blocks) {
    for (llvm::Instruction& instruction : *block) {
      const MarkerInfo* info = module_.MarkerOf(instruction);
      has_barriers_ |= info && info->kind == MarkerKind::kBarrier;
      has_warp_syncs_ |= info && info->kind == MarkerKind::kWarpSync;
      if (info && info->kind == MarkerKind::kWarpSync) NeedsWholeWarp(block, instruction.getOperand(0));
    }
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    const BasicBlock* join = branch && branch->isConditional() && shapes_->IsDivergent(branch) ? JoinOfArms(*branch) : nullptr;
    for (BasicBlock* next : llvm::successors(block)) {
      if (join && next != join) arms_.insert(next);
    }
  }
}

/// A .sync instruction of all lanes: no group of the warp runs its block while another one spins, and none goes round a loop
/// to get there again.
void WarpFunction::NeedsWholeWarp(BasicBlock* block, const Value* members) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(members);
  if (!constant || !constant->isMinusOne()) return;
  const auto mark = [&](BasicBlock* marked) {
    const unsigned index = order_.IndexOf(marked);
    whole_warp_blocks_[index / 64] |= std::uint64_t{1} << (index % 64);
  };
  mark(block);
  for (const llvm::Loop* loop = loops_->getLoopFor(block); loop; loop = loop->getParentLoop()) {
    if (BasicBlock* latch = loop->getLoopLatch()) mark(latch);
  }
}

void WarpFunction::EmitEntry() {
  b_.SetInsertPoint(entry_);
  llvm::Type* i32 = b_.getInt32Ty();
  auto* words = llvm::ArrayType::get(b_.getInt64Ty(), pending_words_);
  mask_slot_ = b_.CreateAlloca(i32, nullptr, "mask");
  pending_ = b_.CreateAlloca(words, nullptr, "pending");
  parked_ = b_.CreateAlloca(words, nullptr, "parked");
  pending_masks_ = b_.CreateAlloca(llvm::ArrayType::get(i32, order_.blocks.size()), nullptr, "pending_masks");
  b_.CreateStore(llvm::Constant::getNullValue(pending_masks_->getAllocatedType()), pending_masks_);
  for (unsigned word = 0; word < pending_words_; ++word) {
    SetPendingWord(word, b_.getInt64(0));
    b_.CreateStore(b_.getInt64(0), b_.CreateConstInBoundsGEP2_32(words, parked_, 0, word));
  }
  if (has_warp_syncs_) {
    synced_ = b_.CreateAlloca(words, nullptr, "synced");
    synced_lanes_ = b_.CreateAlloca(i32, nullptr, "synced_lanes");
    b_.CreateStore(llvm::Constant::getNullValue(words), synced_);
    b_.CreateStore(b_.getInt32(0), synced_lanes_);
  }
  if (shapes_->has_waiting_loops()) {
    fuel_slot_ = b_.CreateAlloca(i32, nullptr, "fuel");
    b_.CreateStore(b_.getInt32(64), fuel_slot_);
  }
  if (!source_.getReturnType()->isVoidTy()) {
    return_slot_ = b_.CreateAlloca(WarpType(source_.getReturnType()), nullptr, "result");
  }
  BasicBlock* start = NewBlock("start");
  b_.CreateBr(start);  // AtEntry inserts before this
  b_.SetInsertPoint(start);
  Value* mask = is_kernel_ ? WarpField(offsetof(WarpCtx, initial_mask), i32) : target_->getArg(1);
  b_.CreateStore(mask, mask_slot_);
  b_.CreateCondBr(b_.CreateICmpEQ(mask, b_.getInt32(-1)), converged_[0], divergent_blocks_[0], Likely());
}

void WarpFunction::EmitBlock(unsigned index, bool divergent) {
  current_ = index;
  divergent_ = divergent;
  base_cache_.clear();
  lanes_cache_.clear();
  grouped_.clear();
  b_.SetInsertPoint(divergent ? divergent_blocks_[index] : converged_[index]);
  if (divergent && arms_.contains(order_.blocks[index])) {
    b_.CreateUnreachable();  // runs as part of the block before it
    return;
  }
  mask_lanes_ = nullptr;
  mask_ = divergent ? static_cast<Value*>(b_.CreateLoad(b_.getInt32Ty(), mask_slot_)) : b_.getInt32(-1);
  for (llvm::Instruction& instruction : *order_.blocks[index]) {
    if (!module_.error.empty()) return;
    if (llvm::isa<llvm::PHINode>(instruction)) continue;
    if (UsedOutside(instruction) && IsEntryValue(&instruction)) continue;  // made at the entry when it is first asked for
    if (instruction.isTerminator()) {
      EmitTerminator(instruction);
      return;
    }
    EmitInstruction(instruction);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Pending set
// ---------------------------------------------------------------------------------------------------------------------

Value* WarpFunction::PendingWord(unsigned word) {
  return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP2_32(pending_->getAllocatedType(), pending_, 0, word));
}

void WarpFunction::SetPendingWord(unsigned word, Value* value) {
  b_.CreateStore(value, b_.CreateConstInBoundsGEP2_32(pending_->getAllocatedType(), pending_, 0, word));
}

/// Nonzero (i64) when a block in [from, to] is pending.
Value* WarpFunction::AnyPendingUpTo(unsigned from, unsigned to) {
  Value* any = nullptr;
  for (unsigned word = from / 64; word <= to / 64; ++word) {
    const unsigned first = word == from / 64 ? from % 64 : 0;
    const unsigned last = word == to / 64 ? to % 64 : 63;
    Value* bits = b_.CreateAnd(PendingWord(word), b_.getInt64(BitsFromTo(first, last)));
    any = any ? b_.CreateOr(any, bits) : bits;
  }
  return any;
}

Value* WarpFunction::AnyPending() { return AnyPendingUpTo(0, static_cast<unsigned>(order_.blocks.size()) - 1); }

void WarpFunction::Pend(unsigned block, Value* mask) {
  Value* slot = b_.CreateConstInBoundsGEP2_32(pending_masks_->getAllocatedType(), pending_masks_, 0, block);
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), slot), mask), slot);
  SetPendingWord(block / 64, b_.CreateOr(PendingWord(block / 64), b_.getInt64(std::uint64_t{1} << (block % 64))));
  entries_[block] = entries_[block] ? entries_[block] : EntryTo(block);
}

/// Where the dispatcher enters a block: the converged copy when all lanes came together again.
BasicBlock* WarpFunction::EntryTo(unsigned block) {
  llvm::IRBuilder<>::InsertPointGuard guard(b_);
  BasicBlock* entry = NewBlock("enter");
  b_.SetInsertPoint(entry);
  Value* mask = b_.CreateLoad(b_.getInt32Ty(), mask_slot_);
  b_.CreateCondBr(b_.CreateICmpEQ(mask, b_.getInt32(-1)), converged_[block], divergent_blocks_[block]);
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
  BasicBlock* tired = NewBlock("tired");
  BasicBlock* others = NewBlock("others");
  BasicBlock* alone = NewBlock("alone");
  Value* fuel = b_.CreateSub(b_.CreateLoad(b_.getInt32Ty(), fuel_slot_), b_.getInt32(1));
  b_.CreateStore(fuel, fuel_slot_);
  b_.CreateCondBr(b_.CreateICmpEQ(fuel, b_.getInt32(0)), tired, divergent_blocks_[to], Unlikely());
  b_.SetInsertPoint(tired);
  b_.CreateStore(b_.getInt32(64), fuel_slot_);
  CallHelper(Helper::kWarpYield, mask, b_.getInt32(0), 0, {});
  Value* any = b_.getInt64(0);
  for (unsigned word = 0; word < pending_words_; ++word) {
    any = b_.CreateOr(any, b_.CreateAnd(PendingWord(word), b_.getInt64(~whole_warp_blocks_[word])));
  }
  b_.CreateCondBr(b_.CreateICmpNE(any, b_.getInt64(0)), others, alone);
  b_.SetInsertPoint(alone);
  b_.CreateBr(divergent_blocks_[to]);
  b_.SetInsertPoint(others);
  Pend(to, mask);
  TakePending(NextPendingAfter(current_, to));
}

/// Number (i64) of the next pending block after `current`, going round; `but_not` only when it is the only one. Not those
/// whose lanes wait for the rest of the warp.
Value* WarpFunction::NextPendingAfter(unsigned current, unsigned but_not) {
  Value* choice = b_.getInt64(but_not);
  const auto prefer = [&](unsigned word, std::uint64_t bits) {
    if (but_not / 64 == word) bits &= ~(std::uint64_t{1} << (but_not % 64));
    bits &= ~whole_warp_blocks_[word];
    if (bits == 0) return;
    Value* found = b_.CreateAnd(PendingWord(word), b_.getInt64(bits));
    Value* index = b_.CreateAdd(b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, found, b_.getFalse()), b_.getInt64(64 * word));
    choice = b_.CreateSelect(b_.CreateICmpNE(found, b_.getInt64(0)), index, choice);
  };
  // Least preferred first: what comes before the current block, then what comes after it, nearest last.
  const unsigned home = current / 64;
  prefer(home, BitsFromTo(0, current % 64));
  for (unsigned word = home; word-- > 0;) prefer(word, ~std::uint64_t{0});
  for (unsigned word = pending_words_; word-- > home + 1;) prefer(word, ~std::uint64_t{0});
  prefer(home, ~BitsFromTo(0, current % 64));
  return choice;
}

/// Takes pending block number `index` (i64) out of the set and goes there.
void WarpFunction::TakePending(Value* index) {
  auto* words = pending_->getAllocatedType();
  Value* bit = b_.CreateShl(b_.getInt64(1), b_.CreateAnd(index, b_.getInt64(63)));
  if (pending_words_ <= kRegisterWords) {
    for (unsigned word = 0; word < pending_words_; ++word) {
      Value* here = b_.CreateICmpEQ(b_.CreateLShr(index, 6), b_.getInt64(word));
      SetPendingWord(word, b_.CreateAnd(PendingWord(word), b_.CreateNot(b_.CreateSelect(here, bit, b_.getInt64(0)))));
    }
  } else {
    Value* word = b_.CreateInBoundsGEP(words, pending_, {b_.getInt64(0), b_.CreateLShr(index, 6)});
    b_.CreateStore(b_.CreateAnd(b_.CreateLoad(b_.getInt64Ty(), word), b_.CreateNot(bit)), word);
  }
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
  if (has_warp_syncs_) {  // whom they wait for has ended, or waits at a barrier
    BasicBlock* release = NewBlock("release_synced");
    BasicBlock* none = NewBlock("none_synced");
    b_.CreateCondBr(b_.CreateICmpEQ(AnySynced(), b_.getInt64(0)), none, release);
    b_.SetInsertPoint(release);
    ReleaseSynced();
    b_.CreateBr(dispatch_);
    b_.SetInsertPoint(none);
  }
  if (!has_barriers_) {
    b_.CreateBr(done_);
    return;
  }
  BasicBlock* wait = NewBlock("wait_parked");
  Value* any = nullptr;
  for (unsigned i = 0; i < pending_words_; ++i) {
    Value* bits = b_.CreateLoad(i64, b_.CreateConstInBoundsGEP2_32(words, parked_, 0, i));
    any = any ? b_.CreateOr(any, bits) : bits;
  }
  b_.CreateCondBr(b_.CreateICmpEQ(any, b_.getInt64(0)), done_, wait);
  b_.SetInsertPoint(wait);
  if (module_.simple_barriers) {
    EmitRingSwitch();
  } else {
    CallHelper(Helper::kBarrierWait, b_.getInt32(-1), b_.getInt32(0), 0, {});
  }
  for (unsigned i = 0; i < pending_words_; ++i) {
    Value* parked = b_.CreateConstInBoundsGEP2_32(words, parked_, 0, i);
    SetPendingWord(i, b_.CreateLoad(i64, parked));
    b_.CreateStore(b_.getInt64(0), parked);
  }
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

// ---------------------------------------------------------------------------------------------------------------------
// Edges
// ---------------------------------------------------------------------------------------------------------------------

/// Parallel copy of the values flowing into `to` from the current block, for the lanes of `mask` (null: all).
void WarpFunction::CopyPhis(BasicBlock* to, Value* mask) {
  BasicBlock* from = order_.blocks[current_];
  llvm::SmallVector<std::pair<llvm::PHINode*, Value*>, 8> copies;
  for (llvm::PHINode& phi : to->phis()) {
    Value* incoming = phi.getIncomingValueForBlock(from);
    const Shape& shape = ShapeOf(&phi);
    copies.emplace_back(&phi, shape.vector() ? Lanes(incoming) : Base(incoming));
  }
  for (auto& [phi, value] : copies) StoreSlot(phi, value, ShapeOf(phi).vector() ? mask : nullptr);
}

void WarpFunction::EmitEdge(BasicBlock* to, Value* mask) {
  const unsigned index = order_.IndexOf(to);
  CopyPhis(to, divergent_ ? mask : nullptr);
  if (divergent_) return Arrive(index, mask);
  if (index <= current_ && shapes_->Waits(loops_->getLoopFor(to))) {
    BasicBlock* tired = NewBlock("tired");
    Value* fuel = b_.CreateSub(b_.CreateLoad(b_.getInt32Ty(), fuel_slot_), b_.getInt32(1));
    b_.CreateStore(fuel, fuel_slot_);
    b_.CreateCondBr(b_.CreateICmpEQ(fuel, b_.getInt32(0)), tired, converged_[index], Unlikely());
    b_.SetInsertPoint(tired);
    b_.CreateStore(b_.getInt32(64), fuel_slot_);
    CallHelper(Helper::kWarpYield, b_.getInt32(-1), b_.getInt32(0), 0, {});
  }
  b_.CreateBr(converged_[index]);
}

/// After a call in which lanes may have ended: those that came back go on to `to`. When it is all of them, the caller of this
/// function emits how.
void WarpFunction::DropEndedLanes(BasicBlock* to) {
  Value* left = b_.CreateAnd(mask_, b_.CreateNot(b_.CreateLoad(b_.getInt32Ty(), ExitedMask())));
  BasicBlock* all = NewBlock("all_back");
  BasicBlock* not_all = NewBlock("not_all_back");
  BasicBlock* some = NewBlock("some_back");
  b_.CreateCondBr(b_.CreateICmpEQ(left, mask_), all, not_all, Likely());
  b_.SetInsertPoint(not_all);
  b_.CreateCondBr(b_.CreateICmpEQ(left, b_.getInt32(0)), divergent_ ? dispatch_ : done_, some);
  {
    Scope scope(*this);
    b_.SetInsertPoint(some);
    CopyPhis(to, left);
    Arrive(order_.IndexOf(to), left);
  }
  b_.SetInsertPoint(all);
}

/// Nonzero (i64) when lanes wait at a bar.warp.sync.
Value* WarpFunction::AnySynced() {
  Value* any = nullptr;
  for (unsigned word = 0; word < pending_words_; ++word) {
    Value* bits = b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP2_32(synced_->getAllocatedType(), synced_, 0, word));
    any = any ? b_.CreateOr(any, bits) : bits;
  }
  return any;
}

/// All lanes that wait at a bar.warp.sync become pending behind it.
void WarpFunction::ReleaseSynced() {
  for (unsigned word = 0; word < pending_words_; ++word) {
    Value* slot = b_.CreateConstInBoundsGEP2_32(synced_->getAllocatedType(), synced_, 0, word);
    SetPendingWord(word, b_.CreateOr(PendingWord(word), b_.CreateLoad(b_.getInt64Ty(), slot)));
    b_.CreateStore(b_.getInt64(0), slot);
  }
  b_.CreateStore(b_.getInt32(0), synced_lanes_);
}

/// After bar.warp.sync in a diverged warp: members of its mask that are elsewhere come first (PTX ISA, 9.7.13.2). The lanes wait
/// in a set of their own; when no member is missing, or no lane is left that could come, all of the set go on, earliest block first.
void WarpFunction::WaitForMembers(const llvm::CallInst& sync, BasicBlock* to) {
  if (!divergent_ || !to->hasNPredecessors(1)) return;
  Value* members = sync.getArgOperand(0);
  if (ShapeOf(members).uniform()) {
    members = Base(members);
  } else {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_, b_.getFalse());
    members = b_.CreateExtractElement(Lanes(members), b_.CreateAnd(lane, b_.getInt32(31)));
  }
  Value* missing = b_.CreateAnd(members, b_.CreateNot(mask_));
  BasicBlock* check = NewBlock("members_missing");
  BasicBlock* wait = NewBlock("wait_for_members");
  BasicBlock* release = NewBlock("members_here");
  BasicBlock* go = NewBlock("synced");
  b_.CreateCondBr(b_.CreateICmpEQ(missing, b_.getInt32(0)), go, check);
  b_.SetInsertPoint(check);
  b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateOr(AnyPending(), AnySynced()), b_.getInt64(0)), go, wait);
  {
    Scope scope(*this);
    b_.SetInsertPoint(wait);
    const unsigned index = order_.IndexOf(to);
    CopyPhis(to, mask_);
    Value* mask_at = b_.CreateConstInBoundsGEP2_32(pending_masks_->getAllocatedType(), pending_masks_, 0, index);
    b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), mask_at), mask_), mask_at);
    Value* word = b_.CreateConstInBoundsGEP2_32(synced_->getAllocatedType(), synced_, 0, index / 64);
    b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt64Ty(), word), b_.getInt64(std::uint64_t{1} << (index % 64))), word);
    entries_[index] = entries_[index] ? entries_[index] : EntryTo(index);
    Value* waiting = b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), synced_lanes_), mask_);
    b_.CreateStore(waiting, synced_lanes_);
    Value* all_here = b_.CreateICmpEQ(b_.CreateAnd(missing, b_.CreateNot(waiting)), b_.getInt32(0));
    Value* nobody_left = b_.CreateICmpEQ(AnyPending(), b_.getInt64(0));
    b_.CreateCondBr(b_.CreateOr(all_here, nobody_left), release, dispatch_);
    b_.SetInsertPoint(release);
    ReleaseSynced();
    b_.CreateBr(dispatch_);
  }
  b_.SetInsertPoint(go);
}

void WarpFunction::EmitDivergentBranch(llvm::BranchInst& branch) {
  BasicBlock* on_true = branch.getSuccessor(0);
  BasicBlock* on_false = branch.getSuccessor(1);
  Value* bits = ToBits(Lanes(branch.getCondition()));
  Value* taken = divergent_ ? b_.CreateAnd(bits, mask_) : bits;
  BasicBlock* join = JoinOfArms(branch);
  if (join && divergent_) return EmitArms(branch, join, taken, false);
  BasicBlock* all = NewBlock("all");
  BasicBlock* some = NewBlock("some");
  BasicBlock* none = NewBlock("none");
  BasicBlock* split = NewBlock("split");
  b_.CreateCondBr(b_.CreateICmpEQ(taken, mask_), all, some);
  b_.SetInsertPoint(some);
  b_.CreateCondBr(b_.CreateICmpEQ(taken, b_.getInt32(0)), none, split);
  {
    Scope scope(*this);
    b_.SetInsertPoint(all);
    EmitEdge(on_true, mask_);
  }
  {
    Scope scope(*this);
    b_.SetInsertPoint(none);
    EmitEdge(on_false, mask_);
  }

  b_.SetInsertPoint(split);
  if (join) return EmitArms(branch, join, taken, true);
  Value* rest = b_.CreateXor(taken, mask_);
  const bool true_first = order_.IndexOf(on_true) < order_.IndexOf(on_false);
  BasicBlock* first = true_first ? on_true : on_false;
  BasicBlock* later = true_first ? on_false : on_true;
  Value* first_mask = true_first ? taken : rest;
  Value* later_mask = true_first ? rest : taken;
  CopyPhis(later, later_mask);
  CopyPhis(first, first_mask);
  Pend(order_.IndexOf(later), later_mask);
  Arrive(order_.IndexOf(first), first_mask);
}

void WarpFunction::EmitTerminator(llvm::Instruction& terminator) {
  b_.SetCurrentDebugLocation(terminator.getDebugLoc());
  if (auto* ret = llvm::dyn_cast<llvm::ReturnInst>(&terminator)) return EmitReturn(*ret);
  if (llvm::isa<llvm::UnreachableInst>(terminator)) {
    // After trap or exit: nothing of these lanes is left.
    b_.CreateBr(divergent_ ? dispatch_ : done_);
    return;
  }
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(&terminator);
  if (!branch) {
    module_.error = std::string("control flow by '") + terminator.getOpcodeName() + "' is not supported";
    return;
  }
  if (!branch->isConditional()) {
    const auto* call = llvm::dyn_cast_or_null<llvm::CallInst>(branch->getPrevNode());
    if (call && module_.thread_ends.MayEndIn(*call)) DropEndedLanes(branch->getSuccessor(0));
    const MarkerInfo* info = call ? module_.MarkerOf(*call) : nullptr;
    if (info && info->kind == MarkerKind::kWarpSync) WaitForMembers(*call, branch->getSuccessor(0));
    return EmitEdge(branch->getSuccessor(0), mask_);
  }
  if (shapes_->IsDivergent(branch) && branch->getSuccessor(0) != branch->getSuccessor(1)) return EmitDivergentBranch(*branch);
  Value* condition = ShapeOf(branch->getCondition()).uniform()
                         ? Base(branch->getCondition())
                         : b_.CreateICmpNE(b_.CreateAnd(ToBits(Lanes(branch->getCondition())), mask_), b_.getInt32(0));
  BasicBlock* on_true = NewBlock("true");
  BasicBlock* on_false = NewBlock("false");
  b_.CreateCondBr(condition, on_true, on_false);
  {
    Scope scope(*this);
    b_.SetInsertPoint(on_true);
    EmitEdge(branch->getSuccessor(0), mask_);
  }
  b_.SetInsertPoint(on_false);
  EmitEdge(branch->getSuccessor(1), mask_);
}

void WarpFunction::EmitReturn(llvm::ReturnInst& ret) {
  if (return_slot_) {
    Value* value = Lanes(ret.getReturnValue());
    if (divergent_ && !value->getType()->isStructTy()) {
      Value* lanes = MaskLanes();
      value = b_.CreateSelect(lanes, value, b_.CreateLoad(value->getType(), return_slot_));
    } else if (divergent_) {
      Value* old = b_.CreateLoad(value->getType(), return_slot_);
      Value* merged = old;
      for (unsigned i = 0; i < value->getType()->getStructNumElements(); ++i) {
        Value* part = b_.CreateSelect(MaskLanes(), b_.CreateExtractValue(value, i), b_.CreateExtractValue(old, i));
        merged = b_.CreateInsertValue(merged, part, i);
      }
      value = merged;
    }
    b_.CreateStore(value, return_slot_);
  }
  b_.CreateBr(divergent_ ? dispatch_ : done_);
}

/// A barrier ends its block (the pipeline splits blocks there). Lanes of a diverged warp park until the others of the warp
/// have arrived somewhere too; then the warp waits as one.
void WarpFunction::EmitBarrierEnd(const llvm::CallInst& call, const MarkerInfo& info) {
  const auto op = static_cast<BarrierOp>(info.imm);
  Value* id = call.getArgOperand(0);
  Value* threads = call.getArgOperand(1);
  Value* predicate = call.getArgOperand(2);
  Value* line = call.getArgOperand(3);
  const auto general = [&](std::uint64_t flags) {
    Value* out = Scratch(0, 128);
    Value* id_buffer = SpillLanes(1, Lanes(id));
    Value* threads_buffer = SpillLanes(2, Lanes(threads));
    Value* predicate_buffer = SpillLanes(3, Lanes(predicate));
    CallHelper(Helper::kBarrier, mask_, line, info.imm | flags, {out, id_buffer, threads_buffer, predicate_buffer});
    return out;
  };
  auto* instruction = const_cast<llvm::CallInst*>(&call);
  const bool waits = op != BarrierOp::kArrive;
  if (divergent_ && waits && (op == BarrierOp::kSync)) {
    BasicBlock* park = NewBlock("park");
    BasicBlock* together = NewBlock("together");
    BasicBlock* after = NewBlock("after_barrier");
    auto* words = parked_->getAllocatedType();
    Value* any = AnyPending();
    for (unsigned i = 0; i < pending_words_; ++i) {
      any = b_.CreateOr(any, b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP2_32(words, parked_, 0, i)));
    }
    b_.CreateCondBr(b_.CreateICmpEQ(any, b_.getInt64(0)), together, park);
    b_.SetInsertPoint(park);
    auto scope = std::make_unique<Scope>(*this);
    if (!module_.simple_barriers) general(kBarrierArriveOnly);
    BasicBlock* next = instruction->getParent()->getSingleSuccessor();
    const unsigned index = order_.IndexOf(next);
    CopyPhis(next, mask_);
    Value* mask_at = b_.CreateConstInBoundsGEP2_32(pending_masks_->getAllocatedType(), pending_masks_, 0, index);
    b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), mask_at), mask_), mask_at);
    Value* word = b_.CreateConstInBoundsGEP2_32(words, parked_, 0, index / 64);
    b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt64Ty(), word), b_.getInt64(std::uint64_t{1} << (index % 64))), word);
    entries_[index] = entries_[index] ? entries_[index] : EntryTo(index);
    b_.CreateBr(dispatch_);
    scope.reset();
    b_.SetInsertPoint(together);
    if (module_.simple_barriers) {
      EmitRingSwitch();
    } else {
      general(0);
    }
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    if (!instruction->use_empty()) Define(instruction, ShapeOf(instruction).vector() ? Splat(b_.getInt32(0)) : b_.getInt32(0));
    return;
  }
  if (module_.simple_barriers) {
    EmitRingSwitch();
    if (!instruction->use_empty()) Define(instruction, ShapeOf(instruction).vector() ? Splat(b_.getInt32(0)) : b_.getInt32(0));
    return;
  }
  Value* out = general(0);
  if (instruction->use_empty()) return;
  if (ShapeOf(instruction).vector()) {
    Define(instruction, ReloadLanes(out, WarpType(b_.getInt32Ty())));
  } else {
    Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_, b_.getFalse());
    lane = b_.CreateAnd(lane, b_.getInt32(31));
    Define(instruction, b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), out, lane)));
  }
}

}  // namespace gridloom::exec
