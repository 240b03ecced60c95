#include "sim/timing/memory/tlb.h"

#include <algorithm>
#include <bit>

namespace gridloom::timing {

Tlb::Tlb(std::uint32_t entries, std::uint32_t ways, std::uint64_t page_bytes, Cycle miss_cycles)
    : sets_(entries / ways),
      ways_(ways),
      page_shift_(static_cast<unsigned>(std::countr_zero(page_bytes / 128))),
      miss_cycles_(miss_cycles),
      entries_(entries) {}

Tlb::Translation Tlb::Translate(Cycle now, std::uint64_t line) {
  const std::uint64_t page = line >> page_shift_;
  // Mixes in higher bits, so that arrays a power of two apart do not fall on one set.
  const auto set = entries_.begin() + static_cast<std::ptrdiff_t>((page ^ (page >> 7) ^ (page >> 15)) % sets_ * ways_);
  const auto end = set + ways_;
  const auto found = std::find_if(set, end, [&](const Entry& entry) { return entry.page == page; });
  const bool hit = found != end;
  std::rotate(set, hit ? found : end - 1, hit ? found + 1 : end);
  if (!hit) *set = {.page = page, .ready = now + miss_cycles_};
  return {.hit = hit, .ready = std::max(now, set->ready)};
}

}  // namespace gridloom::timing
