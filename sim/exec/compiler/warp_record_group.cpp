// Code that writes a group of records. Shapes decide what a record holds: of an address that is a scalar and a pattern,
// only the scalar costs anything, and of several at constant distances only one.
#include "sim/exec/compiler/warp_record_group.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

/// Words that a slot for lanes at `root` takes at most.
std::uint32_t RecordGroups::SlotWords(Value* root) {
  const ShapeKind kind = values_.ShapeOf(root).kind;
  return kind == ShapeKind::kUniform || kind == ShapeKind::kAffine ? 1 : RecordSlot::kMaxWords;
}

/// Before the block ends and before calls of functions: what follows finds the cursor in its slot.
void RecordGroups::SaveRecordCursor() {
  CloseRecordGroup();
  if (!record_buffer_.cursor) return;
  b_.CreateStore(record_buffer_.cursor, record_buffer_.slot);
  record_buffer_.cursor = nullptr;
}

/// The word that begins a record of the active lanes.
Value* RecordGroups::RecordHead(const RecordHeader& header) {
  return b_.CreateOr(b_.CreateZExt(w_.mask, b_.getInt64Ty()), b_.getInt64(header.Pack()));
}

/// What the group says is known when it is closed; until then something else stands for it.
void RecordGroups::OpenRecordGroup(std::uint64_t block, bool repeats) {
  auto* stands_for = new llvm::GlobalVariable(*w_.target->getParent(), b_.getInt64Ty(), true,
                                              llvm::GlobalValue::ExternalLinkage, nullptr, "gl.group");
  OpenGroup& group = open.emplace();
  group.stands_for = stands_for;
  group.block = block;
  Value* pointer = b_.CreatePtrToInt(stands_for, b_.getInt64Ty());
  static_assert(RecordHeader{.kind = RecordKind::kGroup}.Pack() == 0);
  const RecordKind kind = repeats ? RecordKind::kRepeat : RecordKind::kMaskedGroup;
  record_buffer_.cursor = w_.divergent || repeats
                              ? record_buffer_.PutWords(record_buffer_.cursor, {RecordHead({.kind = kind}), pointer})
                              : record_buffer_.PutWords(record_buffer_.cursor, {pointer});
}

/// Writes the group's RecordGroup into the constants of the module.
void RecordGroups::CloseRecordGroup() {
  if (!open) return;
  const OpenGroup& group = *open;
  llvm::SmallVector<std::uint64_t, 64> words{
      group.block, group.accesses.size() | std::uint64_t{group.slots.size()} << 32, group.loop};
  for (const RecordAccess& access : group.accesses) words.append({access.header, access.slot, access.add});
  for (const RecordSlot& slot : group.slots)
    words.append({slot.form, slot.base, static_cast<std::uint64_t>(slot.lanes), slot.step});
  for (const LanePattern& pattern : group.patterns) {
    for (const std::int64_t offset : pattern) words.push_back(static_cast<std::uint64_t>(offset));
  }
  llvm::Constant* data = llvm::ConstantDataArray::get(b_.getContext(), words);
  auto* made = new llvm::GlobalVariable(*w_.target->getParent(), data->getType(), true,
                                        llvm::GlobalValue::PrivateLinkage, data, "gl.record_group");
  made->setAlignment(llvm::Align(8));
  group.stands_for->replaceAllUsesWith(made);
  group.stands_for->eraseFromParent();
  open.reset();
}

/// The address of an access as a value of its block and a constant.
std::pair<Value*, std::uint64_t> RecordRoot(const llvm::CallInst& call) {
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

/// Writes the words of a slot.
RecordSlot RecordGroups::PutSlot(Value* root, const RecordHeader& header) {
  const std::optional<Linear> linear = values_.AsLinear(root);
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
    std::vector<LanePattern>& patterns = open->patterns;
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
    record_buffer_.Put({linear->base});
    return slot;
  }
  slot.form |= RecordSlot::kMayDiffer;
  PutEither(root, *linear);
  return slot;
}

/// One word, or all lanes where the 32-bit index of some wraps.
void RecordGroups::PutEither(Value* root, const Linear& linear) {
  BasicBlock* regular = w_.NewBlock("record");
  BasicBlock* irregular = w_.NewBlock("record_lanes");
  BasicBlock* joined = w_.NewBlock("recorded");
  Value* elsewhere = b_.getInt64(RecordSlot::kElsewhere);
  b_.CreateCondBr(b_.CreateAnd(linear.valid, b_.CreateICmpNE(linear.base, elsewhere)), regular, irregular, w_.Likely());
  b_.SetInsertPoint(regular);
  Value* short_end = record_buffer_.PutWords(record_buffer_.cursor, {linear.base});
  b_.CreateBr(joined);
  b_.SetInsertPoint(irregular);
  Value* long_end = nullptr;
  {
    const Scope scope(w_);
    long_end = record_buffer_.PutWords(record_buffer_.cursor, {elsewhere, ActiveAddresses(root)});
  }
  BasicBlock* irregular_end = b_.GetInsertBlock();
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), 2);
  end->addIncoming(short_end, regular);
  end->addIncoming(long_end, irregular_end);
  record_buffer_.cursor = end;
}

