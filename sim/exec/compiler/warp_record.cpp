// Code that writes records (sim/exec/contract/records.h) into the warp's buffer. Shapes decide what a record holds: of
// an address that is a scalar and a pattern, only the scalar costs anything, and of several at constant distances only
// one.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "sim/exec/compiler/warp_function.h"
#include "sim/exec/contract/recorded_event.h"

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

/// Words that `call` adds at most: the head of a group, and the access's slot.
std::uint32_t WarpFunction::RecordWords(const llvm::CallInst& call, const MarkerInfo& info) {
  constexpr std::uint32_t kHead = 2;
  if (RecordHeader::Unpack(info.imm).kind == RecordKind::kBlock) return kHead;
  std::uint64_t add = 0;
  if (PlaceInLoop(call, add)) return kHead + 1;
  return kHead + std::max(SlotWords(call.getArgOperand(0)), SlotWords(RecordRoot(call).first));
}

/// Words that a slot for lanes at `root` takes at most.
std::uint32_t WarpFunction::SlotWords(Value* root) {
  const ShapeKind kind = ShapeOf(root).kind;
  return kind == ShapeKind::kUniform || kind == ShapeKind::kAffine ? 1 : RecordSlot::kMaxWords;
}

/// The next marker of a record behind `call` in its block that belongs to the same group: null where functions come
/// between.
const llvm::CallInst* WarpFunction::NextRecord(const llvm::CallInst& call) const {
  for (const llvm::Instruction* next = call.getNextNode(); next; next = next->getNextNode()) {
    const auto* other = llvm::dyn_cast<llvm::CallInst>(next);
    if (!other) continue;
    const MarkerInfo* const marker = module_.MarkerOf(*other);
    if (marker && marker->kind == MarkerKind::kRecord) return other;
    if (MayRecord(*other)) return nullptr;
  }
  return nullptr;
}

/// Makes sure that what `call` records has room behind record_cursor_. The cursor stays in a register from the first
/// record of a block on, and one look at the limit makes room for several: as many as come before the end of the block
/// or a call of a function, which may write records, too.
void WarpFunction::MakeRecordRoom(const llvm::CallInst& call, const MarkerInfo& info) {
  const std::uint32_t needed = RecordWords(call, info);
  if (record_cursor_ && record_room_ >= needed) {
    record_room_ -= needed;
    return;
  }
  SaveRecordCursor();
  std::uint32_t words = 0;
  for (const llvm::CallInst* next = &call; next; next = NextRecord(*next)) {
    const std::uint32_t more = RecordWords(*next, *module_.MarkerOf(*next));
    if (words + more > kMaxGroupWords) break;
    words += more;
  }
  TakeRecordRoom(words);
  record_room_ -= needed;
}

/// Takes room for so many words, where no record is open.
void WarpFunction::TakeRecordRoom(std::uint32_t words) {
  record_room_ = words;
  record_cursor_ = FlushRecordsBeyondLimit(b_.CreateLoad(b_.getPtrTy(), record_cursor_slot_));
}

Value* WarpFunction::RecordCursorOf(Value* warp) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp, offsetof(WarpCtx, record_cursor));
}

/// Where a warp, or a function called by it, begins: from here on the cursor is in a register. Through memory, every
/// block would wait for the one before.
void WarpFunction::TakeRecordCursor() {
  if (module_.options.record == Recording::kNone) return;
  if (!record_cursor_slot_)
    record_cursor_slot_ = llvm::IRBuilder<>(entry_, entry_->begin()).CreateAlloca(b_.getPtrTy(), nullptr, "records");
  b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), RecordCursorOf(warp_)), record_cursor_slot_);
}

/// Before others look at the warp's cursor.
void WarpFunction::ReturnRecordCursor() {
  if (record_cursor_slot_) b_.CreateStore(b_.CreateLoad(b_.getPtrTy(), record_cursor_slot_), RecordCursorOf(warp_));
}

/// The one to go on with.
Value* WarpFunction::FlushRecordsBeyondLimit(Value* cursor) {
  Value* limit = WarpField(offsetof(WarpCtx, record_limit), b_.getPtrTy());
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* flush = NewBlock("flush");
  BasicBlock* room = NewBlock("room");
  b_.CreateCondBr(b_.CreateICmpUGT(cursor, limit), flush, room, Unlikely());
  b_.SetInsertPoint(flush);
  b_.CreateStore(cursor, RecordCursorOf(warp_));
  b_.CreateCall(RecordHelper("gl.flush_records", Helper::kFlushRecords),
                {warp_, b_.getInt32(-1), b_.getInt32(0), b_.getInt64(0), b_.getInt64(0)});
  Value* emptied = b_.CreateLoad(b_.getPtrTy(), RecordCursorOf(warp_));
  b_.CreateBr(room);
  b_.SetInsertPoint(room);
  auto* phi = b_.CreatePHI(b_.getPtrTy(), 2);
  phi->addIncoming(cursor, before);
  phi->addIncoming(emptied, flush);
  return phi;
}

