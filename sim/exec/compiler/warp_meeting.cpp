// .sync instructions that lanes of one member mask reach from different places of the code (meetings.h). Lanes of a
// diverged warp whose members are not all there hand over what they bring and wait. The runtime computes what all of
// them get when the last one has come (helpers_meeting.cpp); each then goes on behind its own instruction, where it
// takes its result.
#include "sim/exec/compiler/warp_meeting.h"

#include <cstddef>

#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_frame.h"
#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// At the function's entry. Nobody waits, and nobody has results to take, at the end of a warp either.
void MeetingEmitter::BeginMeetings() {
  frame_.meetings = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), sizeof(WarpMeetings)), nullptr, "meetings");
  frame_.meetings->setAlignment(llvm::Align(alignof(WarpMeetings)));
  b_.CreateStore(b_.getInt32(0), frame_.MeetingField(offsetof(WarpMeetings, waiting)));
  b_.CreateStore(b_.getInt32(0), frame_.MeetingField(offsetof(WarpMeetings, met)));
  b_.CreateStore(b_.getInt32(static_cast<std::uint32_t>(source_.order.blocks.size())),
                 frame_.MeetingField(offsetof(WarpMeetings, blocks)));
  b_.CreateStore(frame_.pending_masks, frame_.MeetingField(offsetof(WarpMeetings, pending_masks)));
  released_ = w_.NewBlock("released");
  copies_.ended = w_.NewBlock("ended");
}

// ---------------------------------------------------------------------------------------------------------------------
// Arriving
// ---------------------------------------------------------------------------------------------------------------------

/// The end of a block in the divergent copy: leaves the insert point where the active lanes go on to `to` at once,
/// since all members are here or no other lane is left.
void MeetingEmitter::EmitMeet(const llvm::CallInst& meet, const MarkerInfo& info, BasicBlock* to) {
  Value* members = meet.getArgOperand(0);
  Value* absent = b_.CreateNot(w_.mask);
  Value* missing = values_.ShapeOf(members).uniform()
                       ? b_.CreateAnd(values_.Base(members), absent)
                       : b_.CreateAnd(w_.ToBits(b_.CreateICmpNE(b_.CreateAnd(values_.Lanes(members), w_.Splat(absent)),
                                                                w_.Splat(b_.getInt32(0)))),
                                      w_.mask);
  BasicBlock* some_missing = w_.NewBlock("members_missing");
  BasicBlock* wait = w_.NewBlock("wait_for_members");
  BasicBlock* go = w_.NewBlock("members_here");
  b_.CreateCondBr(b_.CreateICmpEQ(missing, b_.getInt32(0)), go, some_missing);
  b_.SetInsertPoint(some_missing);
  Value* others = b_.CreateOr(frame_.AnyPending(), b_.CreateZExt(frame_.WaitingLanes(), b_.getInt64Ty()));
  b_.CreateCondBr(b_.CreateICmpEQ(others, b_.getInt64(0)), go, wait);
  {
    Scope scope(w_);
    b_.SetInsertPoint(wait);
    const unsigned index = source_.order.IndexOf(to);
    llvm::SmallVector<Value*, 5> args{frame_.meetings};
    for (const llvm::Use& input : meet.args()) {
      args.push_back(w_.SpillLanes(static_cast<unsigned>(args.size()), values_.Lanes(input.get())));
    }
    calls_.CallHelper(Helper::kMeet, w_.mask, b_.getInt32(index), info.imm, args);
    copies_.entries[index] = copies_.entries[index] ? copies_.entries[index] : copies_.EntryTo(index);
    b_.CreateBr(released_);
  }
  b_.SetInsertPoint(go);
}

/// What lanes wait for is looked at again: some have ended, or nothing else can run, so that a group goes on without
/// those that are missing. Leaves the insert point where nobody waits.
void MeetingEmitter::MeetAgain(bool none_can_run) {
  BasicBlock* again = w_.NewBlock("meet_again");
  BasicBlock* nobody = w_.NewBlock("nobody_waits");
  b_.CreateCondBr(b_.CreateICmpEQ(frame_.WaitingLanes(), b_.getInt32(0)), nobody, again);
  b_.SetInsertPoint(again);
  calls_.CallHelper(Helper::kMeetAgain, b_.getInt32(0), b_.getInt32(0), none_can_run ? 1 : 0, {frame_.meetings});
  b_.CreateBr(released_);
  b_.SetInsertPoint(nobody);
}

void MeetingEmitter::LanesHaveEnded() {
  if (!frame_.meetings) return;
  b_.SetInsertPoint(copies_.ended);
  MeetAgain(false);
  b_.CreateBr(copies_.dispatch);
}