/// Lanes that lie as those of the instruction did the last time; else all addresses for the runtime to look at, while
/// it hopes to find that they do; else the lanes' distances (RecordSite).
RecordSlot RecordGroups::PutFound(Value* root, const RecordHeader& header) {
  const std::uint32_t number = header.instruction % kRecordSites;
  Value* sites = w_.WarpField(offsetof(WarpCtx, record_sites), b_.getPtrTy());
  Value* site = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), sites, std::uint64_t{number} * sizeof(RecordSite));
  const auto field = [&](std::uint64_t offset) {
    return b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), site, offset));
  };
  const FoundLanes found = values_.FoundLanesOf(root);
  if (w_.divergent) w_.MaskLanes();
  BasicBlock *compare = w_.NewBlock("record_compare"), *regular = w_.NewBlock("record_known"),
             *differs = w_.NewBlock("record_differs");
  BasicBlock *learn = w_.NewBlock("record_learn"), *near = w_.NewBlock("record_near"),
             *joined = w_.NewBlock("recorded");
  llvm::SmallVector<std::pair<Value*, BasicBlock*>, 4> ends;
  const auto join = [&](Value* end) {
    ends.emplace_back(end, b_.GetInsertBlock());
    b_.CreateBr(joined);
  };
  b_.CreateCondBr(b_.CreateICmpNE(field(offsetof(RecordSite, scattered)), b_.getInt64(0)), near, compare);
  {
    const Scope scope(w_);
    b_.SetInsertPoint(compare);
    Value* pattern = b_.CreateLoad(b_.getPtrTy(), site);
    Value* lanes = values_.Lanes(root);
    Value* known = b_.CreateAlignedLoad(lanes->getType(), pattern, llvm::Align(8));
    Value* first = b_.CreateExtractElement(lanes, std::uint64_t{0});
    Value* differ = b_.CreateICmpNE(b_.CreateSub(lanes, w_.Splat(first)), known);
    if (w_.divergent) differ = b_.CreateAnd(differ, w_.MaskLanes());
    b_.CreateCondBr(b_.CreateICmpEQ(w_.ToBits(differ), b_.getInt32(0)), regular, differs);
    b_.SetInsertPoint(regular);
    join(record_buffer_.PutWords(record_buffer_.cursor, {b_.CreatePtrToInt(pattern, b_.getInt64Ty()), first}));
    b_.SetInsertPoint(differs);
    b_.CreateCondBr(b_.CreateICmpEQ(field(offsetof(RecordSite, tries)), b_.getInt64(0)), near, learn);
    b_.SetInsertPoint(learn);
    Value* slot = record_buffer_.RecordCursorOf(w_.warp);
    b_.CreateStore(record_buffer_.PutWords(record_buffer_.cursor, {b_.getInt64(0), ActiveAddresses(root)}), slot);
    b_.CreateCall(record_buffer_.RecordHelper("gl.learn_record", Helper::kLearnRecord),
                  {w_.warp, w_.mask, b_.getInt32(0), b_.getInt64(number), b_.getInt64(0)});
    join(b_.CreateLoad(b_.getPtrTy(), slot));
  }
  b_.SetInsertPoint(near);
  join(PutNear(found));
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), static_cast<unsigned>(ends.size()));
  for (const auto& [cursor, from] : ends) end->addIncoming(cursor, from);
  record_buffer_.cursor = end;
  return {.form = RecordSlot::kFound, .lanes = found.unit};
}

