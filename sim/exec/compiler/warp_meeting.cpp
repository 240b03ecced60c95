// .sync instructions that lanes of one member mask reach from different places of the code (meetings.h). Lanes of a
// diverged warp whose members are not all there hand over what they bring and wait. The runtime computes what all of
// them get when the last one has come (helpers_meeting.cpp); each then goes on behind its own instruction, where it
// takes its result.
#include <cstddef>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

Value* WarpFunction::MeetingField(std::size_t offset) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), meetings_, offset);
}

Value* WarpFunction::WaitingLanes() {
  return b_.CreateLoad(b_.getInt32Ty(), MeetingField(offsetof(WarpMeetings, waiting)));
}

/// At the function's entry. Nobody waits, and nobody has results to take, at the end of a warp either.
void WarpFunction::BeginMeetings() {
  meetings_ = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt8Ty(), sizeof(WarpMeetings)), nullptr, "meetings");
  meetings_->setAlignment(llvm::Align(alignof(WarpMeetings)));
  b_.CreateStore(b_.getInt32(0), MeetingField(offsetof(WarpMeetings, waiting)));
  b_.CreateStore(b_.getInt32(0), MeetingField(offsetof(WarpMeetings, met)));
  b_.CreateStore(b_.getInt32(static_cast<std::uint32_t>(order_.blocks.size())),
                 MeetingField(offsetof(WarpMeetings, blocks)));
  b_.CreateStore(pending_masks_, MeetingField(offsetof(WarpMeetings, pending_masks)));
  released_ = NewBlock("released");
  ended_ = NewBlock("ended");
}

// ---------------------------------------------------------------------------------------------------------------------
// Arriving
// ---------------------------------------------------------------------------------------------------------------------

/// The end of a block in the divergent copy: leaves the insert point where the active lanes go on to `to` at once,
/// since all members are here or no other lane is left.
void WarpFunction::EmitMeet(const llvm::CallInst& meet, const MarkerInfo& info, BasicBlock* to) {
  Value* members = meet.getArgOperand(0);
  Value* absent = b_.CreateNot(mask_);
  Value* missing =
      ShapeOf(members).uniform()
          ? b_.CreateAnd(Base(members), absent)
          : b_.CreateAnd(ToBits(b_.CreateICmpNE(b_.CreateAnd(Lanes(members), Splat(absent)), Splat(b_.getInt32(0)))),
                         mask_);
  BasicBlock* some_missing = NewBlock("members_missing");
  BasicBlock* wait = NewBlock("wait_for_members");
  BasicBlock* go = NewBlock("members_here");
  b_.CreateCondBr(b_.CreateICmpEQ(missing, b_.getInt32(0)), go, some_missing);
  b_.SetInsertPoint(some_missing);
  Value* others = b_.CreateOr(AnyPending(), b_.CreateZExt(WaitingLanes(), b_.getInt64Ty()));
  b_.CreateCondBr(b_.CreateICmpEQ(others, b_.getInt64(0)), go, wait);
  {
    Scope scope(*this);
    b_.SetInsertPoint(wait);
    const unsigned index = order_.IndexOf(to);
    llvm::SmallVector<Value*, 5> args{meetings_};
    for (const llvm::Use& input : meet.args()) {
      args.push_back(SpillLanes(static_cast<unsigned>(args.size()), Lanes(input.get())));
    }
    CallHelper(Helper::kMeet, mask_, b_.getInt32(index), info.imm, args);
    entries_[index] = entries_[index] ? entries_[index] : EntryTo(index);
    b_.CreateBr(released_);
  }
  b_.SetInsertPoint(go);
}

/// What lanes wait for is looked at again: some have ended, or nothing else can run, so that a group goes on without
/// those that are missing. Leaves the insert point where nobody waits.
void WarpFunction::MeetAgain(bool none_can_run) {
  BasicBlock* again = NewBlock("meet_again");
  BasicBlock* nobody = NewBlock("nobody_waits");
  b_.CreateCondBr(b_.CreateICmpEQ(WaitingLanes(), b_.getInt32(0)), nobody, again);
  b_.SetInsertPoint(again);
  CallHelper(Helper::kMeetAgain, b_.getInt32(0), b_.getInt32(0), none_can_run ? 1 : 0, {meetings_});
  b_.CreateBr(released_);
  b_.SetInsertPoint(nobody);
}

void WarpFunction::LanesHaveEnded() {
  if (!meetings_) return;
  b_.SetInsertPoint(ended_);
  MeetAgain(false);
  b_.CreateBr(dispatch_);
}

