// Control flow of the warp form: two copies of every block, branches, edges. What waits and who runs next:
// warp_dispatch.cpp and warp_waiting.cpp.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>

#include "sim/exec/compiler/pending_set.h"
#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

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
  ended_ = dispatch_;
  done_ = NewBlock("done");
  pending_words_ = (count + 63) / 64;
  for (BasicBlock* block : order_.blocks) {
    for (llvm::Instruction& instruction : *block) {
      const MarkerInfo* info = module_.MarkerOf(instruction);
      barriers_ += info && info->kind == MarkerKind::kBarrier ? 1 : 0;
      if (info && info->kind == MarkerKind::kMeet) met_blocks_.insert(block->getSingleSuccessor());
    }
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    const BasicBlock* join =
        branch && branch->isConditional() && shapes_->IsDivergent(branch) ? JoinOfArms(*branch) : nullptr;
    for (BasicBlock* next : llvm::successors(block)) {
      if (join && next != join) arms_.insert(next);
    }
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
  if (!met_blocks_.empty()) BeginMeetings();
  if (shapes_->has_waiting_loops()) fuel_slot_ = b_.CreateAlloca(i32, nullptr, "fuel");
  if (!source_.getReturnType()->isVoidTy()) {
    return_slot_ = b_.CreateAlloca(WarpType(source_.getReturnType()), nullptr, "result");
  }
  // Masks are zero again when they have been taken, so at a warp's end all are.
  ClearArray(b_, pending_masks_);
  head_ = entry_;
  TakeRecordCursor();
  if (RunsByCta()) EmitLoopHead();

  for (llvm::AllocaInst* const set : {pending_, parked_}) ClearArray(b_, set);
  if (fuel_slot_) b_.CreateStore(b_.getInt32(kFuel), fuel_slot_);
  BasicBlock* start = NewBlock("start");
  b_.CreateBr(start);  // AtEntry inserts before this
  b_.SetInsertPoint(start);
  Value* mask = is_kernel_ ? WarpField(offsetof(WarpCtx, initial_mask), i32) : target_->getArg(1);
  b_.CreateStore(mask, mask_slot_);
  b_.CreateCondBr(b_.CreateICmpEQ(mask, b_.getInt32(-1)), converged_[0], divergent_blocks_[0], Likely());
}

/// The head of the loop over a CTA's warps (CtaEntry). The warps of a CTA have launch and CTA in common: what is loaded
/// from there does not depend on the loop, and the optimiser moves it out.
void WarpFunction::EmitLoopHead() {
  for (const std::size_t offset : {offsetof(WarpCtx, cta), offsetof(WarpCtx, launch)}) {
    auto* common =
        b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), target_->getArg(0), offset));
    common->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    entry_values_[FieldKey('w', offset)] = common;
  }
  head_ = NewBlock("warp");
  b_.CreateBr(head_);
  b_.SetInsertPoint(head_);
  auto* warp = b_.CreatePHI(b_.getPtrTy(), 2);
  warp->addIncoming(target_->getArg(0), entry_);
  warp_ = warp;
  trail_ = b_.CreatePHI(b_.getInt64Ty(), 2);
  trail_->addIncoming(target_->getArg(3), entry_);
  if (!module_.warp_of.empty()) b_.CreateStore(b_.getInt32(0), ExitedMask());
}

