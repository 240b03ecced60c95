// What RecordDecoder makes of the groups of compiled code: most accesses are of one entry, in global or shared memory,
// in the order of the code, and then need no thought when they come.
#include <algorithm>

#include "sim/trace/record_decoder.h"

namespace gridloom::trace {

using exec::AccessKind;
using exec::RecordHeader;
using exec::RecordSlot;

const RecordDecoder::Plan& RecordDecoder::FindPlan(const exec::RecordGroup* group) {
  std::unique_ptr<const Plan>& plan = plans_[group];
  if (!plan) plan = MakePlan(*group);
  return *(last_plans_[PlaceOf(group)] = plan.get());
}

std::unique_ptr<const RecordDecoder::Plan> RecordDecoder::MakePlan(const exec::RecordGroup& group) {
  auto plan = std::make_unique<Plan>();
  plan->group = &group;
  plan->loop = group.loop_number();
  // Accesses that share a word move together.
  std::vector<std::uint32_t> first(group.slot_count, kNoEntry);
  for (const exec::RecordAccess& access : group.accesses()) {
    const std::uint32_t instruction = RecordHeader::Unpack(access.header).instruction;
    if (instruction >= table_.entries.size() || table_.entries[instruction].count == 0) continue;
    const std::uint32_t at = table_.entries[instruction].first;
    const RecordSlot& slot = group.slots()[access.slot];
    if (slot.form == RecordSlot::kInLoop)
      first[access.slot] =
          loop_entries_.try_emplace({group.loop_number(), static_cast<std::uint32_t>(slot.base)}, at).first->second;
    if (first[access.slot] == kNoEntry) first[access.slot] = at;
    Join(first[access.slot], at);
  }
  AddSlots(group, *plan);
  plan->plain = AddPlain(group, *plan);
  plan->simple = plan->plain && IsSimple(*plan);
  if (slot_at_.size() < plan->slots.size()) slot_at_.resize(plan->slots.size());
  for (std::uint32_t number = 0; number < plan->slots.size(); ++number) {
    PlainSlot& slot = plan->slots[number];
    slot.others = static_cast<std::uint32_t>(plan->addends.size());
    for (std::uint32_t a = 0; a < plan->accesses.size(); ++a) {
      if (plan->accesses[a].slot != number) continue;
      const Addend addend{.words = Lies(plan->accesses[a].base, 0, 0), .access = a};
      if (slot.count++ == 0) slot.first = addend;
      else plan->addends.push_back(addend);
    }
  }
  return plan;
}

void RecordDecoder::AddSlots(const exec::RecordGroup& group, Plan& plan) {
  for (const RecordSlot& slot : group.slots()) {
    PlainSlot& made = plan.slots.emplace_back();
    made.form = slot.form;
    switch (slot.plain_form()) {
      case RecordSlot::kPattern: made.pattern = Intern(group.pattern(slot.lanes)); break;
      case RecordSlot::kRounds: plan.rounds = static_cast<std::uint32_t>(plan.slots.size() - 1); break;
      case RecordSlot::kInLoop:
        made.in_loop = static_cast<std::uint32_t>(slot.base);
        plan.in_loop = true;
        plan.loop_slots = std::max(plan.loop_slots, made.in_loop + 1);
        break;
      case RecordSlot::kFound:
        plan.found = true;
        made.unit = static_cast<std::int32_t>(slot.lanes);
        break;
      default: made.stride = static_cast<std::int32_t>(slot.lanes);
    }
  }
}

/// False when the group is not plain.
bool RecordDecoder::AddPlain(const exec::RecordGroup& group, Plan& plan) {
  std::uint32_t next = 0, end = static_cast<std::uint32_t>(entries_.size());
  if (group.block != 0) {
    const std::uint32_t instruction = RecordHeader::Unpack(group.block).instruction;
    if (instruction >= table_.entries.size() || table_.entries[instruction].block == CodeTable::kNoBlock) return false;
    plan.block = table_.entries[instruction].block;
    const BasicBlock& block = table_.code.blocks[plan.block];
    next = block.first;
    plan.end = end = block.first + block.count;
  } else if (group.access_count == 0) {
    return false;
  }
  std::uint32_t first = next;
  for (const exec::RecordAccess& access : group.accesses()) {
    const RecordHeader header = RecordHeader::Unpack(access.header);
    if (!IsPlain(header)) return false;
    const std::uint32_t at = table_.entries[header.instruction].first;
    if (at < next || at >= end) return false;
    if (plan.accesses.empty() && group.block == 0) first = at;
    next = at + 1;
    const RecordSlot& slot = group.slots()[access.slot];
    plan.accesses.push_back({.at = at,
                             .place = entries_[at].number - entries_[first].number,
                             .slot = static_cast<std::uint32_t>(access.slot),
                             .add = access.add,
                             .base = access.add + (slot.form == RecordSlot::kInLoop ? 0 : slot.base),
                             .moves = header.space != exec::Space::kShared && slot.form != RecordSlot::kFixed});
  }
  return true;
}

bool RecordDecoder::IsSimple(const Plan& plan) const {
  if (plan.block == CodeTable::kNoBlock || plan.slots.size() > kMostSlots) return false;
  const auto in_loop = std::ranges::find(plan.slots, RecordSlot::kInLoop, &PlainSlot::form);
  if (plan.rounds != PlainSlot::kNone && in_loop < plan.slots.begin() + plan.rounds) return false;
  const BasicBlock& block = table_.code.blocks[plan.block];
  return plan.accesses.size() == entries_[block.first + block.count].number - entries_[block.first].number;
}

/// Whether the instruction is one entry, in global or shared memory, and the access the one it says.
bool RecordDecoder::IsPlain(const RecordHeader& header) const {
  if (header.instruction >= table_.entries.size()) return false;
  const CodeTable::Entry& entry = table_.entries[header.instruction];
  if (entry.count != 1) return false;
  const Instruction& instruction = table_.code.instructions[entry.first];
  if (!instruction.has_access() || (instruction.flags & kGeneric) != 0 || instruction.space == Space::kLocal)
    return false;
  const AccessKind kind = (instruction.flags & kAtomic) != 0  ? AccessKind::kAtomic
                          : (instruction.flags & kStore) != 0 ? AccessKind::kWrite
                                                              : AccessKind::kRead;
  const exec::Space space = instruction.space == Space::kShared ? exec::Space::kShared : exec::Space::kGlobal;
  return header.access == kind && header.space == space && header.bytes == instruction.width;
}

/// The first pattern like this one: groups have their own.
const std::int64_t* RecordDecoder::Intern(const std::int64_t* pattern) {
  for (const auto& known : patterns_) {
    if (std::equal(known->begin(), known->end(), pattern)) return known->data();
  }
  auto made = std::make_unique<std::array<std::int64_t, kWarpSize>>();
  std::copy_n(pattern, kWarpSize, made->begin());
  return patterns_.emplace_back(std::move(made))->data();
}

std::uint32_t RecordDecoder::LeaderOf(std::uint32_t at) {
  while (entries_[at].leader != at) at = entries_[at].leader = entries_[entries_[at].leader].leader;
  return at;
}

/// Both entries have one site from now on. Where each has another one in the CTA already, its sites are of no use.
void RecordDecoder::Join(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t to = LeaderOf(a), from = LeaderOf(b);
  if (to == from) return;
  Entry &leader = EntryOf(to), &other = EntryOf(from);
  if (leader.site != 0 && other.site != 0 && sites_ != nullptr) sites_->usable = false;
  if (leader.site == 0) leader.site = other.site;
  other.leader = to;
}

}  // namespace gridloom::trace