/// Behind the helpers: those that they released become pending where they go on.
void MeetingEmitter::EmitReleased() {
  if (!frame_.meetings) return;
  BasicBlock* next = w_.NewBlock("next_released");
  llvm::Type* i32 = b_.getInt32Ty();
  b_.SetInsertPoint(released_);
  Value* count = b_.CreateLoad(i32, frame_.MeetingField(offsetof(WarpMeetings, released_count)));
  b_.CreateCondBr(b_.CreateICmpEQ(count, b_.getInt32(0)), copies_.dispatch, next);
  b_.SetInsertPoint(next);
  llvm::PHINode* at = b_.CreatePHI(i32, 2);
  at->addIncoming(b_.getInt32(0), released_);
  Value* entry =
      b_.CreateInBoundsGEP(llvm::ArrayType::get(i32, 2), frame_.MeetingField(offsetof(WarpMeetings, released)), at);
  Value* block = b_.CreateZExt(b_.CreateLoad(i32, entry), b_.getInt64Ty());
  Value* lanes = b_.CreateLoad(i32, b_.CreateConstInBoundsGEP1_64(i32, entry, 1));
  Value* slot =
      b_.CreateInBoundsGEP(frame_.pending_masks->getAllocatedType(), frame_.pending_masks, {b_.getInt64(0), block});
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(i32, slot), lanes), slot);
  frame_.SetPendingBit(block, true);
  Value* plus = b_.CreateAdd(at, b_.getInt32(1));
  at->addIncoming(plus, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(plus, count), next, copies_.dispatch);
}

// ---------------------------------------------------------------------------------------------------------------------
// Going on
// ---------------------------------------------------------------------------------------------------------------------

/// At the head of a block behind a meeting, in the divergent copy: until its first kMet, only those lanes are active
/// that did not wait, and exchange among themselves.
void MeetingEmitter::BeginMet() {
  const auto is_met = [&](const llvm::Instruction& instruction) {
    const MarkerInfo* info = module_.MarkerOf(instruction);
    return info && info->kind == MarkerKind::kMet;
  };
  if (llvm::none_of(*source_.order.blocks[w_.current], is_met)) return;
  Value* met = b_.CreateLoad(b_.getInt32Ty(), frame_.MeetingField(offsetof(WarpMeetings, met)));
  here_ = w_.mask;
  met_ = b_.CreateAnd(met, here_);
  w_.mask = b_.CreateAnd(here_, b_.CreateNot(met));
}

/// What the lanes in met_ have got, and the others `given`.
Value* MeetingEmitter::MetResult(unsigned index, Value* given) {
  Value* buffer = frame_.MeetingField(offsetof(WarpMeetings, results) + index * sizeof(WarpMeetings::results[0]));
  if (!given->getType()->isVectorTy()) {
    Value* lane = b_.CreateAnd(b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, met_, b_.getFalse()), b_.getInt32(31));
    Value* one = b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), buffer, lane));
    return b_.CreateSelect(b_.CreateICmpNE(met_, b_.getInt32(0)), one, given);
  }
  Value* results = b_.CreateAlignedLoad(WarpType(b_.getInt32Ty()), buffer, llvm::Align(64));
  if (given->getType() != results->getType()) results = b_.CreateTrunc(results, given->getType());
  return b_.CreateSelect(w_.ToLaneMask(met_), results, given);
}

void MeetingEmitter::EmitMet(llvm::CallInst& met, const MarkerInfo& info) {
  Value* from = met.getArgOperand(0);
  Value* given =
      values_.ShapeOf(from).uniform() && values_.ShapeOf(&met).uniform() ? values_.Base(from) : values_.Lanes(from);
  if (!met_) return values_.Define(&met, given);
  if (w_.mask != here_) {
    w_.mask = here_;
    w_.mask_lanes = nullptr;
    Value* field = frame_.MeetingField(offsetof(WarpMeetings, met));
    b_.CreateStore(b_.CreateAnd(b_.CreateLoad(b_.getInt32Ty(), field), b_.CreateNot(here_)), field);
  }
  if (!given->getType()->isStructTy()) return values_.Define(&met, MetResult(static_cast<unsigned>(info.imm), given));
  Value* both = llvm::PoisonValue::get(given->getType());
  for (unsigned i = 0; i < 2; ++i) both = b_.CreateInsertValue(both, MetResult(i, b_.CreateExtractValue(given, i)), i);
  values_.Define(&met, both);
}

}  // namespace gridloom::exec
