// Control flow of the warp form: two copies of every block, branches, edges. What waits and who runs next:
// warp_dispatch.cpp and warp_waiting.cpp.
#include "sim/exec/compiler/warp_control.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>

#include "sim/exec/compiler/pending_set.h"
#include "sim/exec/compiler/warp_arms.h"
#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_cta_loop.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_group.h"
#include "sim/exec/compiler/warp_guard.h"
#include "sim/exec/compiler/warp_lane_loop.h"
#include "sim/exec/compiler/warp_meeting.h"
#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_record_loop.h"
#include "sim/exec/compiler/warp_source.h"
#include "sim/exec/compiler/warp_values.h"
#include "sim/exec/compiler/warp_waiting.h"
#include "sim/exec/compiler/warp_whole_condition.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

void ControlEmitter::PrepareBlocks() {
  w_.entry = w_.NewBlock("entry");
  copies_.Prepare();
  for (BasicBlock* block : source_.order.blocks) {
    const auto* branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (!branch || !branch->isConditional() || !source_.shapes.IsDivergent(branch)) continue;
    for (const BasicBlock* next : arms_.BlocksOfArms(*branch)) arm_blocks_.insert(next);
  }
}

void ControlEmitter::EmitEntry() {
  b_.SetInsertPoint(w_.entry);
  llvm::Type* i32 = b_.getInt32Ty();
  frame_.Allocate();
  if (source_.shapes.has_waiting_loops()) frame_.fuel = b_.CreateAlloca(i32, nullptr, "fuel");
  if (!source_.function.getReturnType()->isVoidTy()) {
    return_slot_ = b_.CreateAlloca(WarpType(source_.function.getReturnType()), nullptr, "result");
  }
  w_.head = w_.entry;
  record_buffer_.TakeRecordCursor();
  // Masks are zero again when they have been taken, so at a warp's end all are. Warps that take turns have their own.
  const auto begin_waiting = [&] {
    ClearArray(b_, frame_.pending_masks);
    if (!source_.met_blocks.empty()) meetings_.BeginMeetings();
  };
  if (!module_.turns) begin_waiting();
  if (source_.RunsByCta()) cta_loop_.EmitLoopHead();
  if (module_.turns) begin_waiting();

  for (llvm::AllocaInst* const set : {frame_.pending, frame_.parked}) ClearArray(b_, set);
  if (frame_.fuel) b_.CreateStore(b_.getInt32(kFuel), frame_.fuel);
  BasicBlock* start = w_.NewBlock("start");
  b_.CreateBr(start);  // AtEntry inserts before this
  b_.SetInsertPoint(start);
  Value* mask = source_.is_kernel ? w_.WarpField(offsetof(WarpCtx, initial_mask), i32) : w_.target->getArg(1);
  b_.CreateStore(mask, frame_.mask);
  b_.CreateCondBr(b_.CreateICmpEQ(mask, guards_.WholeMask()), copies_.converged[0], copies_.divergent[0], w_.Likely());
}

void ControlEmitter::EmitBlock(unsigned index, bool divergent) {
  w_.BeginBlock(index, divergent);
  load_groups_.BeginBlock();
  b_.SetInsertPoint(divergent ? copies_.divergent[index] : copies_.converged[index]);
  if (divergent && arm_blocks_.contains(source_.order.blocks[index])) {
    b_.CreateUnreachable();  // runs as part of the block before it
    return;
  }
  meetings_.BeginBlock();
  record_buffer_.cursor = nullptr;
  w_.mask = divergent ? static_cast<Value*>(b_.CreateLoad(b_.getInt32Ty(), frame_.mask)) : b_.getInt32(-1);
  if (const llvm::Loop* loop = source_.loops.getLoopFor(source_.order.blocks[index]);
      divergent && loop && loop->getHeader() == source_.order.blocks[index] && lane_loops_.RunsLaneByLane(*loop)) {
    lane_loops_.EmitLaneLoop(*loop);
  }
  if (divergent && source_.met_blocks.contains(source_.order.blocks[index])) meetings_.BeginMet();
  for (llvm::Instruction& instruction : *source_.order.blocks[index]) {
    if (!module_.error.empty()) return;
    if (llvm::isa<llvm::PHINode>(instruction)) continue;
    if (UsedOutside(instruction) && values_.IsEntryValue(&instruction))
      continue;  // made at the entry when it is first asked for
    if (instruction.isTerminator()) {
      record_groups_.SaveRecordCursor();
      EmitTerminator(instruction);
      return;
    }
    values_.EmitInstruction(instruction);
  }
}

