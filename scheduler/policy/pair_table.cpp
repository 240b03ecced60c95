#include "scheduler/policy/pair_table.h"

#include <algorithm>
#include <iterator>

namespace gridloom::policy {
namespace {

/// A kernel whose time was too short for the clock is as fast as if it had taken one unit.
double SpeedOf(double time) { return 1 / std::max(time, 1.0); }

}  // namespace

PairTable::PairTable(std::uint32_t sms, std::array<double, 2> alone) : sms_(sms) {
  for (std::size_t side = 0; side < 2; ++side) speeds_[side] = {{0, 0.0}, {sms, SpeedOf(alone[side])}};
}

void PairTable::Expect(std::size_t side, std::uint32_t sms, double time) { expected_[side][sms] = SpeedOf(time); }

void PairTable::Measured(std::uint32_t first, std::array<double, 2> times) {
  points_[first] = times;
  speeds_[0][first] = SpeedOf(times[0]);
  speeds_[1][sms_ - first] = SpeedOf(times[1]);
}

/// Linear between the nearest numbers of multiprocessors for which it is known. An expectation gives the shape between them: it is scaled
/// by what was measured at both.
double PairTable::Speed(std::size_t side, std::uint32_t sms) const {
  const auto above = speeds_[side].lower_bound(sms);
  if (above->first == sms) return above->second;
  const auto below = std::prev(above);
  const double part = static_cast<double>(sms - below->first) / (above->first - below->first);
  const auto& expected = expected_[side];
  const auto shape = expected.find(sms), low = expected.find(below->first), high = expected.find(above->first);
  if (shape != expected.end() && high != expected.end()) {
    const double at_high = above->second / high->second;
    const double at_low = low != expected.end() && below->first != 0 ? below->second / low->second : at_high;
    return shape->second * (at_low + part * (at_high - at_low));
  }
  return below->second + part * (above->second - below->second);
}

std::uint32_t PairTable::Choose() const {
  std::uint32_t best = 1;
  double fastest = -1;
  for (std::uint32_t first = 1; first < sms_; ++first) {
    const double slower = std::min(Speed(0, first), Speed(1, sms_ - first));
    if (slower <= fastest) continue;
    best = first;
    fastest = slower;
  }
  return best;
}

double PairTable::StepTime(std::uint32_t first) const { return 1 / std::max(std::min(Speed(0, first), Speed(1, sms_ - first)), 1e-300); }

}  // namespace gridloom::policy