/// Behind a warp's end, in the loop over a CTA's warps: the next one goes on where it ended.
void WarpFunction::EndWarpRecords() {
  Value* cursor = b_.CreateLoad(b_.getPtrTy(), record_cursor_slot_);
  Value* end = PutWords(cursor, {b_.getInt64(RecordHeader{.kind = RecordKind::kWarpEnd}.Pack())});
  b_.CreateStore(FlushRecordsBeyondLimit(end), record_cursor_slot_);
}

/// Whether a call writes records itself.
bool WarpFunction::MayRecord(const llvm::CallInst& call) const {
  const MarkerInfo* const marker = module_.MarkerOf(call);
  if (marker)
    return marker->kind == MarkerKind::kIndirectCall ||
           (marker->kind == MarkerKind::kHelper && MayRecordEvents(marker->helper, marker->imm));
  return !call.getCalledFunction() || !call.getCalledFunction()->isIntrinsic();
}

/// Before the block ends and before calls of functions: what follows finds the cursor in its slot.
void WarpFunction::SaveRecordCursor() {
  CloseRecordGroup();
  if (!record_cursor_) return;
  b_.CreateStore(record_cursor_, record_cursor_slot_);
  record_cursor_ = nullptr;
}

/// Writes words and returns the address behind them.
Value* WarpFunction::PutWords(Value* cursor, llvm::ArrayRef<Value*> words) {
  std::uint64_t bytes = 0;
  for (Value* word : words) {
    b_.CreateAlignedStore(word, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cursor, bytes), llvm::Align(8));
    bytes += target_->getParent()->getDataLayout().getTypeStoreSize(word->getType());
  }
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), cursor, bytes);
}

/// The word that begins a record of the active lanes.
Value* WarpFunction::RecordHead(const RecordHeader& header) {
  return b_.CreateOr(b_.CreateZExt(mask_, b_.getInt64Ty()), b_.getInt64(header.Pack()));
}

void WarpFunction::EmitRecord(llvm::CallInst& call, const MarkerInfo& info) {
  const RecordHeader header = RecordHeader::Unpack(info.imm);
  const bool block = header.kind == RecordKind::kBlock;
  if (!divergent_ && RepeatedLoopAt(order_.blocks[current_])) return;  // LeaveRecordLoop tells of all rounds
  if (block) CloseRecordGroup();
  MakeRecordRoom(call, info);
  if (!block) {
    if (!record_group_) OpenRecordGroup(0);
    return AddToRecordGroup(call, header);
  }
  const llvm::CallInst* const next = NextRecord(call);
  if (next && RecordHeader::Unpack(module_.MarkerOf(*next)->imm).kind != RecordKind::kBlock)
    return OpenRecordGroup(header.Pack());
  record_cursor_ = PutWords(record_cursor_, {RecordHead(header)});
}

/// What the group says is known when it is closed; until then something else stands for it.
void WarpFunction::OpenRecordGroup(std::uint64_t block, bool repeats) {
  auto* stands_for = new llvm::GlobalVariable(*target_->getParent(), b_.getInt64Ty(), true,
                                              llvm::GlobalValue::ExternalLinkage, nullptr, "gl.group");
  OpenGroup& group = record_group_.emplace();
  group.stands_for = stands_for;
  group.block = block;
  Value* pointer = b_.CreatePtrToInt(stands_for, b_.getInt64Ty());
  static_assert(RecordHeader{.kind = RecordKind::kGroup}.Pack() == 0);
  const RecordKind kind = repeats ? RecordKind::kRepeat : RecordKind::kMaskedGroup;
  record_cursor_ = divergent_ || repeats ? PutWords(record_cursor_, {RecordHead({.kind = kind}), pointer})
                                         : PutWords(record_cursor_, {pointer});
}

