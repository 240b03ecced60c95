// The TLB of an SM: which pages' translations it knows, and from when on.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/state_walk.h"

namespace gridloom::timing {

/// Sets with true LRU. A page that is not there is walked for in a fixed time, however many walks there are; accesses
/// to a page whose walk is on its way wait for that.
class Tlb {
 public:
  Tlb() = default;
  /// `entries`: 0 = none, every translation is known at once; else a multiple of `ways`. `page_bytes`: a power of two,
  /// 128 at least.
  Tlb(std::uint32_t entries, std::uint32_t ways, std::uint64_t page_bytes, Cycle miss_cycles);

  bool present() const { return sets_ != 0; }

  struct Translation {
    bool hit = false;  ///< the page was there, or on its way
    Cycle ready = 0;   ///< `now`, or when the walk is done
  };
  /// The translation of a line (address / 128) that is wanted at `now`; times never fall. Only if present().
  Translation Translate(Cycle now, std::uint64_t line);

  void Walk(StateWalk& walk) {
    for (Entry& entry : entries_) {
      walk.Word(entry.page);
      walk.NotBefore(entry.ready);
    }
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t page = kFree;
    Cycle ready = 0;
  };

  std::uint32_t sets_ = 0, ways_ = 0;
  unsigned page_shift_ = 0;  // of a line
  Cycle miss_cycles_ = 0;
  std::vector<Entry> entries_;  // by set; within it, the one used last first
};

}  // namespace gridloom::timing