/// Behind the helpers: those that they released become pending where they go on.
void WarpFunction::EmitReleased() {
  if (!meetings_) return;
  BasicBlock* next = NewBlock("next_released");
  llvm::Type* i32 = b_.getInt32Ty();
  b_.SetInsertPoint(released_);
  Value* count = b_.CreateLoad(i32, MeetingField(offsetof(WarpMeetings, released_count)));
  b_.CreateCondBr(b_.CreateICmpEQ(count, b_.getInt32(0)), dispatch_, next);
  b_.SetInsertPoint(next);
  llvm::PHINode* at = b_.CreatePHI(i32, 2);
  at->addIncoming(b_.getInt32(0), released_);
  Value* entry = b_.CreateInBoundsGEP(llvm::ArrayType::get(i32, 2), MeetingField(offsetof(WarpMeetings, released)), at);
  Value* block = b_.CreateZExt(b_.CreateLoad(i32, entry), b_.getInt64Ty());
  Value* lanes = b_.CreateLoad(i32, b_.CreateConstInBoundsGEP1_64(i32, entry, 1));
  Value* slot = b_.CreateInBoundsGEP(pending_masks_->getAllocatedType(), pending_masks_, {b_.getInt64(0), block});
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(i32, slot), lanes), slot);
  SetPendingBit(block, true);
  Value* plus = b_.CreateAdd(at, b_.getInt32(1));
  at->addIncoming(plus, b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateICmpULT(plus, count), next, dispatch_);
}

// ---------------------------------------------------------------------------------------------------------------------
// Going on
// ---------------------------------------------------------------------------------------------------------------------

/// At the head of a block behind a meeting, in the divergent copy: until its first kMet, only those lanes are active
/// that did not wait, and exchange among themselves.
void WarpFunction::BeginMet() {
  const auto is_met = [&](const llvm::Instruction& instruction) {
    const MarkerInfo* info = module_.MarkerOf(instruction);
    return info && info->kind == MarkerKind::kMet;
  };
  if (llvm::none_of(*order_.blocks[current_], is_met)) return;
  Value* met = b_.CreateLoad(b_.getInt32Ty(), MeetingField(offsetof(WarpMeetings, met)));
  here_ = mask_;
  met_ = b_.CreateAnd(met, here_);
  mask_ = b_.CreateAnd(here_, b_.CreateNot(met));
}

/// What the lanes in met_ have got, and the others `given`.
Value* WarpFunction::MetResult(unsigned index, Value* given) {
  Value* buffer = MeetingField(offsetof(WarpMeetings, results) + index * sizeof(WarpMeetings::results[0]));
  if (!given->getType()->isVectorTy()) {
    Value* lane = b_.CreateAnd(b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, met_, b_.getFalse()), b_.getInt32(31));
    Value* one = b_.CreateLoad(b_.getInt32Ty(), b_.CreateGEP(b_.getInt32Ty(), buffer, lane));
    return b_.CreateSelect(b_.CreateICmpNE(met_, b_.getInt32(0)), one, given);
  }
  Value* results = b_.CreateAlignedLoad(WarpType(b_.getInt32Ty()), buffer, llvm::Align(64));
  if (given->getType() != results->getType()) results = b_.CreateTrunc(results, given->getType());
  return b_.CreateSelect(ToLaneMask(met_), results, given);
}

void WarpFunction::EmitMet(llvm::CallInst& met, const MarkerInfo& info) {
  Value* from = met.getArgOperand(0);
  Value* given = ShapeOf(from).uniform() && ShapeOf(&met).uniform() ? Base(from) : Lanes(from);
  if (!met_) return Define(&met, given);
  if (mask_ != here_) {
    mask_ = here_;
    mask_lanes_ = nullptr;
    Value* field = MeetingField(offsetof(WarpMeetings, met));
    b_.CreateStore(b_.CreateAnd(b_.CreateLoad(b_.getInt32Ty(), field), b_.CreateNot(here_)), field);
  }
  if (!given->getType()->isStructTy()) return Define(&met, MetResult(static_cast<unsigned>(info.imm), given));
  Value* both = llvm::PoisonValue::get(given->getType());
  for (unsigned i = 0; i < 2; ++i) both = b_.CreateInsertValue(both, MetResult(i, b_.CreateExtractValue(given, i)), i);
  Define(&met, both);
}

}  // namespace gridloom::exec
