// Code that writes records (sim/exec/records.h) into the warp's buffer. Shapes decide what a record holds: of an address that is
// a scalar and a pattern, only the scalar costs anything.
#include <algorithm>
#include <cstddef>

#include "sim/exec/compiler/warp_function.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// @name(ptr warp, i32 mask, i32 line, i64 imm, …), which calls a helper without operands.
llvm::Function* WarpFunction::RecordHelper(const char* name, Helper helper) {
  if (llvm::Function* existing = target_->getParent()->getFunction(name)) return existing;
  llvm::Function* function = OutOfLine(name, b_.getVoidTy(), {}, b_.getInt64Ty());
  llvm::IRBuilder<> b(BasicBlock::Create(context_, "entry", function));
  CallHelperFrom(b, function, helper, {});
  b.CreateRetVoid();
  return function;
}

/// Words that the record of `call` takes at most.
std::uint32_t WarpFunction::RecordWords(const llvm::CallInst& call, const MarkerInfo& info) {
  if (RecordHeader::Unpack(info.imm).kind == RecordKind::kBlock) return 1;
  const ShapeKind kind = ShapeOf(call.getArgOperand(0)).kind;
  return kind == ShapeKind::kUniform || kind == ShapeKind::kAffine ? 3 : kMaxRecordWords;
}

/// Where the record of `call` goes; there is room for the longest one. The cursor stays in a register from the first record of a
/// block on, and one look at the limit makes room for several: as many as come before the end of the block or a call of a function,
/// which may write records, too.
Value* WarpFunction::RecordCursor(const llvm::CallInst& call, const MarkerInfo& info) {
  const std::uint32_t needed = RecordWords(call, info);
  if (record_cursor_ && record_room_ >= needed) {
    record_room_ -= needed;
    return record_cursor_;
  }
  SaveRecordCursor();
  std::uint32_t words = 0;
  for (const llvm::Instruction* next = &call; next; next = next->getNextNode()) {
    const MarkerInfo* const marker = module_.MarkerOf(*next);
    if (!marker || marker->kind != MarkerKind::kRecord) {
      const auto* other = llvm::dyn_cast<llvm::CallInst>(next);
      if (other && MayRecord(*other)) break;
      continue;
    }
    const std::uint32_t more = RecordWords(llvm::cast<llvm::CallInst>(*next), *marker);
    if (words + more > kMaxGroupWords) break;
    words += more;
  }
  record_room_ = words - needed;
  Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, record_cursor));
  Value* limit = WarpField(offsetof(WarpCtx, record_limit), b_.getPtrTy());
  Value* cursor = b_.CreateLoad(b_.getPtrTy(), slot);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* flush = NewBlock("flush");
  BasicBlock* room = NewBlock("room");
  b_.CreateCondBr(b_.CreateICmpUGT(cursor, limit), flush, room, Unlikely());
  b_.SetInsertPoint(flush);
  b_.CreateCall(RecordHelper("gl.flush_records", Helper::kFlushRecords), {warp_, mask_, b_.getInt32(0), b_.getInt64(0), b_.getInt64(0)});
  Value* emptied = b_.CreateLoad(b_.getPtrTy(), slot);
  b_.CreateBr(room);
  b_.SetInsertPoint(room);
  auto* phi = b_.CreatePHI(b_.getPtrTy(), 2);
  phi->addIncoming(cursor, before);
  phi->addIncoming(emptied, flush);
  return phi;
}

/// Whether a call writes records itself.
bool WarpFunction::MayRecord(const llvm::CallInst& call) const {
  const MarkerInfo* const marker = module_.MarkerOf(call);
  if (marker) return marker->kind == MarkerKind::kIndirectCall;
  return !call.getCalledFunction() || !call.getCalledFunction()->isIntrinsic();
}

/// Before the block ends and before calls of functions: what follows finds the cursor in memory.
void WarpFunction::SaveRecordCursor() {
  if (!record_cursor_) return;
  b_.CreateStore(record_cursor_, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, record_cursor)));
  record_cursor_ = nullptr;
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
  if (!even || step != static_cast<std::int16_t>(step)) {
    header.kind = RecordKind::kPattern;
    return PutWords(cursor, header, {linear.base, b_.CreatePtrToInt(PatternTable(linear.pattern), b_.getInt64Ty())});
  }
  header.kind = step == 0 ? RecordKind::kUniform : RecordKind::kAffine;
  Value* first = b_.CreateAdd(linear.base, b_.getInt64(static_cast<std::uint64_t>(linear.pattern[0])));
  if (step == 0) return PutWords(cursor, header, {first});
  Value* base = b_.CreateAnd(first, b_.getInt64(RecordHeader::kBaseMask));
  return PutWords(cursor, header, {b_.CreateOr(base, b_.getInt64(static_cast<std::uint64_t>(step) << RecordHeader::kBaseBits))});
}

