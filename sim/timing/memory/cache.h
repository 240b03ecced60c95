// Tags of a sectored cache with true LRU: which sectors of which lines are there. No timing.
#pragma once

#include <cstdint>

#include "sim/timing/aligned.h"
#include "sim/timing/divisor.h"

namespace gridloom::timing {

/// One line of 128 bytes.
struct CacheLine {
  static constexpr std::uint64_t kFree = (std::uint64_t{1} << 56) - 1;
  std::uint64_t valid : 4 = 0;  ///< mask of sectors
  std::uint64_t dirty : 4 = 0;
  std::uint64_t line : 56 = kFree;  ///< address / 128
};
static_assert(sizeof(CacheLine) == 8);

/// Lines are named by address / 128, below 2^56 - 1. An empty cache (0 bytes) holds nothing and must not be asked.
/// Lines stay where they are until they are evicted.
class Cache {
 public:
  Cache() = default;
  Cache(std::uint32_t size_bytes, std::uint32_t ways);

  /// The line, or null. Does not count as a use. Its `dirty` is set by MarkDirty.
  CacheLine* Find(std::uint64_t line);
  /// Marks a line that Find returned as used last.
  void Touch(const CacheLine* line);

  /// The place of a line that Find returned, below the number of places.
  std::uint32_t PlaceOf(const CacheLine& line) const { return static_cast<std::uint32_t>(&line - lines_.data()); }

  /// The host may fetch what Find needs for the line.
  void Prefetch(std::uint64_t line) const { __builtin_prefetch(&guides_[SetOf(line) * guide_bytes_]); }

  struct Victim {
    std::uint64_t line = 0;
    std::uint8_t dirty = 0;  ///< its dirty sectors; 0: nothing is lost
  };
  /// The line; if it is not there, puts it, with no sector valid, in place of the least recently used of its set, as
  /// used last.
  CacheLine& FindOrInsert(std::uint64_t line, Victim& victim);
  /// Forgets all lines; `lost` is told of each that is dirty.
  template <typename Lost>
  void DropAll(const Lost& lost) {
    for (CacheLine& line : lines_) {
      if (line.dirty != 0) lost(Victim{.line = line.line, .dirty = static_cast<std::uint8_t>(line.dirty)});
    }
    Clear();
  }
  void MarkDirty(CacheLine& line, std::uint8_t sectors) {
    line.dirty |= sectors;
    has_been_dirty_ = true;
  }

 private:
  void Clear();
  std::size_t SetOf(std::uint64_t line) const;
  CacheLine* FindIn(std::size_t set, std::uint16_t print, std::uint64_t line);
  /// The parts of a set's guide.
  std::uint16_t* PrintsOf(std::size_t set) { return reinterpret_cast<std::uint16_t*>(&guides_[set * guide_bytes_]); }
  std::uint8_t* UsesOf(std::size_t set) { return &guides_[set * guide_bytes_ + stride_ * sizeof(std::uint16_t)]; }
  void Use(std::size_t set, std::uint32_t way);

  std::uint32_t ways_ = 0, stride_ = 0;  // of a set: its ways, and those that its place in the arrays holds
  bool has_been_dirty_ = false;          // else, lines that go need not be looked at
  std::size_t guide_bytes_ = 0;
  Divisor sets_, ways_per_set_;
  AlignedVector<CacheLine> lines_;  // by set and way; behind the ways, free ones that no request finds
  // By set, so that a search touches one line of the host's caches: 16 bits of a hash of each line, when each was used
  // last by the set's clock (0: never), and the clock.
  AlignedVector<std::uint8_t> guides_;
};

}  // namespace gridloom::timing