/// Writes the group's RecordGroup into the constants of the module.
void WarpFunction::CloseRecordGroup() {
  if (!record_group_) return;
  const OpenGroup& group = *record_group_;
  llvm::SmallVector<std::uint64_t, 64> words{
      group.block, group.accesses.size() | std::uint64_t{group.slots.size()} << 32, group.loop};
  for (const RecordAccess& access : group.accesses) words.append({access.header, access.slot, access.add});
  for (const RecordSlot& slot : group.slots)
    words.append({slot.form, slot.base, static_cast<std::uint64_t>(slot.lanes), slot.step});
  for (const LanePattern& pattern : group.patterns) {
    for (const std::int64_t offset : pattern) words.push_back(static_cast<std::uint64_t>(offset));
  }
  llvm::Constant* data = llvm::ConstantDataArray::get(context_, words);
  auto* made = new llvm::GlobalVariable(*target_->getParent(), data->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                        data, "gl.record_group");
  made->setAlignment(llvm::Align(8));
  group.stands_for->replaceAllUsesWith(made);
  group.stands_for->eraseFromParent();
  record_group_.reset();
}

/// The address of an access as a value of its block and a constant.
std::pair<Value*, std::uint64_t> WarpFunction::RecordRoot(const llvm::CallInst& call) {
  Value* root = call.getArgOperand(0);
  std::uint64_t add = 0;
  for (;;) {
    // What another block computes of its values may not be at hand here.
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(root);
    if (!instruction || instruction->getParent() != call.getParent()) break;
    Value* more = nullptr;
    const llvm::APInt* constant = nullptr;
    if (!llvm::PatternMatch::match(instruction, llvm::PatternMatch::m_AddLike(llvm::PatternMatch::m_Value(more),
                                                                              llvm::PatternMatch::m_APInt(constant))))
      break;
    if (llvm::isa<llvm::Constant>(more)) break;
    add += constant->getZExtValue();
    root = more;
  }
  return {root, add};
}

void WarpFunction::AddToRecordGroup(llvm::CallInst& call, const RecordHeader& header) {
  std::uint64_t add_in_loop = 0;
  if (const std::optional<std::size_t> slot = SlotInLoop(call, add_in_loop)) {
    record_group_->accesses.push_back({.header = header.Pack(), .slot = *slot, .add = add_in_loop});
    return;
  }
  const auto [root, add] = RecordRoot(call);
  const auto key = std::make_pair(static_cast<const Value*>(root), header.space);
  auto known = record_group_->slot_of.find(key);
  if (known == record_group_->slot_of.end()) {
    const std::size_t number = record_group_->slots.size();
    record_group_->slots.push_back(PutSlot(root, header));
    known = record_group_->slot_of.emplace(key, number).first;
  }
  record_group_->accesses.push_back({.header = header.Pack(), .slot = known->second, .add = add});
}

/// Writes the words of a slot.
RecordSlot WarpFunction::PutSlot(Value* root, const RecordHeader& header) {
  const std::optional<Linear> linear = AsLinear(root);
  if (!linear) return PutFound(root, header);
  RecordSlot slot{.form = RecordSlot::kStride, .base = static_cast<std::uint64_t>(linear->pattern[0])};
  const std::int64_t step = linear->pattern[1] - linear->pattern[0];
  LanePattern pattern;
  bool even = step == static_cast<std::int16_t>(step);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    pattern[lane] = linear->pattern[lane] - linear->pattern[0];
    even &= pattern[lane] == step * static_cast<std::int64_t>(lane);
  }
  slot.lanes = step;
  if (!even) {
    std::vector<LanePattern>& patterns = record_group_->patterns;
    slot.form = RecordSlot::kPattern;
    slot.lanes = std::ranges::find(patterns, pattern) - patterns.begin();
    if (slot.lanes == std::ssize(patterns)) patterns.push_back(pattern);
  }
  const auto* const constant = llvm::dyn_cast<llvm::ConstantInt>(linear->base);
  if (constant && even && !linear->valid) {
    slot.form = RecordSlot::kFixed;
    slot.base += constant->getZExtValue();
    return slot;
  }
  if (!linear->valid) {
    record_cursor_ = PutWords(record_cursor_, {linear->base});
    return slot;
  }
  slot.form |= RecordSlot::kMayDiffer;
  PutEither(root, *linear);
  return slot;
}

/// One word, or all lanes where the 32-bit index of some wraps.
void WarpFunction::PutEither(Value* root, const Linear& linear) {
  BasicBlock* regular = NewBlock("record");
  BasicBlock* irregular = NewBlock("record_lanes");
  BasicBlock* joined = NewBlock("recorded");
  Value* elsewhere = b_.getInt64(RecordSlot::kElsewhere);
  b_.CreateCondBr(b_.CreateAnd(linear.valid, b_.CreateICmpNE(linear.base, elsewhere)), regular, irregular, Likely());
  b_.SetInsertPoint(regular);
  Value* short_end = PutWords(record_cursor_, {linear.base});
  b_.CreateBr(joined);
  b_.SetInsertPoint(irregular);
  Value* long_end = nullptr;
  {
    const Scope scope(*this);
    long_end = PutWords(record_cursor_, {elsewhere, ActiveLanes(root)});
  }
  BasicBlock* irregular_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), 2);
  end->addIncoming(short_end, regular);
  end->addIncoming(long_end, irregular_end);
  record_cursor_ = end;
}

