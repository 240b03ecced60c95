#include "sim/exec/contract/records.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/exec/contract/recorded_event.h"

namespace gridloom::exec {

void NearLanes::Expand(std::uint64_t* lanes) const {
  std::fill_n(lanes, kWarpSize, 0);
  const std::uint32_t* next = distances;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1)
    lanes[std::countr_zero(rest)] = low + std::uint64_t{unit} * *next++;
}

void RecordLoops::Begin(const RecordGroup& group, const std::uint64_t* at) {
  if (slots_.size() <= group.loop_number()) slots_.resize(group.loop_number() + 1);
  std::vector<Slot>& slots = slots_[group.loop_number()];
  slots.clear();
  for (const RecordSlot& form : group.slots()) {
    Slot& slot = slots.emplace_back();
    slot.step = form.StepAt(at);
    const RecordSlot::Form plain = form.plain_form();
    if (form.has_words() && form.HasLanes(at)) {
      slot.kind = RecordKind::kLanes;
      std::copy_n(at + 1, kWarpSize, slot.lanes.begin());
    } else if (form.IsNear(at)) {
      slot.kind = RecordKind::kLanes;
      NearLanes::At(form, at).Expand(slot.lanes.data());
    } else if (plain == RecordSlot::kFound || plain == RecordSlot::kPattern) {
      slot.kind = RecordKind::kPattern;
      slot.base = plain == RecordSlot::kFound ? at[1] : form.base + at[0];
      slot.pattern =
          plain == RecordSlot::kFound ? reinterpret_cast<const std::int64_t*>(at[0]) : group.pattern(form.lanes);
    } else {
      slot.base = form.base + (form.has_words() ? at[0] : 0);
      slot.stride = form.lanes;
    }
    at += form.WordsAt(at);
  }
}

const RecordLoops::Slot& RecordLoops::At(std::uint32_t loop, std::uint64_t slot) {
  // Records that begin in the middle have no loop yet: everything lies at 0.
  if (slots_.size() <= loop) slots_.resize(loop + 1);
  if (slots_[loop].size() <= slot) slots_[loop].resize(slot + 1);
  return slots_[loop][slot];
}

bool RecordReader::Next() {
  if (group_ != nullptr && access_ < group_->access_count) {
    TakeAccess();
    return true;
  }
  if (group_ != nullptr && rounds_left_ != 0) {
    BeginRound();
    return true;
  }
  group_ = nullptr;
  while (next_ < words_.size() && RecordHeader::Unpack(words_[next_]).kind == kEventRecord)
    next_ += RecordedEvent::kWords;
  if (next_ >= words_.size()) return false;
  const std::uint64_t word = words_[next_];
  header_ = RecordHeader::Unpack(word);
  if (header_.kind == RecordKind::kGroup)
    return Open(reinterpret_cast<const RecordGroup*>(word), ~0u, next_ + 1, false);
  if (header_.kind != RecordKind::kMaskedGroup && header_.kind != RecordKind::kRepeat) {
    ++next_;
    return true;
  }
  if (next_ + 1 >= words_.size()) return false;
  return Open(reinterpret_cast<const RecordGroup*>(words_[next_ + 1]), header_.mask, next_ + 2,
              header_.kind == RecordKind::kRepeat);
}

/// False when not all of its words are there.
bool RecordReader::Open(const RecordGroup* group, std::uint32_t mask, std::size_t at, bool repeats) {
  group_ = group;
  mask_ = mask;
  round_ = 0;
  slot_at_.clear();
  const std::size_t begin = at;
  for (const RecordSlot& slot : group->slots()) {
    slot_at_.push_back(at);
    if (slot.has_words() && at >= words_.size()) return false;
    if (slot.form == RecordSlot::kRounds) round_ = words_[at];
    at += slot.WordsAt(words_.data() + at);
  }
  next_ = at;
  if (at > words_.size()) return false;
  if (group->begins_loop()) {
    loops_.Begin(*group, words_.data() + begin);
    group_ = nullptr;
    return Next();
  }
  rounds_left_ = 1;
  if (repeats) rounds_left_ = std::exchange(round_, 0);
  if (rounds_left_ == 0) {
    group_ = nullptr;
    return Next();
  }
  --round_;
  BeginRound();
  return true;
}

void RecordReader::BeginRound() {
  ++round_;
  --rounds_left_;
  access_ = 0;
  if (group_->block == 0) return TakeAccess();
  header_ = RecordHeader::Unpack(group_->block | mask_);
}

void RecordReader::TakeAccess() {
  const RecordAccess& access = group_->accesses()[access_++];
  const RecordSlot& form = slot();
  header_ = RecordHeader::Unpack(access.header | mask_);
  base_ = access.add;
  stride_ = 0;
  if (form.form == RecordSlot::kInLoop) {
    const RecordLoops::Slot& start = loops_.At(group_->loop_number(), form.base);
    header_.kind = start.kind;
    base_ += start.base + round_ * start.step;
    stride_ = start.stride;
    pattern_ = start.pattern;
    lanes_ = start.lanes.data();
    return;
  }
  const std::uint64_t* const words = words_.data() + slot_at();
  if (form.has_words() && form.HasLanes(words)) {
    header_.kind = RecordKind::kLanes;
    lanes_ = words + 1;
    return;
  }
  if (form.IsNear(words)) {
    header_.kind = RecordKind::kLanes;
    NearLanes::At(form, words).Expand(near_.data());
    lanes_ = near_.data();
    return;
  }
  header_.kind = RecordKind::kAffine;
  base_ += form.base;
  switch (form.plain_form()) {
    case RecordSlot::kFixed: stride_ = form.lanes; return;
    case RecordSlot::kStride:
      base_ += words[0];
      stride_ = form.lanes;
      return;
    case RecordSlot::kPattern:
      base_ += words[0];
      pattern_ = group_->pattern(form.lanes);
      break;
    case RecordSlot::kFound:
      base_ += words[1];
      pattern_ = reinterpret_cast<const std::int64_t*>(words[0]);
      break;
    default: return;
  }
  header_.kind = RecordKind::kPattern;
}

const std::uint64_t* RecordReader::addresses() {
  if (header_.kind == RecordKind::kLanes && base_ == 0) return lanes_;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t more = header_.kind == RecordKind::kLanes     ? lanes_[lane]
                               : header_.kind == RecordKind::kPattern ? static_cast<std::uint64_t>(pattern_[lane])
                                                                      : static_cast<std::uint64_t>(stride_) * lane;
    expanded_[lane] = base_ + more;
  }
  return expanded_.data();
}

}  // namespace gridloom::exec