/// Behind a warp's end: the next one. What the slots held is of the last one, and must not be carried around the loop.
/// Undefined, not poison: where lanes are off, bits of it may stand beside those of lanes that are on.
void WarpFunction::EmitLoopEnd() {
  BasicBlock* last = NewBlock("last");
  b_.SetInsertPoint(done_);
  // An assembly of nothing keeps the trail alive up to here. It touches no memory that anything else does, or loads
  // could not be moved out of the loop.
  auto* keep =
      llvm::InlineAsm::get(llvm::FunctionType::get(b_.getInt64Ty(), {b_.getInt64Ty()}, false), "", "=r,0", true);
  auto* kept = b_.CreateCall(keep, {trail_});
  kept->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  kept->addFnAttr(llvm::Attribute::NoUnwind);
  kept->addFnAttr(llvm::Attribute::WillReturn);
  Value* trail = b_.CreateAdd(kept, b_.getInt64(1));
  Value* next = b_.CreateInBoundsGEP(b_.getInt8Ty(), warp_, target_->getArg(2));
  Value* ends = b_.CreateICmpEQ(next, target_->getArg(1));
  if (record_cursor_slot_) EndWarpRecords();
  llvm::cast<llvm::PHINode>(warp_)->addIncoming(next, b_.GetInsertBlock());
  trail_->addIncoming(trail, b_.GetInsertBlock());
  b_.CreateCondBr(ends, last, head_);
  b_.SetInsertPoint(last);
  // The first warp of the next CTA goes on there.
  if (record_cursor_slot_)
    b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), record_cursor_slot_), RecordCursorOf(target_->getArg(0)));
  b_.CreateRetVoid();
  b_.SetInsertPoint(head_, head_->getFirstNonPHIIt());
  for (const auto& [instruction, slot] : slots_) b_.CreateStore(llvm::UndefValue::get(slot->getAllocatedType()), slot);
  for (const auto& [number, loop] : record_loops_) {
    if (loop.rounds) b_.CreateStore(llvm::UndefValue::get(b_.getInt64Ty()), loop.rounds);
  }
  for (const auto& [load, note] : row_notes_) b_.CreateStore(llvm::UndefValue::get(b_.getInt1Ty()), note.in_rows);
}

