// Finds out that a device does the same over and over, as one does on which kernels wait in loops, and lets it go on so
// many times at once.
#pragma once

#include <functional>

#include "sim/timing/parameters.h"
#include "sim/timing/state_walk.h"

namespace gridloom::timing {

/// A component does next what its state says (StateWalk), and so does the device. So if it was in the same state
/// `period` cycles ago, it comes to it again `period` cycles later, and has counted as much meanwhile. What is kept of
/// a warp in a loop of equal turns is how many are left, which says nothing about the next ones as long as there are
/// some. Only at cycles that clocks, windows and what takes turns with the cycle do not tell apart: a multiple of
/// `step` apart.
class Recurrence {
 public:
  using WalkDevice = std::function<void(StateWalk& walk)>;

  Recurrence(const Parameters& parameters, Cycle window);

  /// Nothing is known of the device any more.
  void Forget() {
    known_ = false;
    most_looks_ = kFirstLooks;
  }

  /// Looks at the device, whose cycles before `now` have been simulated. Answers how many cycles ago it was in the
  /// state in which it is, if that is known, else 0.
  Cycle Look(Cycle now, const WalkDevice& walk);
  /// How many more such periods it can be moved on, after one was found.
  std::uint64_t most_times() const;
  /// Moves the device on by so many periods, at most as many.
  void Move(Cycle now, std::uint64_t times, const WalkDevice& walk);

 private:
  StateWalk::Clocks At(Cycle cycle) const { return {.sm = cycle, .l2 = parameters_.sm_to_l2.Forward(cycle)}; }
  void Remember(Cycle now, const WalkDevice& walk);

  static constexpr std::uint64_t kFirstLooks = 8, kLongestPause = 1024;
  const Parameters& parameters_;
  const Cycle step_;
  bool known_ = false;
  StateImage earlier_, later_;
  std::uint64_t looks_ = 0, most_looks_ = kFirstLooks;  // since earlier_; until another state takes its place
  std::uint64_t pause_ = 0, next_pause_ = 1;            // looks that are left out, after a state that is not shown
};

}  // namespace gridloom::timing
