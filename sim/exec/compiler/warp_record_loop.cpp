// Records of loops (RecordLoop): where accesses start and their steps are written before the loop, the groups in it say
// which round it is, and where all 32 lanes run a loop of one block together, one record behind it tells of all rounds.

#include "sim/exec/compiler/warp_record_loop.h"

#include "sim/exec/compiler/warp_record_buffer.h"
#include "sim/exec/compiler/warp_record_group.h"
#include "sim/exec/compiler/warp_values.h"

namespace gridloom::exec {

using llvm::BasicBlock;
using llvm::Value;

void LoopRecordEmitter::AddToRecordGroup(llvm::CallInst& call, const RecordHeader& header) {
  std::uint64_t add_in_loop = 0;
  if (const std::optional<std::size_t> slot = SlotInLoop(call, add_in_loop)) {
    record_groups_.open->accesses.push_back({.header = header.Pack(), .slot = *slot, .add = add_in_loop});
    return;
  }
  const auto [root, add] = RecordRoot(call);
  const auto key = std::make_pair(static_cast<const Value*>(root), header.space);
  auto known = record_groups_.open->slot_of.find(key);
  if (known == record_groups_.open->slot_of.end()) {
    const std::size_t number = record_groups_.open->slots.size();
    record_groups_.open->slots.push_back(record_groups_.PutSlot(root, header));
    known = record_groups_.open->slot_of.emplace(key, number).first;
  }
  record_groups_.open->accesses.push_back({.header = header.Pack(), .slot = known->second, .add = add});
}

LoopOfRecords& LoopRecordEmitter::RecordLoopAt(std::uint32_t number) {
  const auto known = loops_.find(number);
  if (known != loops_.end()) return known->second;
  return loops_.emplace(number, PlanRecordLoop(module_.spmd.record_loops.loops[number])).first->second;
}

/// Lanes that are in the loop have to be in the same round, and no other loop may begin while it runs.
LoopOfRecords LoopRecordEmitter::PlanRecordLoop(const RecordLoop& from) {
  LoopOfRecords plan;
  plan.places.assign(from.slots.size(), -1);
  const llvm::Loop& loop = *source_.loops.getLoopFor(from.header);
  const bool calls = llvm::any_of(loop.blocks(), [&](const BasicBlock* block) {
    return llvm::any_of(*block, [&](const llvm::Instruction& instruction) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      return call && MayRecord(module_, *call);
    });
  });
  if (calls || !source_.shapes.lockstep() || source_.shapes.Waits(&loop)) return plan;
  constexpr std::uint32_t kHead = 2, kStep = 1;
  plan.words = kHead;
  std::uint32_t gain = 0;
  std::int32_t places = 0;
  for (std::size_t i = 0; i < from.slots.size(); ++i) {
    Value *start = from.marker->getArgOperand(2 * static_cast<unsigned>(i)),
          *step = from.marker->getArgOperand(2 * static_cast<unsigned>(i) + 1);
    const std::uint32_t words = record_groups_.SlotWords(start);
    if (!values_.ShapeOf(step).uniform() || plan.words + words + kStep > kMaxGroupWords) continue;
    plan.words += words + kStep;
    plan.places[i] = places++;
    gain += llvm::isa<llvm::Constant>(start) ? 0 : words;
  }
  plan.repeats = RepeatsRecords(loop, plan.places);
  plan.told = plan.repeats || gain > 1;
  if (!plan.told) plan.places.assign(from.slots.size(), -1);
  if (!plan.told) return plan;
  llvm::IRBuilder<> at(w_.entry, w_.entry->begin());
  plan.rounds = at.CreateAlloca(b_.getInt64Ty(), nullptr, "rounds");
  return plan;
}

/// One block of the code, all of whose accesses have places, and a branch back that all lanes take together.
bool LoopRecordEmitter::RepeatsRecords(const llvm::Loop& loop, const std::vector<std::int32_t>& places) {
  const BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch();
  if (loop.getNumBlocks() != 2 || latch == header || &latch->front() != latch->getTerminator() ||
      !source_.RunsTogether(loop))
    return false;
  const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(header->getTerminator());
  if (!branch || !branch->isConditional() || source_.shapes.IsDivergent(branch) ||
      !values_.ShapeOf(branch->getCondition()).uniform())
    return false;
  bool begun = false;
  for (const llvm::Instruction& instruction : *header) {
    const MarkerInfo* const info = module_.MarkerOf(instruction);
    if (!info || info->kind != MarkerKind::kRecord) continue;
    const bool block = RecordHeader::Unpack(info->imm).kind == RecordKind::kBlock;
    if (block == begun) return false;
    begun = true;
    if (block) continue;
    const auto place = module_.spmd.record_loops.accesses.find(llvm::cast<llvm::CallInst>(&instruction));
    if (place == module_.spmd.record_loops.accesses.end() || places[place->second.slot] < 0) return false;
  }
  return begun;
}

/// The number of a loop that is told of.
std::optional<std::uint32_t> LoopRecordEmitter::RecordLoopOf(const llvm::Loop* loop) const {
  const auto& by_header = module_.spmd.record_loops.by_header;
  const auto known = loop ? by_header.find(loop->getHeader()) : by_header.end();
  return known != by_header.end() ? std::optional(known->second) : std::nullopt;
}