void WarpFunction::EmitBlock(unsigned index, bool divergent) {
  current_ = index;
  divergent_ = divergent_copy_ = divergent;
  base_cache_.clear();
  lanes_cache_.clear();
  grouped_.clear();
  b_.SetInsertPoint(divergent ? divergent_blocks_[index] : converged_[index]);
  if (divergent && arms_.contains(order_.blocks[index])) {
    b_.CreateUnreachable();  // runs as part of the block before it
    return;
  }
  mask_lanes_ = nullptr;
  met_ = nullptr;
  record_cursor_ = nullptr;
  mask_ = divergent ? static_cast<Value*>(b_.CreateLoad(b_.getInt32Ty(), mask_slot_)) : b_.getInt32(-1);
  if (const llvm::Loop* loop = loops_->getLoopFor(order_.blocks[index]);
      divergent && loop && loop->getHeader() == order_.blocks[index] && RunsLaneByLane(*loop)) {
    EmitLaneLoop(*loop);
  }
  if (divergent && met_blocks_.contains(order_.blocks[index])) BeginMet();
  for (llvm::Instruction& instruction : *order_.blocks[index]) {
    if (!module_.error.empty()) return;
    if (llvm::isa<llvm::PHINode>(instruction)) continue;
    if (UsedOutside(instruction) && IsEntryValue(&instruction))
      continue;  // made at the entry when it is first asked for
    if (instruction.isTerminator()) {
      SaveRecordCursor();
      EmitTerminator(instruction);
      return;
    }
    EmitInstruction(instruction);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Edges and branches
// ---------------------------------------------------------------------------------------------------------------------

/// True when lanes that have left `loop`, or never entered it, are the only ones off at its latch: nothing in it waits
/// or ends threads.
bool WarpFunction::RunsTogether(const llvm::Loop& loop) const {
  if (!shapes_->InStep(loop.getHeader())) return false;
  return llvm::all_of(loop.blocks(), [&](const BasicBlock* block) {
    return llvm::all_of(*block, [&](const llvm::Instruction& instruction) { return RunsThrough(instruction); });
  });
}

/// Parallel copy of the values flowing into `to` from the current block, for the lanes of `mask` (null: all).
/// On a back edge all lanes take the copy where those that are off need nothing any more: what they had leaves the loop
/// through phis of its exit. A mask would tie each iteration to the compare that ended the one before. Numbers that are
/// not integers keep theirs: left to run on they may become subnormal, which costs more.
void WarpFunction::CopyPhis(BasicBlock* to, Value* mask) {
  BasicBlock* from = order_.blocks[current_];
  const bool free = mask && order_.IndexOf(to) <= current_ && RunsTogether(*loops_->getLoopFor(to));
  llvm::SmallVector<std::pair<llvm::PHINode*, Value*>, 8> copies;
  for (llvm::PHINode& phi : to->phis()) {
    Value* incoming = phi.getIncomingValueForBlock(from);
    const Shape& shape = ShapeOf(&phi);
    copies.emplace_back(&phi, shape.vector() ? Lanes(incoming) : Base(incoming));
  }
  for (auto& [phi, value] : copies) {
    StoreSlot(phi, value, ShapeOf(phi).vector() && !(free && phi->getType()->isIntegerTy()) ? mask : nullptr);
  }
}

void WarpFunction::EmitEdge(BasicBlock* to, Value* mask) {
  const unsigned index = order_.IndexOf(to);
  if (index <= current_) CountRound(to);
  LeaveRecordLoop(to);
  CopyPhis(to, divergent_ ? mask : nullptr);
  if (divergent_) return Arrive(index, mask);
  if (index > current_ && AlwaysRunsLaneByLane(to)) {
    b_.CreateStore(b_.getInt32(-1), mask_slot_);
    b_.CreateBr(divergent_blocks_[index]);
    return;
  }
  if (index <= current_ && shapes_->Waits(loops_->getLoopFor(to))) BurnFuel(b_.getInt32(-1), converged_[index]);
  b_.CreateBr(converged_[index]);
}

/// Where lanes leave a small loop at `branch`, one by one and with little to take along, or null.
BasicBlock* WarpFunction::ExitOneByOne(const llvm::BranchInst& branch) const {
  constexpr unsigned kMostPhis = 2;
  const llvm::Loop* loop = loops_->getLoopFor(branch.getParent());
  if (!loop || !loop->isInnermost() || !RunsTogether(*loop)) return nullptr;
  const bool stays_on_true = loop->contains(branch.getSuccessor(0));
  BasicBlock* exit = branch.getSuccessor(stays_on_true ? 1 : 0);
  if (loop->contains(exit) || !loop->contains(branch.getSuccessor(stays_on_true ? 0 : 1))) return nullptr;
  return std::distance(exit->phis().begin(), exit->phis().end()) <= kMostPhis ? exit : nullptr;
}

/// The lanes that leave are put aside without a test whether there are any: in which iterations that happens no
/// processor can foresee.
void WarpFunction::EmitLeaving(const llvm::BranchInst& branch, BasicBlock* exit, Value* taken) {
  const bool stays_on_true = branch.getSuccessor(1) == exit;
  BasicBlock* inside = branch.getSuccessor(stays_on_true ? 0 : 1);
  Value* rest = b_.CreateXor(taken, mask_);
  Value* staying = stays_on_true ? taken : rest;
  Value* leaving = stays_on_true ? rest : taken;
  BasicBlock* none = NewBlock("none");
  BasicBlock* some = NewBlock("some");
  b_.CreateCondBr(b_.CreateICmpEQ(staying, b_.getInt32(0)), none, some);
  {
    Scope scope(*this);
    b_.SetInsertPoint(none);
    EmitEdge(exit, mask_);
  }
  b_.SetInsertPoint(some);
  CopyPhis(exit, leaving);
  PendIfAny(order_.IndexOf(exit), leaving);
  EmitEdge(inside, staying);
}

void WarpFunction::EmitDivergentBranch(llvm::BranchInst& branch) {
  BasicBlock* on_true = branch.getSuccessor(0);
  BasicBlock* on_false = branch.getSuccessor(1);
  Value* bits = ToBits(Lanes(branch.getCondition()));
  Value* taken = divergent_ ? b_.CreateAnd(bits, mask_) : bits;
  BasicBlock* join = JoinOfArms(branch);
  if (join && divergent_) return EmitArms(branch, join, taken, false);
  if (BasicBlock* exit = divergent_ ? ExitOneByOne(branch) : nullptr) return EmitLeaving(branch, exit, taken);
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
    b_.CreateBr(divergent_ ? ended_ : done_);
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
    if (info && info->kind == MarkerKind::kMeet && divergent_) EmitMeet(*call, *info, branch->getSuccessor(0));
    return EmitEdge(branch->getSuccessor(0), mask_);
  }
  if (shapes_->IsDivergent(branch) && branch->getSuccessor(0) != branch->getSuccessor(1))
    return EmitDivergentBranch(*branch);
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
    if (divergent_) value = SelectLanes(MaskLanes(), value, b_.CreateLoad(value->getType(), return_slot_));
    b_.CreateStore(value, return_slot_);
  }
  b_.CreateBr(divergent_ ? ended_ : done_);
}

}  // namespace gridloom::exec
