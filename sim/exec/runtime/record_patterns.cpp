#include "sim/exec/runtime/record_patterns.h"

#include <algorithm>
#include <bit>

namespace gridloom::exec {

void RecordPatterns::Reset(std::size_t instructions) {
  // Lane 0 lies at its own address, so that no lanes lie like this one; nor do lanes without lane 0.
  Pattern nothing;
  for (std::size_t lane = 0; lane < kWarpSize; ++lane)
    nothing[lane] = (std::int64_t{1} << 62) + static_cast<std::int64_t>(lane * lane);
  patterns_.clear();
  patterns_.push_back(std::make_unique<const Pattern>(nothing));
  sites_.assign(std::min<std::size_t>(instructions, kRecordSites),
                {.pattern = patterns_.front()->data(), .tries = kTries});
}

std::uint64_t* RecordPatterns::Learn(RecordSite& site, std::uint32_t mask, std::uint64_t* slot) {
  const std::uint64_t* const lanes = slot + 1;
  const Pattern* pattern = Find(mask, lanes);
  const std::uint64_t price = pattern != nullptr ? 1 : kPriceOfNew;
  site.tries -= std::min(site.tries, price);
  if (pattern == nullptr && mask == ~0u && patterns_.size() < kMostPatterns) {
    Pattern made;
    for (std::size_t lane = 0; lane < kWarpSize; ++lane) made[lane] = static_cast<std::int64_t>(lanes[lane] - lanes[0]);
    pattern = patterns_.emplace_back(std::make_unique<const Pattern>(made)).get();
  }
  if (pattern == nullptr) {
    site.scattered = site.tries == 0 && site.pattern == patterns_.front()->data() ? 1 : 0;
    return slot + RecordSlot::kMaxWords;
  }
  site.pattern = pattern->data();
  const auto first = static_cast<std::size_t>(std::countr_zero(mask));
  slot[1] = lanes[first] - static_cast<std::uint64_t>((*pattern)[first]);
  slot[0] = reinterpret_cast<std::uint64_t>(pattern->data());
  return slot + 2;
}

const RecordPatterns::Pattern* RecordPatterns::Find(std::uint32_t mask, const std::uint64_t* lanes) const {
  if (mask == 0) return nullptr;
  const auto first = static_cast<std::size_t>(std::countr_zero(mask));
  for (const auto& pattern : patterns_) {
    bool same = pattern != patterns_.front();
    for (std::uint32_t rest = mask & (mask - 1); same && rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
      same = lanes[lane] - lanes[first] == static_cast<std::uint64_t>((*pattern)[lane] - (*pattern)[first]);
    }
    if (same) return pattern.get();
  }
  return nullptr;
}

}  // namespace gridloom::exec
