// Tags of a sectored cache with true LRU: which sectors of which lines are there. No timing.
#pragma once

#include <cstdint>

#include "sim/timing/aligned.h"

namespace gridloom::timing {

/// One line of 128 bytes. A word, so that a set of eight ways fills a line of the host's caches.
struct CacheLine {
  static constexpr std::uint64_t kFree = (std::uint64_t{1} << 56) - 1;
  std::uint64_t valid : 4 = 0;  ///< mask of sectors
  std::uint64_t dirty : 4 = 0;
  std::uint64_t line : 56 = kFree;  ///< address / 128
};
static_assert(sizeof(CacheLine) == 8);

/// Lines are named by address / 128, below 2^56 - 1. An empty cache (0 bytes) holds nothing and must not be asked. Each function may move
/// the lines of a set: what was returned before is no longer valid.
class Cache {
 public:
  Cache() = default;
  Cache(std::uint32_t size_bytes, std::uint32_t ways);

  /// The line, or null. Does not count as a use, and moves nothing.
  CacheLine* Find(std::uint64_t line);
  /// Marks a line that Find returned as used last; where it is now.
  CacheLine& Touch(CacheLine* line);

  /// The host may fetch the set of the line.
  void Prefetch(std::uint64_t line) const;

  struct Victim {
    std::uint64_t line = 0;
    CacheLine state;  ///< valid 0: nothing was evicted
  };
  /// Puts a line that is not there, with no sector valid, in place of the least recently used of its set, as used last.
  CacheLine& Insert(std::uint64_t line, Victim& victim);

 private:
  std::size_t FirstOf(std::uint64_t line) const;
  CacheLine* SetOf(std::uint64_t line) { return lines_.data() + FirstOf(line); }

  std::uint32_t sets_ = 0, ways_ = 0;
  AlignedVector<CacheLine> lines_;  // by set; within it, the one used last first, free ones behind
};

}  // namespace gridloom::timing
