// Lanes of a diverged warp that wait for the rest of it at barriers, and lanes that have ended. Those that wait are
// kept as the pending ones are, in a set of their own. .sync instructions: warp_meeting.cpp.
#include "sim/exec/compiler/pending_set.h"
#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

// ---------------------------------------------------------------------------------------------------------------------
// Sets of blocks whose lanes wait
// ---------------------------------------------------------------------------------------------------------------------

/// Nonzero (i64) when lanes wait in `set`.
Value* WarpFunction::AnyIn(llvm::AllocaInst* set) {
  return AnyBetween(b_, set, 0, static_cast<unsigned>(order_.blocks.size()) - 1);
}

/// The active lanes wait in `set` to go on at `to`.
void WarpFunction::WaitIn(llvm::AllocaInst* set, BasicBlock* to) {
  const unsigned index = order_.IndexOf(to);
  CopyPhis(to, mask_);
  AddLanesAt(index, mask_);
  Value* word = b_.CreateConstInBoundsGEP2_32(set->getAllocatedType(), set, 0, index / 64);
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(b_.getInt64Ty(), word), b_.getInt64(std::uint64_t{1} << (index % 64))),
                 word);
}

/// All that wait in `set` become pending.
void WarpFunction::ReleaseAll(llvm::AllocaInst* set) {
  for (unsigned word = 0; word < pending_words_; ++word) {
    Value* slot = b_.CreateConstInBoundsGEP2_32(set->getAllocatedType(), set, 0, word);
    SetPendingWord(word, b_.CreateOr(PendingWord(word), b_.CreateLoad(b_.getInt64Ty(), slot)));
    b_.CreateStore(b_.getInt64(0), slot);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Lanes that end, barriers
// ---------------------------------------------------------------------------------------------------------------------
/// After a call in which lanes may have ended: those that came back go on to `to`. When it is all of them, the caller
/// of this function emits how.
void WarpFunction::DropEndedLanes(BasicBlock* to) {
  Value* left = b_.CreateAnd(mask_, b_.CreateNot(b_.CreateLoad(b_.getInt32Ty(), ExitedMask())));
  BasicBlock* all = NewBlock("all_back");
  BasicBlock* not_all = NewBlock("not_all_back");
  BasicBlock* some = NewBlock("some_back");
  b_.CreateCondBr(b_.CreateICmpEQ(left, mask_), all, not_all, Likely());
  b_.SetInsertPoint(not_all);
  b_.CreateCondBr(b_.CreateICmpEQ(left, b_.getInt32(0)), divergent_ ? ended_ : done_, some);
  {
    Scope scope(*this);
    b_.SetInsertPoint(some);
    CopyPhis(to, left);
    Arrive(order_.IndexOf(to), left);
  }
  b_.SetInsertPoint(all);
}

/// bar.sync 0 of a kernel with no other barrier. Where each turn of the ring is one of a barrier, all have arrived or
/// ended when control comes back. Where warps give way in between it says nothing, so arrivals are counted.
void WarpFunction::EmitFullBarrier() {
  if (!module_.gives_way) return EmitRingSwitch();
  llvm::Type* i32 = b_.getInt32Ty();
  Value* cta = WarpField(offsetof(WarpCtx, cta), b_.getPtrTy());
  const auto field = [&](std::size_t offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cta, offset); };
  Value* arrived_field = field(offsetof(CtaCtx, arrived_warps));
  Value* phase_field = field(offsetof(CtaCtx, barrier_phase));
  Value* phase = b_.CreateLoad(i32, phase_field);
  Value* arrived = b_.CreateAdd(b_.CreateLoad(i32, arrived_field), b_.getInt32(1));
  Value* full = b_.CreateICmpEQ(arrived, b_.CreateLoad(i32, field(offsetof(CtaCtx, live_warps))));
  b_.CreateStore(b_.CreateSelect(full, b_.getInt32(0), arrived), arrived_field);
  b_.CreateStore(b_.CreateAdd(phase, b_.CreateZExt(full, i32)), phase_field);
  BasicBlock* turn = NewBlock("barrier_turn");
  BasicBlock* over = NewBlock("barrier_over");
  b_.CreateBr(turn);
  b_.SetInsertPoint(turn);
  EmitRingSwitch();  // the last to arrive, too: it goes on in its place
  b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateLoad(i32, phase_field), phase), turn, over);
  b_.SetInsertPoint(over);
}

/// A barrier ends its block (the pipeline splits blocks there). Lanes of a diverged warp park until the others of the
/// warp have arrived somewhere too; then the warp waits as one.
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
  const auto together = [&]() -> Value* {  // null: the barrier counts nothing
    if (!module_.simple_barriers) return general(0);
    EmitFullBarrier();
    return nullptr;
  };
  Value* out = nullptr;
  if (divergent_ && (op == BarrierOp::kSync || op == BarrierOp::kWarpGroup)) {
    SaveRecordCursor();  // the lanes that go on meanwhile write behind what these have written
    BasicBlock* park = NewBlock("park");
    BasicBlock* last = NewBlock("together");
    Value* elsewhere = b_.CreateOr(AnyPending(), AnyIn(parked_));
    if (meetings_) elsewhere = b_.CreateOr(elsewhere, b_.CreateZExt(WaitingLanes(), b_.getInt64Ty()));
    b_.CreateCondBr(b_.CreateICmpEQ(elsewhere, b_.getInt64(0)), last, park);
    {
      Scope scope(*this);
      b_.SetInsertPoint(park);
      if (!module_.simple_barriers) general(kBarrierArriveOnly);
      WaitIn(parked_, instruction->getParent()->getSingleSuccessor());
      b_.CreateBr(dispatch_);
    }
    b_.SetInsertPoint(last);
    together();
  } else {
    out = together();
  }
  if (instruction->use_empty()) return;
  const bool vector = ShapeOf(instruction).vector();
  if (!out) return Define(instruction, vector ? Splat(b_.getInt32(0)) : b_.getInt32(0));
  if (vector) return Define(instruction, ReloadLanes(out, WarpType(b_.getInt32Ty())));
  Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, mask_, b_.getFalse());
  lane = b_.CreateAnd(lane, b_.getInt32(31));
  Define(instruction, b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), out, lane)));
}

}  // namespace gridloom::exec
