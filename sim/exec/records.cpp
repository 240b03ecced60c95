#include "sim/exec/records.h"

namespace gridloom::exec {

bool RecordReader::Next() {
  if (in_group()) {
    TakeAccess();
    return true;
  }
  group_ = nullptr;
  if (next_ >= words_.size()) return false;
  const std::uint64_t word = words_[next_];
  header_ = RecordHeader::Unpack(word);
  if (header_.kind == RecordKind::kGroup) return Open(reinterpret_cast<const RecordGroup*>(word), ~0u, next_ + 1);
  if (header_.kind != RecordKind::kMaskedGroup) {
    ++next_;
    return true;
  }
  if (next_ + 1 >= words_.size()) return false;
  return Open(reinterpret_cast<const RecordGroup*>(words_[next_ + 1]), header_.mask, next_ + 2);
}

/// False when not all of its words are there.
bool RecordReader::Open(const RecordGroup* group, std::uint32_t mask, std::size_t at) {
  group_ = group;
  mask_ = mask;
  access_ = 0;
  slot_at_.clear();
  for (const RecordSlot& slot : group->slots()) {
    slot_at_.push_back(at);
    if (slot.form != RecordSlot::kFixed && at >= words_.size()) return false;
    at += slot.WordsAt(words_.data() + at);
  }
  next_ = at;
  if (at > words_.size()) return false;
  if (group->block == 0) {
    TakeAccess();
    return true;
  }
  header_ = RecordHeader::Unpack(group->block | mask);
  return true;
}

void RecordReader::TakeAccess() {
  const RecordAccess& access = group_->accesses()[access_++];
  const RecordSlot& form = slot();
  header_ = RecordHeader::Unpack(access.header | mask_);
  base_ = access.add;
  stride_ = 0;
  const std::uint64_t* const words = words_.data() + slot_at();
  if (form.form != RecordSlot::kFixed && form.HasLanes(words)) {
    header_.kind = RecordKind::kLanes;
    lanes_ = words + 1;
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
