// How the units of a grid are dealt to the threads that run it: each has a part of its own, one after the other, and
// takes from the end of another's when that is done. So what neighbouring CTAs, or the same CTAs of the next launch,
// read and write stays in one core's cache. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace gridloom::exec {

/// Units [first, end), in linear order.
struct UnitSpan {
  std::uint64_t first = 0, end = 0;
};

class UnitShares {
 public:
  /// The largest grid that can be dealt: two numbers of units are kept in one word.
  static constexpr std::uint64_t kMostUnits = UINT32_MAX;

  /// Deals units to `threads` threads. Before others know of it.
  void Deal(UnitSpan units, unsigned threads) {
    shares_ = std::make_unique<Share[]>(threads);
    threads_ = threads;
    const std::uint64_t count = units.end - units.first;
    for (unsigned i = 0; i < threads; ++i)
      shares_[i].units.store(Packed({units.first + count * i / threads, units.first + count * (i + 1) / threads}),
                             std::memory_order_relaxed);
  }
  bool dealt() const { return shares_ != nullptr; }

  /// The next units for thread `thread`, at most `most` of them; false: all have been taken. Pieces shrink towards the
  /// end of a part, so that all threads end together.
  bool Take(unsigned thread, std::uint64_t most, UnitSpan& taken) {
    for (unsigned i = 0; i < threads_; ++i)
      if (TakeFrom(shares_[(thread + i) % threads_].units, i == 0, most, taken)) return true;
    return false;
  }

 private:
  struct alignas(64) Share {
    std::atomic<std::uint64_t> units{0};  ///< that are left: the first, and the end in the upper half
  };
  static std::uint64_t Packed(UnitSpan span) { return span.first | span.end << 32; }
  static UnitSpan Unpacked(std::uint64_t word) { return {word & UINT32_MAX, word >> 32}; }

  static bool TakeFrom(std::atomic<std::uint64_t>& share, bool own, std::uint64_t most, UnitSpan& taken) {
    std::uint64_t word = share.load(std::memory_order_relaxed);
    for (;;) {
      const UnitSpan left = Unpacked(word);
      if (left.first >= left.end) return false;
      const std::uint64_t count = std::clamp<std::uint64_t>((left.end - left.first) / 4, 1, most);
      const std::uint64_t middle = own ? left.first + count : left.end - count;
      const UnitSpan front{left.first, middle}, back{middle, left.end};
      if (share.compare_exchange_weak(word, Packed(own ? back : front), std::memory_order_relaxed)) {
        taken = own ? front : back;
        return true;
      }
    }
  }

  std::unique_ptr<Share[]> shares_;
  unsigned threads_ = 0;
};

}  // namespace gridloom::exec
