// The buffer that a warp writes its records into (sim/exec/contract/records.h): where the next one goes, and room for
// it.
#include "sim/exec/compiler/warp_record_buffer.h"

#include <cstddef>

#include "sim/exec/compiler/warp_helpers.h"
#include "sim/exec/contract/recorded_event.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// @name(ptr warp, i32 mask, i32 line, i64 imm, …), which calls a helper without operands.
llvm::Function* RecordBuffer::RecordHelper(const char* name, Helper helper) {
  if (llvm::Function* existing = w_.target->getParent()->getFunction(name)) return existing;
  llvm::Function* function = calls_.OutOfLine(name, b_.getVoidTy(), {}, b_.getInt64Ty());
  llvm::IRBuilder<> b(BasicBlock::Create(b_.getContext(), "entry", function));
  CallHelperFrom(b, function, helper, {});
  b.CreateRetVoid();
  return function;
}

/// Takes room for so many words, where no record is open.
void RecordBuffer::TakeRecordRoom(std::uint32_t words) {
  room = words;
  cursor = FlushRecordsBeyondLimit(b_.CreateLoad(b_.getPtrTy(), slot));
}

Value* RecordBuffer::RecordCursorOf(Value* warp) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp, offsetof(WarpCtx, record_cursor));
}

/// Where a warp, or a function called by it, begins: from here on the cursor is in a register. Through memory, every
/// block would wait for the one before.
void RecordBuffer::TakeRecordCursor() {
  if (module_.options.record == Recording::kNone) return;
  if (!slot) slot = llvm::IRBuilder<>(w_.entry, w_.entry->begin()).CreateAlloca(b_.getPtrTy(), nullptr, "records");
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), RecordCursorOf(w_.warp)), slot);
}

/// Before others look at the warp's cursor.
void RecordBuffer::ReturnRecordCursor() {
  if (slot) b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), slot), RecordCursorOf(w_.warp));
}

/// The one to go on with.
Value* RecordBuffer::FlushRecordsBeyondLimit(Value* cursor) {
  Value* limit = w_.WarpField(offsetof(WarpCtx, record_limit), b_.getPtrTy());
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* flush = w_.NewBlock("flush");
  BasicBlock* room = w_.NewBlock("room");
  b_.CreateCondBr(b_.CreateICmpUGT(cursor, limit), flush, room, w_.Unlikely());
  b_.SetInsertPoint(flush);
  b_.CreateStore(cursor, RecordCursorOf(w_.warp));
  b_.CreateCall(RecordHelper("gl.flush_records", Helper::kFlushRecords),
                {w_.warp, b_.getInt32(-1), b_.getInt32(0), b_.getInt64(0), b_.getInt64(0)});
  Value* emptied = b_.CreateLoad(b_.getPtrTy(), RecordCursorOf(w_.warp));
  b_.CreateBr(room);
  b_.SetInsertPoint(room);
  auto* phi = b_.CreatePHI(b_.getPtrTy(), 2);
  phi->addIncoming(cursor, before);
  phi->addIncoming(emptied, flush);
  return phi;
}

/// Behind a warp's end, in the loop over a CTA's warps: the next one goes on where it ended.
void RecordBuffer::EndWarpRecords() {
  Value* cursor = b_.CreateLoad(b_.getPtrTy(), slot);
  Value* end = PutWords(cursor, {b_.getInt64(RecordHeader{.kind = RecordKind::kWarpEnd}.Pack())});
  b_.CreateStore(FlushRecordsBeyondLimit(end), slot);
}

/// Whether a call writes records itself.
bool MayRecord(const WarpModule& module, const llvm::CallInst& call) {
  const MarkerInfo* const marker = module.MarkerOf(call);
  if (marker)
    return marker->kind == MarkerKind::kIndirectCall ||
           (marker->kind == MarkerKind::kHelper && MayRecordEvents(marker->helper, marker->imm));
  return !call.getCalledFunction() || !call.getCalledFunction()->isIntrinsic();
}

/// Writes words and returns the address behind them.
Value* RecordBuffer::PutWords(Value* cursor, llvm::ArrayRef<Value*> words) {
  std::uint64_t bytes = 0;
  for (Value* word : words) {
    b_.CreateAlignedStore(word, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cursor, bytes), llvm::Align(8));
    bytes += w_.target->getParent()->getDataLayout().getTypeStoreSize(word->getType());
  }
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cursor, bytes);
}

}  // namespace gridloom::exec
