// Where no warp of a CTA waits for another, one call of the kernel runs all of them (CtaEntry).
#include "sim/exec/compiler/warp_cta_loop.h"

#include <llvm/IR/InlineAsm.h>

#include <cstddef>

#include "sim/exec/compiler/turns.h"
#include "sim/exec/compiler/warp_copies.h"
#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_record_loop.h"
#include "sim/exec/compiler/warp_rows.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// The head of the loop over a CTA's warps (CtaEntry). The warps of a CTA have launch and CTA in common: what is loaded
/// from there does not depend on the loop, and the optimiser moves it out.
void CtaLoopEmitter::EmitLoopHead() {
  for (const std::size_t offset : {offsetof(WarpCtx, cta), offsetof(WarpCtx, launch)}) {
    auto* common =
        b_.CreateLoad(b_.getPtrTy(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), w_.target->getArg(0), offset));
    common->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
    w_.entry_values[WarpBuilder::FieldKey('w', offset)] = common;
  }
  cta_start_ = w_.entry;
  cta_trail_ = w_.target->getArg(3);
  if (module_.by_row) BeginCta();
  w_.head = w_.NewBlock("warp");
  b_.CreateBr(w_.head);
  b_.SetInsertPoint(w_.head);
  if (module_.turns) {
    w_.warp = EmitTurnMark(b_, TurnMark::kBegin);
    if (!module_.warp_of.empty()) b_.CreateStore(b_.getInt32(0), w_.ExitedMask());
    return;
  }
  auto* warp = b_.CreatePHI(b_.getPtrTy(), 2);
  warp->addIncoming(w_.target->getArg(0), cta_start_);
  w_.warp = warp;
  trail_ = b_.CreatePHI(b_.getInt64Ty(), 2);
  trail_->addIncoming(cta_trail_, cta_start_);
  if (!module_.warp_of.empty()) b_.CreateStore(b_.getInt32(0), w_.ExitedMask());
}

/// The head of the loop over the CTAs of a row. Their number is all that differs, so it is not loaded: what is loaded
/// from the CTA does not change.
void CtaLoopEmitter::BeginCta() {
  Value* cta = w_.WarpField(offsetof(WarpCtx, cta), b_.getPtrTy());
  Value* first =
      b_.CreateLoad(b_.getInt32Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cta, offsetof(CtaCtx, ctaid)));
  cta_start_ = w_.NewBlock("cta");
  b_.CreateBr(cta_start_);
  b_.SetInsertPoint(cta_start_);
  cta_x_ = b_.CreatePHI(b_.getInt32Ty(), 2);
  cta_x_->addIncoming(first, w_.entry);
  w_.entry_values[WarpBuilder::FieldKey('c', offsetof(CtaCtx, ctaid))] = cta_x_;
  if (module_.turns) return;
  auto* trail = b_.CreatePHI(b_.getInt64Ty(), 2);
  trail->addIncoming(cta_trail_, w_.entry);
  cta_trail_ = trail;
}

/// Behind a CTA's end: the next one of the row, if it is to run in this call.
void CtaLoopEmitter::EndCta() {
  if (!cta_x_) return static_cast<void>(b_.CreateRetVoid());
  Value* cta = w_.WarpField(offsetof(WarpCtx, cta), b_.getPtrTy());
  const auto field = [&](std::size_t offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cta, offset); };
  Value* left_field = field(offsetof(CtaCtx, row_left));
  Value* left = b_.CreateLoad(b_.getInt32Ty(), left_field);
  BasicBlock *next = w_.NewBlock("next_cta"), *over = w_.NewBlock("row_over");
  b_.CreateCondBr(b_.CreateICmpEQ(left, b_.getInt32(0)), over, next);
  b_.SetInsertPoint(over);
  b_.CreateRetVoid();
  b_.SetInsertPoint(next);
  b_.CreateStore(b_.CreateSub(left, b_.getInt32(1)), left_field);
  Value* x = b_.CreateAdd(cta_x_, b_.getInt32(1));
  b_.CreateStore(x, field(offsetof(CtaCtx, ctaid)));
  cta_x_->addIncoming(x, next);
  if (auto* trail = llvm::dyn_cast<llvm::PHINode>(cta_trail_))
    trail->addIncoming(b_.CreateAdd(trail, b_.getInt64(kMostWarps)), next);
  b_.CreateBr(cta_start_);
}

/// What the slots held is of the last warp, and must not be carried around the loop. Undefined, not poison: where lanes
/// are off, bits of it may stand beside those of lanes that are on.
void CtaLoopEmitter::ForgetLastWarp(BasicBlock* at) {
  b_.SetInsertPoint(at, at->getFirstNonPHIIt());
  for (const auto& [instruction, slot] : values_.slots())
    b_.CreateStore(llvm::UndefValue::get(slot->getAllocatedType()), slot);
  for (const auto& [number, loop] : loop_records_.loops()) {
    if (loop.rounds) b_.CreateStore(llvm::UndefValue::get(b_.getInt64Ty()), loop.rounds);
  }
  for (const auto& [load, note] : rows_.notes()) b_.CreateStore(llvm::UndefValue::get(b_.getInt1Ty()), note.in_rows);
}

/// Behind a warp's end: the next one.
void CtaLoopEmitter::EmitLoopEnd() {
  if (module_.turns) {
    b_.SetInsertPoint(copies_.done);
    EmitTurnMark(b_, TurnMark::kEnd);
    EndCta();
    if (cta_x_) ForgetLastWarp(cta_start_);
    return;
  }
  BasicBlock* last = w_.NewBlock("last");
  b_.SetInsertPoint(copies_.done);
  // An assembly of nothing keeps the trail alive up to here. It touches no memory that anything else does, or loads
  // could not be moved out of the loop.
  auto* keep =
      llvm::InlineAsm::get(llvm::FunctionType::get(b_.getInt64Ty(), {b_.getInt64Ty()}, false), "", "=r,0", true);
  auto* kept = b_.CreateCall(keep, {trail_});
  kept->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  kept->addFnAttr(llvm::Attribute::NoUnwind);
  kept->addFnAttr(llvm::Attribute::WillReturn);
  Value* trail = b_.CreateAdd(kept, b_.getInt64(1));
  Value* next = b_.CreateInBoundsGEP(b_.getInt8Ty(), w_.warp, w_.target->getArg(2));
  Value* ends = b_.CreateICmpEQ(next, w_.target->getArg(1));
  if (record_buffer_.slot) record_buffer_.EndWarpRecords();
  llvm::cast<llvm::PHINode>(w_.warp)->addIncoming(next, b_.GetInsertBlock());
  trail_->addIncoming(trail, b_.GetInsertBlock());
  b_.CreateCondBr(ends, last, w_.head);
  b_.SetInsertPoint(last);
  // The first warp of the next CTA goes on there.
  if (record_buffer_.slot)
    b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), record_buffer_.slot),
                   record_buffer_.RecordCursorOf(w_.target->getArg(0)));
  EndCta();
  ForgetLastWarp(w_.head);
}

}  // namespace gridloom::exec
