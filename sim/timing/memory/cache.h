// Tags of a sectored cache with true LRU: which sectors of which lines are there. No timing.
#pragma once

#include <cstdint>
#include <vector>

namespace gridloom::timing {

/// One line of 128 bytes.
struct CacheLine {
  std::uint8_t valid = 0;  ///< mask of sectors
  std::uint8_t dirty = 0;
};

/// Lines are named by address / 128. An empty cache (0 bytes) holds nothing and must not be asked.
class Cache {
 public:
  Cache() = default;
  Cache(std::uint32_t size_bytes, std::uint32_t ways);

  /// The line, or null. Does not count as a use.
  CacheLine* Find(std::uint64_t line);
  /// Marks a line that Find returned as used last.
  void Touch(const CacheLine* line) { used_[static_cast<std::size_t>(line - lines_.data())] = ++clock_; }

  struct Victim {
    std::uint64_t line = 0;
    CacheLine state;  ///< valid 0: nothing was evicted
  };
  /// Puts a line that is not there, with no sector valid, in place of the least recently used of its set, as used last.
  CacheLine& Insert(std::uint64_t line, Victim& victim);

 private:
  std::size_t SetOf(std::uint64_t line) const;

  static constexpr std::uint64_t kNoLine = ~std::uint64_t{0};
  std::uint32_t sets_ = 0, ways_ = 0;
  std::vector<std::uint64_t> tags_;  // by set and way, kNoLine: free
  std::vector<CacheLine> lines_;
  std::vector<std::uint64_t> used_;
  std::uint64_t clock_ = 0;
};

}  // namespace gridloom::timing
