// A warp scheduler: which of its warps can issue, and which of them does. Bit i of a mask is the scheduler's warp i.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "sim/device/timing_spec.h"
#include "sim/timing/cycle.h"
#include "sim/timing/ports.h"
#include "sim/timing/state_walk.h"

namespace gridloom::timing {

using WarpMask = std::uint64_t;

/// Warps by the cycle in which they wake: slot `cycle % 64`. Later wakes go round in steps.
class WakeWheel {
 public:
  static constexpr Cycle kSlots = 64;

  /// A warp wakes at `wake`, after `now`; it comes up then, or after 63 cycles to be put in again.
  void Add(Cycle now, Cycle wake, std::uint32_t warp) {
    const std::size_t slot = std::min(wake, now + kSlots - 1) % kSlots;
    slots_[slot] |= WarpMask{1} << warp;
    occupied_ |= std::uint64_t{1} << slot;
  }
  WarpMask Take(Cycle now) {
    const std::size_t slot = now % kSlots;
    if ((occupied_ >> slot & 1) == 0) return 0;
    occupied_ &= ~(std::uint64_t{1} << slot);
    return std::exchange(slots_[slot], 0);
  }
  /// Next cycle after `now` at which a warp comes up.
  Cycle Next(Cycle now) const {
    if (occupied_ == 0) return kNever;
    const Cycle from = now + 1;
    return from + static_cast<Cycle>(std::countr_zero(std::rotr(occupied_, static_cast<int>(from % kSlots))));
  }
  /// Only at cycles that are a multiple of kSlots apart, or the slots mean something else.
  void Walk(StateWalk& walk) const {
    for (const WarpMask slot : slots_) walk.Word(slot);
  }

 private:
  std::array<WarpMask, kSlots> slots_{};
  std::uint64_t occupied_ = 0;
};

/// Warps of a scheduler that count as waiting for memory because gates do not let their next instructions issue, by
/// gate.
struct HeldWarps {
  std::array<WarpMask, Ports::kMostGates> by_gate{};
  WarpMask all() const { return std::accumulate(by_gate.begin(), by_gate.end(), WarpMask{0}, std::bit_or<>()); }
  void LetGo(WarpMask warp) {
    for (WarpMask& mask : by_gate) mask &= ~warp;
  }
};

struct Scheduler {
  WarpMask resident = 0;
  WarpMask ready = 0;   ///< the next instruction could issue but for its pipe
  WarpMask memory = 0;  ///< waiting for data or a fence
  WarpMask barrier = 0;
  WarpMask finished = 0;
  std::array<WarpMask, sim::kPipeCount> by_pipe{};  ///< warps whose next instruction goes to that pipe
  std::array<std::uint64_t, 64> age{};
  WakeWheel wheel;
  std::uint32_t last = 0;  ///< issued last
  WarpMask active = 0;     ///< two_level: the warps that it chooses from

  /// The warp to issue among `eligible`, which is not empty.
  std::uint32_t Pick(sim::WarpOrder order, WarpMask eligible) const {
    switch (order) {
      case sim::WarpOrder::kGreedyThenOldest: return (eligible >> last & 1) != 0 ? last : Oldest(eligible);
      case sim::WarpOrder::kLooseRoundRobin:
      case sim::WarpOrder::kTwoLevel: break;
    }
    return After(last, eligible);
  }
  /// two_level: warps that wait for memory or a barrier leave the active ones, ready ones take their places.
  void Refill(std::uint32_t places) {
    active &= resident & ~memory & ~barrier & ~finished;
    for (WarpMask candidates = ready & ~active;
         candidates != 0 && static_cast<std::uint32_t>(std::popcount(active)) < places;) {
      const WarpMask bit = WarpMask{1} << Oldest(candidates);
      active |= bit;
      candidates &= ~bit;
    }
  }

 private:
  static std::uint32_t After(std::uint32_t warp, WarpMask eligible) {
    const int turn = static_cast<int>((warp + 1) % 64);
    return (static_cast<std::uint32_t>(std::countr_zero(std::rotr(eligible, turn))) +
            static_cast<std::uint32_t>(turn)) %
           64;
  }
  std::uint32_t Oldest(WarpMask eligible) const {
    auto oldest = static_cast<std::uint32_t>(std::countr_zero(eligible));
    for (WarpMask rest = eligible & (eligible - 1); rest != 0; rest &= rest - 1) {
      const auto candidate = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (age[candidate] < age[oldest]) oldest = candidate;
    }
    return oldest;
  }
};

}  // namespace gridloom::timing