/// The lanes of a slot as PutFound writes them: addresses, or an index that is cheaper to compare and to write.
WarpFunction::FoundLanes WarpFunction::FoundLanesOf(Value* root) {
  const Shape& shape = ShapeOf(root);
  const bool indexed = shape.kind == ShapeKind::kIndexed && shape.scale > 0 && shape.pattern == LanePattern{};
  if (!indexed) return {.root = root, .lanes = Lanes(root)};
  return {.root = root,
          .lanes = Lanes(const_cast<Value*>(shape.index)),
          .base = Base(root),
          .unit = shape.scale,
          .index_signed = shape.index_signed};
}

/// Lanes that lie as those of the instruction did the last time; else all addresses for the runtime to look at, while
/// it hopes to find that they do; else the lanes' distances (RecordSite).
RecordSlot WarpFunction::PutFound(Value* root, const RecordHeader& header) {
  const std::uint32_t number = header.instruction % kRecordSites;
  Value* sites = WarpField(offsetof(WarpCtx, record_sites), b_.getPtrTy());
  Value* site = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), sites, std::uint64_t{number} * sizeof(RecordSite));
  const auto field = [&](std::uint64_t offset) {
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), site, offset));
  };
  const FoundLanes found = FoundLanesOf(root);
  if (divergent_) MaskLanes();
  BasicBlock *compare = NewBlock("record_compare"), *regular = NewBlock("record_known"),
             *differs = NewBlock("record_differs");
  BasicBlock *learn = NewBlock("record_learn"), *near = NewBlock("record_near"), *joined = NewBlock("recorded");
  llvm::SmallVector<std::pair<Value*, BasicBlock*>, 4> ends;
  const auto join = [&](Value* end) {
    ends.emplace_back(end, b_.GetInsertBlock());
    b_.CreateBr(joined);
  };
  b_.CreateCondBr(b_.CreateICmpNE(field(offsetof(RecordSite, scattered)), b_.getInt64(0)), near, compare);
  {
    const Scope scope(*this);
    b_.SetInsertPoint(compare);
    Value* pattern = b_.CreateLoad(b_.getPtrTy(), site);
    Value* lanes = Lanes(root);
    Value* known = b_.CreateAlignedLoad(lanes->getType(), pattern, llvm::Align(8));
    Value* first = b_.CreateExtractElement(lanes, std::uint64_t{0});
    Value* differ = b_.CreateICmpNE(b_.CreateSub(lanes, Splat(first)), known);
    if (divergent_) differ = b_.CreateAnd(differ, MaskLanes());
    b_.CreateCondBr(b_.CreateICmpEQ(ToBits(differ), b_.getInt32(0)), regular, differs);
    b_.SetInsertPoint(regular);
    join(PutWords(record_cursor_, {b_.CreatePtrToInt(pattern, b_.getInt64Ty()), first}));
    b_.SetInsertPoint(differs);
    b_.CreateCondBr(b_.CreateICmpEQ(field(offsetof(RecordSite, tries)), b_.getInt64(0)), near, learn);
    b_.SetInsertPoint(learn);
    Value* slot = RecordCursorOf(warp_);
    b_.CreateStore(PutWords(record_cursor_, {b_.getInt64(0), ActiveLanes(root)}), slot);
    b_.CreateCall(RecordHelper("gl.learn_record", Helper::kLearnRecord),
                  {warp_, mask_, b_.getInt32(0), b_.getInt64(number), b_.getInt64(0)});
    join(b_.CreateLoad(b_.getPtrTy(), slot));
  }
  b_.SetInsertPoint(near);
  join(PutNear(found));
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), static_cast<unsigned>(ends.size()));
  for (const auto& [cursor, from] : ends) end->addIncoming(cursor, from);
  record_cursor_ = end;
  return {.form = RecordSlot::kFound, .lanes = found.unit};
}