/// The loop that `block` is in, if all of its rounds are one record.
std::optional<std::uint32_t> LoopRecordEmitter::RepeatedLoopAt(const BasicBlock* block) {
  const std::optional<std::uint32_t> number = RecordLoopOf(source_.loops.getLoopFor(block));
  return number && RecordLoopAt(*number).repeats ? number : std::nullopt;
}

void LoopRecordEmitter::BeginRecordLoop(std::uint32_t number) {
  const LoopOfRecords& plan = RecordLoopAt(number);
  if (!plan.told) return;
  b_.CreateStore(b_.getInt64(0), plan.rounds);
  const RecordLoop& from = module_.spmd.record_loops.loops[number];
  if (llvm::all_of(plan.places, [](std::int32_t place) { return place < 0; })) return;
  record_groups_.SaveRecordCursor();
  record_buffer_.TakeRecordRoom(plan.words);
  record_groups_.OpenRecordGroup(0);
  record_groups_.open->loop = RecordGroup::kBeginsLoop | number;
  for (std::size_t i = 0; i < plan.places.size(); ++i) {
    if (plan.places[i] < 0) continue;
    Value* step = from.marker->getArgOperand(2 * static_cast<unsigned>(i) + 1);
    RecordSlot slot = record_groups_.PutSlot(from.marker->getArgOperand(2 * static_cast<unsigned>(i)),
                                             RecordHeader::Unpack(from.slots[i]));
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(step)) {
      slot.step = constant->getZExtValue();
    } else {
      slot.form |= RecordSlot::kStepFollows;
      record_buffer_.Put({values_.Base(step)});
    }
    record_groups_.open->slots.push_back(slot);
  }
  record_groups_.SaveRecordCursor();
}

/// On the way back to `to`, a loop's header.
void LoopRecordEmitter::CountRound(const BasicBlock* to) {
  const std::optional<std::uint32_t> number = RecordLoopOf(source_.loops.getLoopFor(to));
  if (!number) return;
  llvm::AllocaInst* const rounds = RecordLoopAt(*number).rounds;
  if (rounds) b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), rounds), b_.getInt64(1)), rounds);
}

/// On the way to `to`: if that leaves a loop whose rounds are one record, writes it.
void LoopRecordEmitter::LeaveRecordLoop(const BasicBlock* to) {
  BasicBlock* const from = source_.order.blocks[w_.current];
  const std::optional<std::uint32_t> number = w_.divergent ? std::nullopt : RepeatedLoopAt(from);
  if (!number || source_.loops.getLoopFor(from)->contains(to)) return;
  constexpr std::uint32_t kWords = 3;
  record_buffer_.TakeRecordRoom(kWords);
  Value* last = b_.CreateLoad(b_.getInt64Ty(), RecordLoopAt(*number).rounds);
  for (llvm::Instruction& instruction : *from) {
    const MarkerInfo* const info = module_.MarkerOf(instruction);
    if (!info || info->kind != MarkerKind::kRecord) continue;
    const RecordHeader header = RecordHeader::Unpack(info->imm);
    if (header.kind != RecordKind::kBlock) {
      AddToRecordGroup(llvm::cast<llvm::CallInst>(instruction), header);
      continue;
    }
    record_groups_.OpenRecordGroup(header.Pack(), true);
    record_groups_.open->loop = *number;
    PutRounds(b_.CreateAdd(last, b_.getInt64(1)));
  }
  record_groups_.SaveRecordCursor();
}

/// A slot that says how many rounds have ended.
std::size_t LoopRecordEmitter::PutRounds(Value* rounds) {
  record_buffer_.Put({rounds});
  record_groups_.open->slots.push_back({.form = RecordSlot::kRounds});
  return record_groups_.open->slots.size() - 1;
}

/// Where an access lies among the slots of the group that began its loop.
std::optional<std::uint32_t> LoopRecordEmitter::PlaceInLoop(const llvm::CallInst& call, std::uint64_t& add) {
  const auto known = module_.spmd.record_loops.accesses.find(&call);
  if (known == module_.spmd.record_loops.accesses.end()) return std::nullopt;
  const std::int32_t place = RecordLoopAt(known->second.loop).places[known->second.slot];
  if (place < 0) return std::nullopt;
  add = known->second.add;
  return static_cast<std::uint32_t>(place);
}

/// The slot of the open group for an access whose loop has told where it lies.
std::optional<std::size_t> LoopRecordEmitter::SlotInLoop(const llvm::CallInst& call, std::uint64_t& add) {
  const std::optional<std::uint32_t> place = PlaceInLoop(call, add);
  if (!place) return std::nullopt;
  OpenGroup& group = *record_groups_.open;
  if (group.slot_in_loop.empty() && (group.slots.empty() || group.slots.front().form != RecordSlot::kRounds)) {
    group.loop = module_.spmd.record_loops.accesses.find(&call)->second.loop;
    PutRounds(b_.CreateLoad(b_.getInt64Ty(), RecordLoopAt(static_cast<std::uint32_t>(group.loop)).rounds));
  }
  const auto [known, added] = group.slot_in_loop.try_emplace(*place, group.slots.size());
  if (added) group.slots.push_back({.form = RecordSlot::kInLoop, .base = *place});
  return known->second;
}

}  // namespace gridloom::exec
