// How RecordDecoder takes the groups of compiled code, as their plans (record_plan.cpp) say.
#include <bit>
#include <utility>

#include "sim/trace/record_decoder.h"

namespace gridloom::trace {

using exec::RecordHeader;
using exec::RecordKind;
using exec::RecordReader;
using exec::RecordSlot;

/// A group, whatever it is. Where what follows begins.
RecordDecoder::Words RecordDecoder::TakeGroup(Words at, Words end) {
  const RecordHeader header = RecordHeader::Unpack(*at);
  const bool bare = header.kind == RecordKind::kGroup, repeats = header.kind == RecordKind::kRepeat;
  const std::uint32_t mask = bare ? ~0u : header.mask;
  const Plan& plan = PlanOf(reinterpret_cast<const exec::RecordGroup*>(bare ? at[0] : at[1]));
  const Words words = at + (bare ? 1 : 2);
  if (sites_ != nullptr) sites_->names_patterns |= plan.found;
  if (plan.simple && sites_ == nullptr && repeats && mask != 0) return TakeRepeatedGroup(plan, mask, words);
  if (plan.group->begins_loop()) return BeginLoop(plan, mask, words);
  if (plan.plain && mask != 0) {
    const bool here =
        plan.block != CodeTable::kNoBlock || (plan.accesses.front().at >= next_ && plan.accesses.back().at < end_);
    if (here) return TakePlainGroup(plan, mask, words, repeats);
  }
  return TakeAnyGroup(plan, at, end);
}

/// Finds the words of the slots, which begin at `at`. Where they end.
RecordDecoder::Words RecordDecoder::FindSlots(const Plan& plan, Words at) {
  const std::span<const RecordSlot> slots = plan.group->slots();
  if (slot_at_.size() < slots.size()) slot_at_.resize(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slot_at_[i] = at;
    at += slots[i].WordsAt(at);
  }
  return at;
}

/// Access by access.
RecordDecoder::Words RecordDecoder::TakeAnyGroup(const Plan& plan, Words at, Words end) {
  if (plan.in_loop) {
    if (sites_ != nullptr) sites_->usable = false;
    SlotInLoop(plan.group->loop_number(), 0);
    const Loop& loop = loops_[plan.group->loop_number()];
    if (loop.group != nullptr) record_loops_.Begin(*loop.group, loop.at);
  }
  RecordReader reader({at, end}, &record_loops_);
  while (reader.Next()) {
    if (reader.header().kind == RecordKind::kBlock) {
      TakeBlock(reader.header().instruction, reader.header().mask);
    } else {
      const std::uint16_t site = AddAccess(reader);
      MarkSite(reader.slot(), at + reader.slot_at(), reader.header().mask, site);
    }
    if (!reader.in_group()) return at + reader.next();
  }
  return end;
}

/// A block with all of its accesses, in as many rounds as the record says.
RecordDecoder::Words RecordDecoder::TakeRepeatedGroup(const Plan& plan, std::uint32_t mask, Words at) {
  const Words end = FindSlots(plan, at);
  SkipTo(end_);
  next_ = end_ = plan.end;
  const std::uint64_t rounds = RoundsThatFit(plan.rounds == PlainSlot::kNone ? 1 : *slot_at_[plan.rounds]);
  std::fill_n(visits_.Add(rounds), rounds, BlockVisit{plan.block, mask});
  const std::size_t count = plan.accesses.size();
  MemoryAccess* access = accesses_.Add(count * rounds);
  for (const PlainAccess& plain : plan.accesses) {
    MemoryAccess* const first = access++;
    if (const std::uint32_t in_loop = plan.slots[plain.slot].in_loop; in_loop != PlainSlot::kNone) {
      AddLoopRounds(plain, SlotInLoop(plan.group->loop_number(), in_loop), rounds, mask, {first, count});
      continue;
    }
    for (std::uint64_t r = 0; r < rounds; ++r) {
      first[r * count].mask = mask;
      AddPlainAccess(plan, plain, slot_at_[plain.slot], 0, first[r * count]);
    }
  }
  return end;
}

/// An access of so many rounds in a row, at every `out.second`-th place from `out.first` on.
void RecordDecoder::AddLoopRounds(const PlainAccess& plain, const LoopSlot& slot, std::uint64_t rounds,
                                  std::uint32_t mask, std::pair<MemoryAccess*, std::size_t> out) {
  const auto [first, count] = out;
  if (slot.stride != MemoryAccess::kScattered) {
    std::uint64_t base = plain.base + slot.base;
    for (std::uint64_t r = 0; r < rounds; ++r, base += slot.step) first[r * count] = {base, slot.stride, mask};
    return;
  }
  for (std::uint64_t r = 0; r < rounds; ++r) {
    first[r * count].mask = mask;
    AddLoopAccess(plain, slot, r, first[r * count]);
  }
}

RecordDecoder::Words RecordDecoder::TakePlainGroup(const Plan& plan, std::uint32_t mask, Words at, bool repeats) {
  const std::span<const RecordSlot> slots = plan.group->slots();
  const Words end = FindSlots(plan, at);
  std::uint64_t round = plan.rounds == PlainSlot::kNone ? 0 : *slot_at_[plan.rounds];
  const std::uint64_t rounds = repeats ? RoundsThatFit(std::exchange(round, 0)) : 1;
  for (std::uint64_t r = 0; r < rounds; ++r) TakePlainRound(plan, mask, round + r);
  if (sites_ == nullptr) return end;
  for (const PlainAccess& plain : plan.accesses) {
    const std::uint16_t site = SiteOf(plain.at, plain.at + 1, plain.moves);
    if (const std::uint32_t in_loop = plan.slots[plain.slot].in_loop; in_loop != PlainSlot::kNone) {
      const LoopSlot& slot = SlotInLoop(plan.group->loop_number(), in_loop);
      if (slot.form != nullptr)
        MarkSite(*slot.form, slot.at, slot.mask, slot.form->has_words() ? site : RecordSites::kFixed);
    } else {
      MarkSite(slots[plain.slot], slot_at_[plain.slot], mask, site);
    }
  }
  return end;
}

/// One execution of a plain group whose slots lie at slot_at_.
void RecordDecoder::TakePlainRound(const Plan& plan, std::uint32_t mask, std::uint64_t round) {
  if (plan.block != CodeTable::kNoBlock) TakeBlock(RecordHeader::Unpack(plan.group->block).instruction, mask);
  if (plan.accesses.empty()) return;
  if (plan.block == CodeTable::kNoBlock) SkipTo(plan.accesses.front().at);
  const std::size_t count = plan.accesses.back().place + 1;
  MemoryAccess* const accesses = accesses_.Add(count);
  if (count != plan.accesses.size()) std::fill_n(accesses, count, MemoryAccess{});
  for (const PlainAccess& plain : plan.accesses) {
    MemoryAccess& access = accesses[plain.place];
    access.mask = mask;
    AddPlainAccess(plan, plain, slot_at_[plain.slot], round, access);
  }
  next_ = plan.accesses.back().at + 1;
}

/// `at`: the words of its slot. The access is written where it stays, in its parts: a copy would wait for them.
void RecordDecoder::AddPlainAccess(const Plan& plan, const PlainAccess& plain, Words at, std::uint64_t round,
                                   MemoryAccess& access) {
  const RecordSlot& form = plan.group->slots()[plain.slot];
  const PlainSlot& slot = plan.slots[plain.slot];
  switch (form.form) {
    case RecordSlot::kFixed:
      access.base = plain.base;
      access.stride = slot.stride;
      return;
    case RecordSlot::kStride:
      access.base = plain.base + at[0];
      access.stride = slot.stride;
      return;
    case RecordSlot::kInLoop:
      return AddLoopAccess(plain, SlotInLoop(plan.group->loop_number(), slot.in_loop), round, access);
    default: break;
  }
  if (form.IsNear(at)) return AddNear(plain.at, exec::NearLanes::At(form, at), plain.add, access);
  if (!form.HasLanes(at)) {
    const bool found = form.form == RecordSlot::kFound;
    const std::uint64_t base = plain.base + at[found ? 1 : 0];
    const std::int64_t* const pattern = found ? reinterpret_cast<const std::int64_t*>(at[0]) : slot.pattern;
    if (pattern != nullptr) return AddPattern(base, pattern, plain.at, access);
    access.base = base;
    access.stride = slot.stride;
    return;
  }
  if (plain.add == 0) return AddShape(plain.at, at + 1, access);
  std::array<std::uint64_t, kWarpSize> lanes;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) lanes[lane] = at[1 + lane] + plain.add;
  AddShape(plain.at, lanes.data(), access);
}