void ControlEmitter::EmitEdge(BasicBlock* to, Value* mask) {
  const unsigned index = source_.order.IndexOf(to);
  if (index <= w_.current) loop_records_.CountRound(to);
  loop_records_.LeaveRecordLoop(to);
  copies_.CopyPhis(to, w_.divergent ? mask : nullptr);
  if (w_.divergent) return copies_.Arrive(index, mask);
  if (index > w_.current && lane_loops_.AlwaysRunsLaneByLane(to)) {
    b_.CreateStore(b_.getInt32(-1), frame_.mask);
    b_.CreateBr(copies_.divergent[index]);
    return;
  }
  if (index <= w_.current && source_.shapes.Waits(source_.loops.getLoopFor(to)))
    copies_.BurnFuel(b_.getInt32(-1), copies_.converged[index]);
  b_.CreateBr(copies_.converged[index]);
}

/// Where lanes leave a small loop at `branch`, one by one and with little to take along, or null.
BasicBlock* ControlEmitter::ExitOneByOne(const llvm::BranchInst& branch) const {
  constexpr unsigned kMostPhis = 2;
  const llvm::Loop* loop = source_.loops.getLoopFor(branch.getParent());
  if (!loop || !loop->isInnermost() || !source_.RunsTogether(*loop)) return nullptr;
  const bool stays_on_true = loop->contains(branch.getSuccessor(0));
  BasicBlock* exit = branch.getSuccessor(stays_on_true ? 1 : 0);
  if (loop->contains(exit) || !loop->contains(branch.getSuccessor(stays_on_true ? 0 : 1))) return nullptr;
  return std::distance(exit->phis().begin(), exit->phis().end()) <= kMostPhis ? exit : nullptr;
}

/// The lanes that leave are put aside without a test whether there are any: in which iterations that happens no
/// processor can foresee.
void ControlEmitter::EmitLeaving(const llvm::BranchInst& branch, BasicBlock* exit, Value* taken) {
  const bool stays_on_true = branch.getSuccessor(1) == exit;
  BasicBlock* inside = branch.getSuccessor(stays_on_true ? 0 : 1);
  Value* rest = b_.CreateXor(taken, w_.mask);
  Value* staying = stays_on_true ? taken : rest;
  Value* leaving = stays_on_true ? rest : taken;
  BasicBlock* none = w_.NewBlock("none");
  BasicBlock* some = w_.NewBlock("some");
  b_.CreateCondBr(b_.CreateICmpEQ(staying, b_.getInt32(0)), none, some);
  {
    Scope scope(w_);
    b_.SetInsertPoint(none);
    EmitEdge(exit, w_.mask);
  }
  b_.SetInsertPoint(some);
  copies_.CopyPhis(exit, leaving);
  copies_.PendIfAny(source_.order.IndexOf(exit), leaving);
  EmitEdge(inside, staying);
}

/// Goes to `all` or `none` where scalars tell that a condition holds for all lanes of a whole warp or for none, and
/// leaves the builder where they do not tell.
void ControlEmitter::EmitWholeTests(Value* condition, BasicBlock* all, BasicBlock* none) {
  // Both before the first branch: what they load is there on all ways.
  Value* const holds[2] = {conditions_.HoldsForAll(condition, true), conditions_.HoldsForAll(condition, false)};
  for (unsigned way = 0; way < 2; ++way) {
    if (!holds[way]) continue;
    BasicBlock* next = w_.NewBlock("not_whole");
    b_.CreateCondBr(holds[way], way == 0 ? all : none, next);
    b_.SetInsertPoint(next);
  }
}

/// The edge of a branch that all active lanes take, from `block`.
void ControlEmitter::EmitCommonEdge(BasicBlock* block, BasicBlock* to) {
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  const Scope scope(w_);
  b_.SetInsertPoint(block);
  EmitEdge(to, w_.mask);
}

void ControlEmitter::EmitDivergentBranch(llvm::BranchInst& branch) {
  BasicBlock* join = arms_.JoinOfArms(branch);
  BasicBlock* exit = w_.divergent && !join ? ExitOneByOne(branch) : nullptr;
  const auto taken = [&] {
    Value* bits = w_.ToBits(values_.Lanes(branch.getCondition()));
    return w_.divergent ? b_.CreateAnd(bits, w_.mask) : bits;
  };
  if (join && w_.divergent) return arms_.EmitArms(branch, join, taken(), false);
  if (exit) return EmitLeaving(branch, exit, taken());
  BasicBlock* all = w_.NewBlock("all");
  BasicBlock* none = w_.NewBlock("none");
  BasicBlock* some = w_.NewBlock("some");
  BasicBlock* split = w_.NewBlock("split");
  if (!w_.divergent) EmitWholeTests(branch.getCondition(), all, none);
  EmitCommonEdge(all, branch.getSuccessor(0));
  EmitCommonEdge(none, branch.getSuccessor(1));
  Value* mask = taken();
  b_.CreateCondBr(b_.CreateICmpEQ(mask, w_.mask), all, some);
  b_.SetInsertPoint(some);
  b_.CreateCondBr(b_.CreateICmpEQ(mask, b_.getInt32(0)), none, split);
  b_.SetInsertPoint(split);
  if (join) return arms_.EmitArms(branch, join, mask, true);
  EmitSplit(branch.getSuccessor(0), branch.getSuccessor(1), mask);
}

