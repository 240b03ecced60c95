// Simulated time: integer cycles, and exact conversion between clocks.
#pragma once

#include <cstdint>
#include <numeric>

#include "sim/timing/divisor.h"

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

  Cycle Forward(Cycle from) const { return Scale(from, to_.value(), from_); }
  Cycle Back(Cycle to) const { return Scale(to, from_.value(), to_); }

  /// The `from` cycle during which `to` cycle begins.
  Cycle During(Cycle to) const { return to == kNever ? kNever : to_.value() == from_.value() ? to : to_.ExactQuotient(to * from_.value()); }

 private:
  static Cycle Scale(Cycle cycle, std::uint64_t by, const Divisor& per) {
    if (by == per.value() || cycle == kNever) return cycle;
    return per.ExactQuotient(cycle * by + per.value() - 1);
  }
  Divisor from_, to_;
};

}  // namespace gridloom::timing
