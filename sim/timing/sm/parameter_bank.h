// When the parameters of launches are at an SM. Each launch has its own in the constant bank, which no SM has seen
// before: the first warp that reads them on an SM brings them from L2, and the others wait with it.
#pragma once

#include <array>
#include <cstdint>

#include "sim/timing/cycle.h"
#include "sim/timing/state_walk.h"

namespace gridloom::timing {

class ParameterBank {
 public:
  /// `latency`: from L2.
  explicit ParameterBank(Cycle latency) : latency_(latency) {}

  /// From when on they can be read there.
  Cycle Read(Cycle now, std::uint32_t launch) {
    for (const Entry& entry : entries_) {
      if (entry.is_used && entry.launch == launch) return entry.there;
    }
    entries_[next_] = {.there = now + latency_, .launch = launch, .is_used = true};
    const Cycle there = entries_[next_].there;
    next_ = (next_ + 1) % entries_.size();
    return there;
  }

  void Walk(StateWalk& walk) {
    walk.Word(next_);
    for (Entry& entry : entries_) {
      walk.Word(std::uint64_t{entry.launch} << 1 | std::uint64_t{entry.is_used});
      walk.NotBefore(entry.there);
    }
  }

 private:
  struct Entry {
    Cycle there = 0;
    std::uint32_t launch = 0;
    bool is_used = false;
  };
  static constexpr std::size_t kLaunches = 8;  // whose parameters stay
  const Cycle latency_;
  std::array<Entry, kLaunches> entries_{};  // the oldest one goes first
  std::size_t next_ = 0;
};

}  // namespace gridloom::timing
