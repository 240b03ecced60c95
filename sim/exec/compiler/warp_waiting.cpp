// Lanes of a diverged warp that wait for the rest of it at barriers, and lanes that have ended. Those that wait are
// kept as the pending ones are, in a set of their own. .sync instructions: warp_meeting.cpp.

#include "sim/exec/compiler/warp_waiting.h"

#include <iterator>

#include "sim/exec/compiler/pending_set.h"
#include "sim/exec/compiler/turns.h"
#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

// ---------------------------------------------------------------------------------------------------------------------
// Lanes that end, barriers
// ---------------------------------------------------------------------------------------------------------------------
/// After a call in which lanes may have ended: those that came back go on to `to`. When it is all of them, the caller
/// of this function emits how.
void BarrierEmitter::DropEndedLanes(BasicBlock* to) {
  Value* left = b_.CreateAnd(w_.mask, b_.CreateNot(b_.CreateLoad(b_.getInt32Ty(), w_.ExitedMask())));
  BasicBlock* all = w_.NewBlock("all_back");
  BasicBlock* not_all = w_.NewBlock("not_all_back");
  BasicBlock* some = w_.NewBlock("some_back");
  b_.CreateCondBr(b_.CreateICmpEQ(left, w_.mask), all, not_all, w_.Likely());
  b_.SetInsertPoint(not_all);
  b_.CreateCondBr(b_.CreateICmpEQ(left, b_.getInt32(0)), w_.divergent ? copies_.ended : copies_.done, some);
  {
    Scope scope(w_);
    b_.SetInsertPoint(some);
    copies_.CopyPhis(to, left);
    copies_.Arrive(source_.order.IndexOf(to), left);
  }
  b_.SetInsertPoint(all);
}

/// bar.sync 0 of a kernel with no other barrier. Where each turn of the ring is one of a barrier, all have arrived or
/// ended when control comes back. Where warps give way in between it says nothing, so arrivals are counted.
void BarrierEmitter::EmitFullBarrier() {
  if (!module_.gives_way) return calls_.EmitRingSwitch();
  llvm::Type* i32 = b_.getInt32Ty();
  Value* cta = w_.WarpField(offsetof(WarpCtx, cta), b_.getPtrTy());
  const auto field = [&](std::size_t offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cta, offset); };
  Value* arrived_field = field(offsetof(CtaCtx, arrived_warps));
  Value* phase_field = field(offsetof(CtaCtx, barrier_phase));
  Value* phase = b_.CreateLoad(i32, phase_field);
  Value* arrived = b_.CreateAdd(b_.CreateLoad(i32, arrived_field), b_.getInt32(1));
  Value* full = b_.CreateICmpEQ(arrived, b_.CreateLoad(i32, field(offsetof(CtaCtx, live_warps))));
  b_.CreateStore(b_.CreateSelect(full, b_.getInt32(0), arrived), arrived_field);
  b_.CreateStore(b_.CreateAdd(phase, b_.CreateZExt(full, i32)), phase_field);
  BasicBlock* turn = w_.NewBlock("barrier_turn");
  BasicBlock* over = w_.NewBlock("barrier_over");
  b_.CreateBr(turn);
  b_.SetInsertPoint(turn);
  calls_.EmitRingSwitch();  // the last to arrive, too: it goes on in its place
  b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateLoad(i32, phase_field), phase), turn, over);
  b_.SetInsertPoint(over);
}

