#include "sim/exec/records.h"

namespace gridloom::exec {

const std::uint64_t* RecordReader::addresses() {
  if (header_.kind == RecordKind::kLanes) return payload_;
  const auto* const offsets = header_.kind == RecordKind::kPattern ? pattern() : nullptr;
  const std::uint64_t first = base();
  const auto step = static_cast<std::uint64_t>(stride());
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    expanded_[lane] = first + (offsets ? static_cast<std::uint64_t>(offsets[lane]) : step * lane);
  }
  return expanded_.data();
}

}  // namespace gridloom::exec
