#include "sim/timing/recurrence.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/timing/sm/scheduler.h"

namespace gridloom::timing {
namespace {

/// Cycles after which windows, wheels, the schedulers' turns, L2's clock and the turns of a partition's slices are
/// where they were.
Cycle StepOf(const Parameters& parameters, Cycle window) {
  const sim::TimingSpec::Clock& clock = parameters.timing().clock;
  const Cycle divisor = std::gcd(clock.sm_mhz, clock.l2_mhz), sm = clock.sm_mhz / divisor, l2 = clock.l2_mhz / divisor;
  const Cycle slices = parameters.slices_per_partition();
  const Cycle clocks = sm * (slices / std::gcd(slices, l2));
  return std::lcm(std::lcm(window, WakeWheel::kSlots), std::lcm(clocks, Cycle{parameters.timing().sm.schedulers}));
}

}  // namespace

Recurrence::Recurrence(const Parameters& parameters, Cycle window)
    : parameters_(parameters), step_(StepOf(parameters, window)) {}

/// A state that comes again is found however long it takes until the device comes into such, and until it comes again:
/// what is remembered is given up ever more rarely.
Cycle Recurrence::Look(Cycle now, const WalkDevice& walk) {
  if (!known_ && pause_ != 0) {
    --pause_;
    return 0;
  }
  if (!known_) Remember(now, walk);
  if (!known_ || (now - earlier_.at) % step_ != 0 || now == earlier_.at) return 0;
  later_ = {};
  later_.at = now;
  StateWalk compare = StateWalk::Compare(At(now), earlier_, later_);
  walk(compare);
  if (compare.succeeded()) return now - earlier_.at;
  if (++looks_ < most_looks_) return 0;
  most_looks_ *= 2;
  Remember(now, walk);
  return 0;
}

void Recurrence::Remember(Cycle now, const WalkDevice& walk) {
  earlier_ = {};
  earlier_.at = now;
  looks_ = 0;
  StateWalk record = StateWalk::Record(At(now), earlier_);
  walk(record);
  known_ = record.succeeded();
  if (!known_) pause_ = next_pause_;
  next_pause_ = known_ ? 1 : std::min(2 * next_pause_, kLongestPause);
}

/// Behind each turn there has to be another one.
std::uint64_t Recurrence::most_times() const {
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  bool any = false;
  for (std::size_t i = 0; i < later_.turns.size(); ++i) {
    const std::uint64_t made = earlier_.turns[i] - later_.turns[i];
    if (made == 0) continue;
    any = true;
    most = std::min(most, later_.turns[i] == 0 ? 0 : (later_.turns[i] - 1) / made);
  }
  return any ? most : 0;
}

void Recurrence::Move(Cycle now, std::uint64_t times, const WalkDevice& walk) {
  const Cycle by = times * (now - earlier_.at);
  StateWalk move = StateWalk::Move(At(by), times, earlier_, later_);
  walk(move);
  Remember(now + by, walk);
}

}  // namespace gridloom::timing