/// A barrier ends its block (the pipeline splits blocks there). Lanes of a diverged warp park until the others of the
/// warp have arrived somewhere too; then the warp waits as one.
void BarrierEmitter::EmitBarrierEnd(const llvm::CallInst& call, const MarkerInfo& info) {
  const auto op = static_cast<BarrierOp>(info.imm);
  Value* id = call.getArgOperand(0);
  Value* threads = call.getArgOperand(1);
  Value* predicate = call.getArgOperand(2);
  Value* line = call.getArgOperand(3);
  const auto general = [&](std::uint64_t flags) {
    Value* out = w_.Scratch(0, 128);
    Value* id_buffer = w_.SpillLanes(1, values_.Lanes(id));
    Value* threads_buffer = w_.SpillLanes(2, values_.Lanes(threads));
    Value* predicate_buffer = w_.SpillLanes(3, values_.Lanes(predicate));
    calls_.CallHelper(Helper::kBarrier, w_.mask, line, info.imm | flags,
                      {out, id_buffer, threads_buffer, predicate_buffer});
    return out;
  };
  auto* instruction = const_cast<llvm::CallInst*>(&call);
  const auto together = [&]() -> Value* {  // null: the barrier counts nothing
    if (!module_.simple_barriers) return general(0);
    EmitFullBarrier();
    if (module_.turns && !w_.divergent) {
      llvm::Instruction& turn = b_.GetInsertBlock()->back();
      MarkWhole(turn);
      whole_turns_.emplace_back(&turn, instruction->getParent()->getSingleSuccessor());
    }
    return nullptr;
  };
  Value* out = nullptr;
  if (w_.divergent && (op == BarrierOp::kSync || op == BarrierOp::kWarpGroup)) {
    record_groups_.SaveRecordCursor();  // the lanes that go on meanwhile write behind what these have written
    BasicBlock* park = w_.NewBlock("park");
    BasicBlock* last = w_.NewBlock("together");
    Value* elsewhere = b_.CreateOr(frame_.AnyPending(), frame_.AnyIn(frame_.parked));
    if (frame_.meetings) elsewhere = b_.CreateOr(elsewhere, b_.CreateZExt(frame_.WaitingLanes(), b_.getInt64Ty()));
    b_.CreateCondBr(b_.CreateICmpEQ(elsewhere, b_.getInt64(0)), last, park);
    {
      Scope scope(w_);
      b_.SetInsertPoint(park);
      if (!module_.simple_barriers) general(kBarrierArriveOnly);
      copies_.WaitIn(frame_.parked, instruction->getParent()->getSingleSuccessor());
      b_.CreateBr(copies_.dispatch);
    }
    b_.SetInsertPoint(last);
    together();
  } else {
    out = together();
  }
  if (instruction->use_empty()) return;
  const bool vector = values_.ShapeOf(instruction).vector();
  if (!out) return values_.Define(instruction, vector ? w_.Splat(b_.getInt32(0)) : b_.getInt32(0));
  if (vector) return values_.Define(instruction, w_.ReloadLanes(out, WarpType(b_.getInt32Ty())));
  Value* lane = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, w_.mask, b_.getFalse());
  lane = b_.CreateAnd(lane, b_.getInt32(31));
  values_.Define(instruction, b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), out, lane)));
}

/// What divergent copies have left in slots is of no use to a whole warp, but looks as if it were, as they write under
/// masks: it would be kept and taken again at each turn. Behind the turn of a whole warp only those slots are defined
/// whose values the program needs there.
void BarrierEmitter::ForgetSlots() {
  if (whole_turns_.empty()) return;
  for (const auto& [value, slot] : values_.slots()) {
    if (source_.shapes.IsIndex(value)) continue;  // needed wherever what it is the index of is
    const llvm::SmallPtrSet<const BasicBlock*, 16> needed = BlocksThatNeed(*value);
    for (const auto& [turn, to] : whole_turns_) {
      const bool by_phi = llvm::any_of(value->users(), [to = to](const llvm::User* user) {
        return llvm::isa<llvm::PHINode>(user) && llvm::cast<llvm::PHINode>(user)->getParent() == to;
      });
      if (needed.contains(to) || by_phi) continue;
      llvm::IRBuilder<> b(turn->getParent(), std::next(turn->getIterator()));
      b.CreateStore(llvm::UndefValue::get(slot->getAllocatedType()), slot);
    }
  }
}

}  // namespace gridloom::exec