/// Both ways of a divergent branch have lanes: those of the earlier block run.
void ControlEmitter::EmitSplit(BasicBlock* on_true, BasicBlock* on_false, Value* taken) {
  Value* rest = b_.CreateXor(taken, w_.mask);
  const bool true_first = source_.order.IndexOf(on_true) < source_.order.IndexOf(on_false);
  BasicBlock* first = true_first ? on_true : on_false;
  BasicBlock* later = true_first ? on_false : on_true;
  Value* first_mask = true_first ? taken : rest;
  Value* later_mask = true_first ? rest : taken;
  copies_.CopyPhis(later, later_mask);
  copies_.CopyPhis(first, first_mask);
  copies_.Pend(source_.order.IndexOf(later), later_mask);
  copies_.Arrive(source_.order.IndexOf(first), first_mask);
}

void ControlEmitter::EmitTerminator(llvm::Instruction& terminator) {
  b_.SetCurrentDebugLocation(terminator.getDebugLoc());
  if (auto* ret = llvm::dyn_cast<llvm::ReturnInst>(&terminator)) return EmitReturn(*ret);
  if (llvm::isa<llvm::UnreachableInst>(terminator)) {
    // After trap or exit: nothing of these lanes is left.
    b_.CreateBr(w_.divergent ? copies_.ended : copies_.done);
    return;
  }
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(&terminator);
  if (!branch) {
    module_.error = std::string("control flow by '") + terminator.getOpcodeName() + "' is not supported";
    return;
  }
  if (!branch->isConditional()) {
    const auto* call = llvm::dyn_cast_or_null<llvm::CallInst>(branch->getPrevNode());
    if (call && module_.thread_ends.MayEndIn(*call)) barriers_.DropEndedLanes(branch->getSuccessor(0));
    const MarkerInfo* info = call ? module_.MarkerOf(*call) : nullptr;
    if (info && info->kind == MarkerKind::kMeet && w_.divergent)
      meetings_.EmitMeet(*call, *info, branch->getSuccessor(0));
    return EmitEdge(branch->getSuccessor(0), w_.mask);
  }
  if (source_.shapes.IsDivergent(branch) && branch->getSuccessor(0) != branch->getSuccessor(1))
    return EmitDivergentBranch(*branch);
  Value* condition =
      values_.ShapeOf(branch->getCondition()).uniform()
          ? values_.Base(branch->getCondition())
          : b_.CreateICmpNE(b_.CreateAnd(w_.ToBits(values_.Lanes(branch->getCondition())), w_.mask), b_.getInt32(0));
  BasicBlock* on_true = w_.NewBlock("true");
  BasicBlock* on_false = w_.NewBlock("false");
  b_.CreateCondBr(condition, on_true, on_false, branch->getMetadata(llvm::LLVMContext::MD_prof));
  {
    Scope scope(w_);
    b_.SetInsertPoint(on_true);
    EmitEdge(branch->getSuccessor(0), w_.mask);
  }
  b_.SetInsertPoint(on_false);
  EmitEdge(branch->getSuccessor(1), w_.mask);
}

void ControlEmitter::EmitReturn(llvm::ReturnInst& ret) {
  if (return_slot_) {
    Value* value = values_.Lanes(ret.getReturnValue());
    if (w_.divergent) value = w_.SelectLanes(w_.MaskLanes(), value, b_.CreateLoad(value->getType(), return_slot_));
    b_.CreateStore(value, return_slot_);
  }
  b_.CreateBr(w_.divergent ? copies_.ended : copies_.done);
}

// In registers, every value that lives across blocks becomes a phi at every block the dispatcher can enter: the product
// of both explodes in large kernels. There the slots stay in memory, by letting their addresses escape into an empty
// assembly. What only barriers touch stays in memory always.
void ControlEmitter::KeepSlotsInMemory() {
  constexpr std::size_t kMostPhis = 12000;
  b_.SetInsertPoint(w_.entry->getTerminator());
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {b_.getPtrTy()}, false);
  auto* escape = llvm::InlineAsm::get(type, "", "r,~{memory}", true, false);
  if (source_.barriers != 0) b_.CreateCall(escape, {frame_.parked});
  if (values_.slots().size() * source_.order.blocks.size() <= kMostPhis) return;
  b_.CreateCall(escape, {frame_.mask});
  if (record_buffer_.slot) b_.CreateCall(escape, {record_buffer_.slot});
  for (const auto& [instruction, slot] : values_.slots()) b_.CreateCall(escape, {slot});
}

void ControlEmitter::EmitEnd() {
  KeepSlotsInMemory();
  barriers_.ForgetSlots();
  if (source_.RunsByCta()) return cta_loop_.EmitLoopEnd();
  b_.SetInsertPoint(copies_.done);
  record_buffer_.ReturnRecordCursor();
  if (return_slot_) {
    b_.CreateRet(b_.CreateLoad(return_slot_->getAllocatedType(), return_slot_));
  } else {
    b_.CreateRetVoid();
  }
}

}  // namespace gridloom::exec
