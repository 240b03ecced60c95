// What a warp keeps in its stack frame while its lanes go different ways: the set of pending blocks with a mask each,
// the set of blocks whose lanes wait at barriers, meetings.

#include "sim/exec/compiler/warp_frame.h"

#include "sim/exec/compiler/pending_set.h"

namespace gridloom::exec {

using llvm::Value;

Value* WarpFrame::PendingWord(unsigned word) {
  return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP2_32(pending->getAllocatedType(), pending, 0, word));
}

void WarpFrame::SetPendingWord(unsigned word, Value* value) {
  b_.CreateStore(value, b_.CreateConstInBoundsGEP2_32(pending->getAllocatedType(), pending, 0, word));
}

/// Nonzero (i64) when a block in [from, to] is pending.
Value* WarpFrame::AnyPendingUpTo(unsigned from, unsigned to) { return AnyBetween(b_, pending, from, to); }

Value* WarpFrame::AnyPending() { return AnyPendingUpTo(0, static_cast<unsigned>(source_.order.blocks.size()) - 1); }

/// Puts block number `index` (i64) into the set, or takes it out.
void WarpFrame::SetPendingBit(Value* index, bool set) {
  Value* bit = b_.CreateShl(b_.getInt64(1), b_.CreateAnd(index, b_.getInt64(63)));
  const auto changed = [&](Value* word, Value* bits) {
    return set ? b_.CreateOr(word, bits) : b_.CreateAnd(word, b_.CreateNot(bits));
  };
  if (words <= kRegisterWords) {
    for (unsigned word = 0; word < words; ++word) {
      Value* here = b_.CreateICmpEQ(b_.CreateLShr(index, 6), b_.getInt64(word));
      SetPendingWord(word, changed(PendingWord(word), b_.CreateSelect(here, bit, b_.getInt64(0))));
    }
    return;
  }
  Value* word = b_.CreateInBoundsGEP(pending->getAllocatedType(), pending, {b_.getInt64(0), b_.CreateLShr(index, 6)});
  b_.CreateStore(changed(b_.CreateLoad(b_.getInt64Ty(), word), bit), word);
}

Value* WarpFrame::MeetingField(std::size_t offset) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), meetings, offset);
}

Value* WarpFrame::WaitingLanes() {
  return b_.CreateLoad(b_.getInt32Ty(), MeetingField(offsetof(WarpMeetings, waiting)));
}

/// Nonzero (i64) when lanes wait in `set`.
Value* WarpFrame::AnyIn(llvm::AllocaInst* set) {
  return AnyBetween(b_, set, 0, static_cast<unsigned>(source_.order.blocks.size()) - 1);
}

/// All that wait in `set` become pending.
void WarpFrame::ReleaseAll(llvm::AllocaInst* set) {
  for (unsigned word = 0; word < words; ++word) {
    Value* slot = b_.CreateConstInBoundsGEP2_32(set->getAllocatedType(), set, 0, word);
    SetPendingWord(word, b_.CreateOr(PendingWord(word), b_.CreateLoad(b_.getInt64Ty(), slot)));
    b_.CreateStore(b_.getInt64(0), slot);
  }
}

void WarpFrame::Allocate() {
  const std::size_t blocks = source_.order.blocks.size();
  words = static_cast<unsigned>(blocks + 63) / 64;
  auto* set = llvm::ArrayType::get(b_.getInt64Ty(), words);
  mask = b_.CreateAlloca(b_.getInt32Ty(), nullptr, "mask");
  pending = b_.CreateAlloca(set, nullptr, "pending");
  parked = b_.CreateAlloca(set, nullptr, "parked");
  pending_masks = b_.CreateAlloca(llvm::ArrayType::get(b_.getInt32Ty(), blocks), nullptr, "pending_masks");
}

}  // namespace gridloom::exec