void RecordDecoder::AddPattern(std::uint64_t base, const std::int64_t* pattern, std::uint32_t at,
                               MemoryAccess& access) {
  if (const std::int32_t stride = KnownPattern(pattern); stride != MemoryAccess::kScattered) {
    access.base = base;
    access.stride = stride;
    return;
  }
  std::array<std::uint64_t, kWarpSize> lanes;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) lanes[lane] = base + static_cast<std::uint64_t>(pattern[lane]);
  AddShape(at, lanes.data(), access);
}

/// How the lanes of the access's mask lie.
void RecordDecoder::AddShape(std::uint32_t at, const std::uint64_t* lanes, MemoryAccess& access) {
  if (!FindStride(lanes, access) && !FindPattern(at, lanes, access)) AddLanes(lanes, access);
}

/// The words of a slot that move with its accesses.
void RecordDecoder::MarkSite(const RecordSlot& slot, Words at, std::uint32_t mask, std::uint16_t site) {
  if (site == RecordSites::kFixed || site_numbers_ == nullptr || !slot.has_words()) return;
  std::uint16_t* const numbers = site_numbers_ + (at - words_);
  static_assert(RecordSites::kFixed == 0);
  if (!slot.HasLanes(at)) {
    numbers[slot.plain_form() == RecordSlot::kFound ? 1 : 0] = site;
    return;
  }
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
    numbers[1 + lane] = static_cast<std::uint16_t>(site * (mask >> lane & 1));
}

