#include "sim/exec/records.h"

namespace gridloom::exec {
namespace {

constexpr std::size_t PayloadWords(RecordKind kind) {
  switch (kind) {
    case RecordKind::kBlock: return 0;
    case RecordKind::kUniform: return 1;
    case RecordKind::kAffine:
    case RecordKind::kPattern: return 2;
    case RecordKind::kLanes: return kWarpSize;
  }
  return 0;
}

}  // namespace

bool RecordReader::Next() {
  if (next_ >= words_.size()) return false;
  header_ = RecordHeader::Unpack(words_[next_]);
  payload_ = words_.data() + next_ + 1;
  next_ += 1 + PayloadWords(header_.kind);
  return next_ <= words_.size();
}

const std::uint64_t* RecordReader::addresses() {
  if (header_.kind == RecordKind::kLanes) return payload_;
  const auto* const pattern = header_.kind == RecordKind::kPattern ? reinterpret_cast<const std::uint64_t*>(payload_[1]) : nullptr;
  const auto step = static_cast<std::uint64_t>(stride());
  for (unsigned lane = 0; lane < kWarpSize; ++lane) expanded_[lane] = payload_[0] + (pattern ? pattern[lane] : step * lane);
  return expanded_.data();
}

}  // namespace gridloom::exec