/// Writes the addresses as NearLanes, or all of them where they lie too far apart. Returns where what follows begins.
Value* RecordGroups::PutNear(const FoundLanes& found) {
  const Scope scope(w_);
  const bool indexed = found.base != nullptr;
  auto* type = llvm::cast<llvm::FixedVectorType>(found.lanes->getType());
  const bool is_signed = indexed && found.index_signed;
  const unsigned bits = type->getScalarSizeInBits();
  const llvm::APInt most = is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  Value* chosen =
      w_.divergent ? b_.CreateSelect(w_.MaskLanes(), found.lanes, llvm::ConstantInt::get(type, most)) : found.lanes;
  Value* lowest = b_.CreateIntMinReduce(chosen, is_signed);
  Value* distances = b_.CreateSub(found.lanes, w_.Splat(lowest));
  if (indexed) {
    Value* wide = is_signed ? b_.CreateSExt(lowest, b_.getInt64Ty()) : b_.CreateZExt(lowest, b_.getInt64Ty());
    Value* offset = b_.CreateMul(wide, b_.getInt64(static_cast<std::uint64_t>(found.unit)));
    return PutDistances(b_.CreateAdd(found.base, offset), distances);
  }
  BasicBlock *fits = w_.NewBlock("record_distances"), *far = w_.NewBlock("record_lanes"),
             *joined = w_.NewBlock("record_written");
  Value* differ = b_.CreateICmpUGT(distances, w_.Splat(b_.getInt64(0xffffffff)));
  if (w_.divergent) differ = b_.CreateAnd(differ, w_.MaskLanes());
  b_.CreateCondBr(b_.CreateICmpEQ(w_.ToBits(differ), b_.getInt32(0)), fits, far, w_.Likely());
  b_.SetInsertPoint(fits);
  Value* short_end = PutDistances(lowest, b_.CreateTrunc(distances, w_.LanesType(b_.getInt32Ty())));
  b_.CreateBr(joined);
  BasicBlock* short_block = b_.GetInsertBlock();
  b_.SetInsertPoint(far);
  Value* long_end = record_buffer_.PutWords(record_buffer_.cursor, {b_.getInt64(0), ActiveAddresses(found.root)});
  b_.CreateBr(joined);
  b_.SetInsertPoint(joined);
  auto* end = b_.CreatePHI(b_.getPtrTy(), 2);
  end->addIncoming(short_end, short_block);
  end->addIncoming(long_end, far);
  return end;
}

/// `distances`: <32 x i32>, of the active lanes. Only these are written where the machine brings them together cheaply.
Value* RecordGroups::PutDistances(Value* low, Value* distances) {
  if (!w_.divergent)
    return record_buffer_.PutWords(record_buffer_.cursor, {b_.getInt64(NearLanes::kAllLanes), low, distances});
  if (!module_.avx512) {
    Value* active = b_.CreateSelect(w_.MaskLanes(), distances, llvm::Constant::getNullValue(distances->getType()));
    return record_buffer_.PutWords(record_buffer_.cursor, {b_.getInt64(NearLanes::kAllLanes), low, active});
  }
  Value* const begin = b_.CreateConstInBoundsGEP1_64(b_.getInt64Ty(), record_buffer_.cursor, NearLanes::kHeadWords);
  auto* words = llvm::FixedVectorType::get(b_.getInt32Ty(), kHalfWarp);
  Value* count = b_.getInt64(0);
  for (unsigned half = 0; half < 2; ++half) {
    llvm::SmallVector<int, kHalfWarp> numbers(kHalfWarp);
    std::iota(numbers.begin(), numbers.end(), static_cast<int>(half * kHalfWarp));
    Value* bits = b_.CreateTrunc(half == 0 ? w_.mask : b_.CreateLShr(w_.mask, kHalfWarp), b_.getInt16Ty());
    Value* together =
        b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_compress, {words},
                           {b_.CreateShuffleVector(distances, numbers), llvm::Constant::getNullValue(words),
                            b_.CreateBitCast(bits, llvm::FixedVectorType::get(b_.getInt1Ty(), kHalfWarp))});
    b_.CreateAlignedStore(together, b_.CreateInBoundsGEP(b_.getInt32Ty(), begin, count), llvm::Align(4));
    count = b_.CreateAdd(count, b_.CreateZExt(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits), b_.getInt64Ty()));
  }
  // An odd one leaves half a word, which must not make equal records differ.
  b_.CreateAlignedStore(b_.getInt32(0), b_.CreateInBoundsGEP(b_.getInt32Ty(), begin, count), llvm::Align(4));
  Value* told = b_.CreateOr(b_.CreateZExt(w_.mask, b_.getInt64Ty()), b_.CreateShl(count, NearLanes::kCountShift));
  record_buffer_.PutWords(record_buffer_.cursor, {b_.CreateOr(told, b_.getInt64(RecordSlot::kNear)), low});
  return b_.CreateInBoundsGEP(b_.getInt64Ty(), begin, b_.CreateLShr(b_.CreateAdd(count, b_.getInt64(1)), 1));
}

/// The lanes' addresses, 0 for lanes that are off: what they hold must not make equal records differ.
Value* RecordGroups::ActiveAddresses(Value* address) {
  Value* lanes = values_.Lanes(address);
  return w_.divergent ? w_.SelectLanes(w_.MaskLanes(), lanes, llvm::Constant::getNullValue(lanes->getType())) : lanes;
}

}  // namespace gridloom::exec