void WarpFunction::EmitRecord(llvm::CallInst& call, const MarkerInfo& info) {
  const RecordHeader header = RecordHeader::Unpack(info.imm);
  if (header.kind == RecordKind::kBlock) {
    record_cursor_ = PutWords(RecordCursor(call, info), header, {});
    return;
  }
  Value* address = call.getArgOperand(0);
  const std::optional<Linear> linear = AsLinear(address);
  if (!linear) {
    record_cursor_ = PutIrregular(RecordCursor(call, info), header, address);
    return;
  }
  Value* cursor = RecordCursor(call, info);
  if (!linear->valid) {
    record_cursor_ = PutLinear(cursor, header, *linear);
    return;
  }
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
    long_end = PutWords(cursor, header, {ActiveLanes(address)});
  }
  BasicBlock* irregular_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), 2);
  end->addIncoming(short_end, regular_end);
  end->addIncoming(long_end, irregular_end);
  record_cursor_ = end;
}

/// A record of lanes that lie as those of the instruction did the last time, or of all addresses (RecordSite).
Value* WarpFunction::PutIrregular(Value* cursor, RecordHeader header, Value* address) {
  const std::uint32_t number = header.instruction % kRecordSites;
  Value* sites = WarpField(offsetof(WarpCtx, record_sites), b_.getPtrTy());
  Value* site = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), sites, std::uint64_t{number} * sizeof(RecordSite));
  Value* pattern = b_.CreateLoad(b_.getPtrTy(), site);
  Value* lanes = Lanes(address);
  Value* known = b_.CreateAlignedLoad(lanes->getType(), pattern, llvm::Align(8));
  Value* first = b_.CreateExtractElement(lanes, std::uint64_t{0});
  Value* differs = b_.CreateICmpNE(b_.CreateSub(lanes, Splat(first)), known);
  if (divergent_) differs = b_.CreateAnd(differs, MaskLanes());
  BasicBlock* regular = NewBlock("record_known");
  BasicBlock* irregular = NewBlock("record_lanes");
  BasicBlock* learn = NewBlock("record_learn");
  BasicBlock* joined = NewBlock("recorded");
  b_.CreateCondBr(b_.CreateICmpEQ(ToBits(differs), b_.getInt32(0)), regular, irregular);
  b_.SetInsertPoint(regular);
  RecordHeader known_header = header;
  known_header.kind = RecordKind::kPattern;
  Value* short_end = PutWords(cursor, known_header, {first, b_.CreatePtrToInt(pattern, b_.getInt64Ty())});
  BasicBlock* regular_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(irregular);
  const Scope scope(*this);
  Value* long_end = PutWords(cursor, header, {ActiveLanes(address)});
  Value* tries = b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), site, offsetof(RecordSite, tries)));
  BasicBlock* irregular_end = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpEQ(tries, b_.getInt64(0)), joined, learn);
  b_.SetInsertPoint(learn);
  Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, offsetof(WarpCtx, record_cursor));
  b_.CreateStore(long_end, slot);
  b_.CreateCall(RecordHelper("gl.learn_record", Helper::kLearnRecord), {warp_, mask_, b_.getInt32(0), b_.getInt64(number), b_.getInt64(0)});
  Value* learned_end = b_.CreateLoad(b_.getPtrTy(), slot);
  BasicBlock* learn_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), 3);
  end->addIncoming(short_end, regular_end);
  end->addIncoming(long_end, irregular_end);
  end->addIncoming(learned_end, learn_end);
  return end;
}

/// The lanes' addresses, 0 for lanes that are off: what they hold must not make equal records differ.
Value* WarpFunction::ActiveLanes(Value* address) {
  Value* lanes = Lanes(address);
  return divergent_ ? SelectLanes(MaskLanes(), lanes, llvm::Constant::getNullValue(lanes->getType())) : lanes;
}

}  // namespace gridloom::exec
