// Simulated time: integer cycles, and exact conversion between clocks.
#pragma once

#include <cstdint>
#include <numeric>

namespace gridloom::timing {

/// Cycles of some clock since the simulation began.
using Cycle = std::uint64_t;

/// Later than anything that happens; sums with latencies do not overflow.
inline constexpr Cycle kNever = ~Cycle{0} >> 1;

/// Two clocks that both began at time 0. A cycle of one converts to the first cycle of the other that begins at the same time or
/// later, without rounding error however long the simulation.
class ClockRatio {
 public:
  ClockRatio() = default;
  ClockRatio(std::uint32_t from_mhz, std::uint32_t to_mhz)
      : from_(from_mhz / std::gcd(from_mhz, to_mhz)), to_(to_mhz / std::gcd(from_mhz, to_mhz)) {}

  Cycle Forward(Cycle from) const { return Scale(from, to_, from_); }
  Cycle Back(Cycle to) const { return Scale(to, from_, to_); }

  /// The `from` cycle during which `to` cycle begins.
  Cycle During(Cycle to) const { return to == kNever ? kNever : to_ == from_ ? to : to * from_ / to_; }

 private:
  static Cycle Scale(Cycle cycle, std::uint64_t by, std::uint64_t per) {
    if (by == per || cycle == kNever) return cycle;
    return (cycle * by + per - 1) / per;
  }
  std::uint64_t from_ = 1, to_ = 1;
};

}  // namespace gridloom::timing
