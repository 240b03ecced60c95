// Code that writes records (sim/exec/records.h) into the warp's buffer. Shapes decide what a record holds: of an address that is
// a scalar and a pattern, only the scalar costs anything.
#include <algorithm>
#include <cstddef>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// @gl.flush_records(ptr warp, …): the buffer is empty afterwards.
llvm::Function* WarpFunction::FlushFunction() {
  const char* const name = "gl.flush_records";
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Function* function = OutOfLine(name, b_.getVoidTy(), {}, b_.getInt64Ty());
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  CallHelperFrom(b, function, Helper::kFlushRecords, {});
  b.CreateRetVoid();
  return function;
}

/// Where the next record goes; there is room for the longest one.
Value* WarpFunction::RecordCursor() {
  Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, record_cursor));
  Value* limit = WarpField(offsetof(WarpCtx, record_limit), b_.getPtrTy());
  Value* cursor = b_.CreateLoad(b_.getPtrTy(), slot);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* flush = NewBlock("flush");
  BasicBlock* room = NewBlock("room");
  b_.CreateCondBr(b_.CreateICmpUGT(cursor, limit), flush, room, Unlikely());
  b_.SetInsertPoint(flush);
  b_.CreateCall(FlushFunction(), {warp_, mask_, b_.getInt32(0), b_.getInt64(0), b_.getInt64(0)});
  Value* emptied = b_.CreateLoad(b_.getPtrTy(), slot);
  b_.CreateBr(room);
  b_.SetInsertPoint(room);
  auto* phi = b_.CreatePHI(b_.getPtrTy(), 2);
  phi->addIncoming(cursor, before);
  phi->addIncoming(emptied, flush);
  return phi;
}

/// Writes a record and returns the address behind it.
Value* WarpFunction::PutWords(Value* cursor, const RecordHeader& header, llvm::ArrayRef<Value*> words) {
  Value* mask = b_.CreateZExt(mask_, b_.getInt64Ty());
  b_.CreateAlignedStore(b_.CreateOr(mask, b_.getInt64(header.Pack())), cursor, llvm::Align(8));
  std::uint64_t bytes = 8;
  for (Value* word : words) {
    b_.CreateAlignedStore(word, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cursor, bytes), llvm::Align(8));
    bytes += target_->getParent()->getDataLayout().getTypeStoreSize(word->getType());
  }
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cursor, bytes);
}

/// A constant of 32 words; one per pattern in the module.
llvm::Constant* WarpFunction::PatternTable(const LanePattern& pattern) {
  llvm::SmallVector<std::uint64_t, kWarpSize> words;
  for (const std::int64_t offset : pattern) words.push_back(static_cast<std::uint64_t>(offset));
  llvm::Constant* data = llvm::ConstantDataArray::get(context_, words);
  llvm::Module& module = *target_->getParent();
  for (llvm::GlobalVariable& global : module.globals()) {
    if (global.hasInitializer() && global.getInitializer() == data) return &global;
  }
  return new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "gl.pattern");
}

Value* WarpFunction::PutLinear(Value* cursor, RecordHeader header, const Linear& linear) {
  const std::int64_t step = linear.pattern[1] - linear.pattern[0];
  bool even = true;
  for (unsigned lane = 1; lane < kWarpSize; ++lane) even &= linear.pattern[lane] - linear.pattern[lane - 1] == step;
  if (!even) {
    header.kind = RecordKind::kPattern;
    return PutWords(cursor, header, {linear.base, b_.CreatePtrToInt(PatternTable(linear.pattern), b_.getInt64Ty())});
  }
  header.kind = step == 0 ? RecordKind::kUniform : RecordKind::kAffine;
  Value* first = b_.CreateAdd(linear.base, b_.getInt64(static_cast<std::uint64_t>(linear.pattern[0])));
  if (step == 0) return PutWords(cursor, header, {first});
  return PutWords(cursor, header, {first, b_.getInt64(static_cast<std::uint64_t>(step))});
}

void WarpFunction::EmitRecord(llvm::CallInst& call, const MarkerInfo& info) {
  const RecordHeader header = RecordHeader::Unpack(info.imm);
  const auto advance = [&](Value* end) {
    b_.CreateStore(end, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, record_cursor)));
  };
  if (header.kind == RecordKind::kBlock) return advance(PutWords(RecordCursor(), header, {}));
  Value* address = call.getArgOperand(0);
  const std::optional<Linear> linear = AsLinear(address);
  if (!linear) {
    Value* lanes = Lanes(address);
    return advance(PutWords(RecordCursor(), header, {lanes}));
  }
  Value* cursor = RecordCursor();
  if (!linear->valid) return advance(PutLinear(cursor, header, *linear));
  // Only lanes whose 32-bit index wraps are no pattern.
  BasicBlock* regular = NewBlock("record");
  BasicBlock* irregular = NewBlock("record_lanes");
  BasicBlock* joined = NewBlock("recorded");
  b_.CreateCondBr(linear->valid, regular, irregular, Likely());
  b_.SetInsertPoint(regular);
  Value* short_end = PutLinear(cursor, header, *linear);
  BasicBlock* regular_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(irregular);
  Value* long_end = nullptr;
  {
    const Scope scope(*this);
    long_end = PutWords(cursor, header, {Lanes(address)});
  }
  BasicBlock* irregular_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), 2);
  end->addIncoming(short_end, regular_end);
  end->addIncoming(long_end, irregular_end);
  advance(end);
}

}  // namespace gridloom::exec