// ---------------------------------------------------------------------------------------------------------------------
// Loops
// ---------------------------------------------------------------------------------------------------------------------

/// Records that begin in the middle have no loop yet: everything lies at 0.
RecordDecoder::LoopSlot& RecordDecoder::SlotInLoop(std::uint32_t loop, std::uint32_t slot) {
  if (loops_.size() <= loop) loops_.resize(loop + 1);
  std::vector<LoopSlot>& slots = loops_[loop].slots;
  if (slots.size() <= slot) slots.resize(slot + 1);
  loops_[loop].count = static_cast<std::uint32_t>(slots.size());
  return slots[slot];
}

RecordDecoder::Words RecordDecoder::BeginLoop(const Plan& plan, std::uint32_t mask, Words at) {
  const std::span<const RecordSlot> forms = plan.group->slots();
  if (!forms.empty()) SlotInLoop(plan.group->loop_number(), static_cast<std::uint32_t>(forms.size() - 1));
  Loop& loop = loops_[plan.group->loop_number()];
  loop.group = plan.group;
  loop.at = at;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    BeginSlot(forms[i], plan.slots[i], mask, at, loop.slots[i]);
    at += forms[i].WordsAt(at);
  }
  return at;
}

void RecordDecoder::BeginSlot(const RecordSlot& form, const PlainSlot& plain, std::uint32_t mask, Words at,
                              LoopSlot& slot) {
  slot.step = form.StepAt(at);
  slot.mask = mask;
  slot.form = &form;
  slot.at = at;
  slot.base = form.base;
  slot.stride = plain.stride;
  slot.pattern = nullptr;
  if (!form.has_words()) return;
  if (form.IsNear(at)) return TakeLoopNear(exec::NearLanes::At(form, at), mask, slot);
  if (form.HasLanes(at)) {
    std::copy_n(at + 1, kWarpSize, slot.lanes.begin());
    return TakeLoopLanes(mask, slot);
  }
  const bool found = form.plain_form() == RecordSlot::kFound;
  slot.base += at[found ? 1 : 0];
  slot.pattern = found ? reinterpret_cast<const std::int64_t*>(at[0]) : plain.pattern;
  if (slot.pattern != nullptr) slot.stride = KnownPattern(slot.pattern);
}

/// TakeLoopLanes for lanes that are told as NearLanes; these mostly have no stride.
void RecordDecoder::TakeLoopNear(const exec::NearLanes& lanes, std::uint32_t mask, LoopSlot& slot) {
  const auto* const end = reinterpret_cast<const std::uint32_t*>(words_end_);
  LanePattern pattern;
  if (lanes.mask == mask && lanes.count > 2 && trace_->patterns.size() < kMostPatterns &&
      lanes.distances[1] - lanes.distances[0] != lanes.distances[2] - lanes.distances[1] &&
      PatternOfDistances(mask, lanes.distances, end, lanes.unit, pattern)) {
    slot.base = lanes.low;
    slot.stride = MemoryAccess::kFirstPattern + static_cast<std::int32_t>(trace_->patterns.size());
    trace_->patterns.push_back(pattern);
    return;
  }
  lanes.Expand(slot.lanes.data());
  TakeLoopLanes(mask, slot);
}

/// A stride, or a pattern of the trace: a loop mostly has several rounds.
void RecordDecoder::TakeLoopLanes(std::uint32_t mask, LoopSlot& slot) {
  slot.base = 0;
  slot.stride = MemoryAccess::kScattered;
  if (mask == 0) return;
  const std::uint64_t* const lanes = slot.lanes.data();
  MemoryAccess access{.mask = mask};
  if (FindStride(lanes, access)) {
    slot.base = access.base;
    slot.stride = access.stride;
    return;
  }
  LanePattern pattern{};
  if (trace_->patterns.size() >= kMostPatterns || !PatternOf(mask, lanes, pattern)) return;
  slot.base = lanes[std::countr_zero(mask)];
  slot.stride = MemoryAccess::kFirstPattern + static_cast<std::int32_t>(trace_->patterns.size());
  trace_->patterns.push_back(pattern);
}

/// The access's mask is set.
void RecordDecoder::AddLoopAccess(const PlainAccess& plain, const LoopSlot& slot, std::uint64_t round,
                                  MemoryAccess& access) {
  access.base = plain.base + slot.base + round * slot.step;
  access.stride = slot.stride;
  if (slot.stride != MemoryAccess::kScattered) return;
  std::array<std::uint64_t, kWarpSize> lanes;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
    lanes[lane] =
        access.base + (slot.pattern == nullptr ? slot.lanes[lane] : static_cast<std::uint64_t>(slot.pattern[lane]));
  AddShape(plain.at, lanes.data(), access);
}

}  // namespace gridloom::trace
