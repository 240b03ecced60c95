#include "sim/hardware/dtbl/group_table.h"

#include <algorithm>

#include "rewriter/support/check.h"

namespace gridloom::hardware {

std::optional<std::uint32_t> GroupTable::Take(std::uint64_t hardware_thread) {
  const auto entry = static_cast<std::uint32_t>(hardware_thread % taken_.size());
  if (taken_[entry]) return std::nullopt;
  taken_[entry] = true;
  most_ = std::max(most_, ++count_);
  return entry;
}

void GroupTable::Free(std::uint32_t entry) {
  GL_CHECK(taken_[entry], "an entry of the aggregated group table is freed that nobody has");
  taken_[entry] = false;
  --count_;
}

}  // namespace gridloom::hardware
