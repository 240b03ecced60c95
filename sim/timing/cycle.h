// Simulated time: integer cycles, and exact conversion between clocks.
#pragma once

#include <cstdint>
#include <numeric>

namespace gridloom::timing {

/// Cycles of some clock since the simulation began.
using Cycle = std::uint64_t;

/// Later than anything that happens; sums with latencies do not overflow.
inline constexpr Cycle kNever = ~Cycle{0} >> 1;

/// Two clocks that both began at time 0. A cycle of one converts to the first cycle of the other that begins at the
/// same time or later, without rounding error for cycles below 2^60 / MHz (2^48, a day and more of simulated time).
class ClockRatio {
 public:
  /// The clocks may differ by less than this.
  static constexpr std::uint32_t kMaxRatio = 16;

  ClockRatio() = default;
  ClockRatio(std::uint32_t from_mhz, std::uint32_t to_mhz) : forward_(to_mhz, from_mhz), back_(from_mhz, to_mhz) {}

  Cycle Forward(Cycle from) const { return forward_.RoundedUp(from); }
  Cycle Back(Cycle to) const { return back_.RoundedUp(to); }

  /// The `from` cycle during which `to` cycle begins.
  Cycle During(Cycle to) const { return back_.RoundedDown(to); }

 private:
  __extension__ using Wide = unsigned __int128;

  /// A multiplication by the ratio `by` / `per` in place of a division. The ratio is kept with 60 bits behind the point
  /// and rounded up, so that a product is too large by less than cycle / 2^60, and the whole part is right while that
  /// is less than 1 / per.
  class Factor {
   public:
    Factor() = default;
    Factor(std::uint32_t by, std::uint32_t per) {
      const std::uint32_t divisor = std::gcd(by, per);
      by /= divisor;
      per /= divisor;
      factor_ = static_cast<std::uint64_t>(((Wide{by} << kFraction) + per - 1) / per);
      to_next_ = static_cast<std::uint64_t>(((Wide{per - 1} << 64) + per - 1) / per);
    }
    Cycle RoundedDown(Cycle cycle) const { return cycle == kNever ? kNever : static_cast<Cycle>(Product(cycle) >> 64); }
    Cycle RoundedUp(Cycle cycle) const {
      return cycle == kNever ? kNever : static_cast<Cycle>((Product(cycle) + to_next_) >> 64);
    }

   private:
    static constexpr unsigned kFraction = 60;
    Wide Product(Cycle cycle) const { return Wide{cycle << (64 - kFraction)} * factor_; }

    std::uint64_t factor_ = std::uint64_t{1} << kFraction;
    std::uint64_t to_next_ = 0;  // 1 - 1 / per, in 2^-64
  };
  Factor forward_, back_;
};

}  // namespace gridloom::timing