/// Writes the addresses as NearLanes, or all of them where they lie too far apart. Returns where what follows begins.
Value* WarpFunction::PutNear(const FoundLanes& found) {
  const Scope scope(*this);
  const bool indexed = found.base != nullptr;
  auto* type = llvm::cast<llvm::FixedVectorType>(found.lanes->getType());
  const bool is_signed = indexed && found.index_signed;
  const unsigned bits = type->getScalarSizeInBits();
  const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  Value* chosen =
      divergent_ ? b_.CreateSelect(MaskLanes(), found.lanes, llvm::ConstantInt::get(type, most)) : found.lanes;
  Value* lowest = b_.CreateIntMinReduce(chosen, is_signed);
  Value* distances = b_.CreateSub(found.lanes, Splat(lowest));
  if (indexed) {
    Value* wide = is_signed ? b_.CreateSExt(lowest, b_.getInt64Ty()) : b_.CreateZExt(lowest, b_.getInt64Ty());
    Value* offset = b_.CreateMul(wide, b_.getInt64(static_cast<std::uint64_t>(found.unit)));
    return PutDistances(b_.CreateAdd(found.base, offset), distances);
  }
  BasicBlock *fits = NewBlock("record_distances"), *far = NewBlock("record_lanes"),
             *joined = NewBlock("record_written");
  Value* differ = b_.CreateICmpUGT(distances, Splat(b_.getInt64(0xffffffff)));
  if (divergent_) differ = b_.CreateAnd(differ, MaskLanes());
  b_.CreateCondBr(b_.CreateICmpEQ(ToBits(differ), b_.getInt32(0)), fits, far, Likely());
  b_.SetInsertPoint(fits);
  Value* short_end = PutDistances(lowest, b_.CreateTrunc(distances, LanesType(b_.getInt32Ty())));
  b_.CreateBr(joined);
  BasicBlock* short_block = b_.GetInsertBlock();
  b_.SetInsertPoint(far);
  Value* long_end = PutWords(record_cursor_, {b_.getInt64(0), ActiveLanes(found.root)});
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), 2);
  end->addIncoming(short_end, short_block);
  end->addIncoming(long_end, far);
  return end;
}

/// `distances`: <32 x i32>, of the active lanes. Only these are written where the machine brings them together cheaply.
Value* WarpFunction::PutDistances(Value* low, Value* distances) {
  if (!divergent_) return PutWords(record_cursor_, {b_.getInt64(NearLanes::kAllLanes), low, distances});
  if (!module_.avx512) {
    Value* active = b_.CreateSelect(MaskLanes(), distances, llvm::Constant::getNullValue(distances->getType()));
    return PutWords(record_cursor_, {b_.getInt64(NearLanes::kAllLanes), low, active});
  }
  Value* const begin = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), record_cursor_, NearLanes::kHeadWords);
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kHalfWarp);
  Value* count = b_.getInt64(0);
  for (unsigned half = 0; half < 2; ++half) {
    llvm::SmallVector<int, kHalfWarp> numbers(kHalfWarp);
    std::iota(numbers.begin(), numbers.end(), static_cast<int>(half * kHalfWarp));
    Value* bits = b_.CreateTrunc(half == 0 ? mask_ : b_.CreateLShr(mask_, kHalfWarp), b_.getInt16Ty());
    Value* together =
        b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_compress, {words},
                           {b_.CreateShuffleVector(distances, numbers), llvm::Constant::getNullValue(words),
                            b_.CreateBitCast(bits, llvm::FixedVectorType::get(b_.getInt1Ty(), kHalfWarp))});
    b_.CreateAlignedStore(together, b_.CreateInBoundsGEP(b_.getInt32Ty(), begin, count), llvm::Align(4));
    count = b_.CreateAdd(count, b_.CreateZExt(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits), b_.getInt64Ty()));
  }
  // An odd one leaves half a word, which must not make equal records differ.
  b_.CreateAlignedStore(b_.getInt32(0), b_.CreateInBoundsGEP(b_.getInt32Ty(), begin, count), llvm::Align(4));
  Value* told = b_.CreateOr(b_.CreateZExt(mask_, b_.getInt64Ty()), b_.CreateShl(count, NearLanes::kCountShift));
  PutWords(record_cursor_, {b_.CreateOr(told, b_.getInt64(RecordSlot::kNear)), low});
  return b_.CreateInBoundsGEP(b_.getInt64Ty(), begin, b_.CreateLShr(b_.CreateAdd(count, b_.getInt64(1)), 1));
}

/// The lanes' addresses, 0 for lanes that are off: what they hold must not make equal records differ.
Value* WarpFunction::ActiveLanes(Value* address) {
  Value* lanes = Lanes(address);
  return divergent_ ? SelectLanes(MaskLanes(), lanes, llvm::Constant::getNullValue(lanes->getType())) : lanes;
}

}  // namespace gridloom::exec
