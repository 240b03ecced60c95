#include "scheduler/policy/share_table.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace gridloom::policy {
namespace {

/// A kernel whose time was too short for the clock is as fast as if it had taken one unit.
double SpeedOf(double time) { return 1 / std::max(time, 1.0); }

}  // namespace

ShareTable::ShareTable(std::uint32_t sms, const std::vector<double>& alone)
    : sms_(sms), speeds_(alone.size()), expected_(alone.size()) {
  for (std::size_t kernel = 0; kernel < alone.size(); ++kernel)
    speeds_[kernel] = {{0, 0.0}, {sms, SpeedOf(alone[kernel])}};
}

void ShareTable::Expect(std::size_t kernel, std::uint32_t sms, double time) {
  if (time > 0) expected_[kernel][sms] = 1 / time;
}

void ShareTable::Measured(const std::vector<std::uint32_t>& shares, const std::vector<double>& times) {
  points_[shares] = times;
  ++runs_;
  for (std::size_t kernel = 0; kernel < speeds_.size(); ++kernel)
    speeds_[kernel][shares[kernel]] = SpeedOf(times[kernel]);
}

/// Linear between the nearest numbers of multiprocessors for which it is known. An expectation gives the shape between
/// them: it is scaled by what was measured at both.
double ShareTable::Speed(std::size_t kernel, std::uint32_t sms) const {
  const auto above = speeds_[kernel].lower_bound(sms);
  if (above->first == sms) return above->second;
  const auto below = std::prev(above);
  const double part = static_cast<double>(sms - below->first) / (above->first - below->first);
  const auto& expected = expected_[kernel];
  const auto shape = expected.find(sms), low = expected.find(below->first), high = expected.find(above->first);
  if (shape != expected.end() && high != expected.end()) {
    const double at_high = above->second / high->second;
    const double at_low = low != expected.end() && below->first != 0 ? below->second / low->second : at_high;
    return shape->second * (at_low + part * (at_high - at_low));
  }
  return below->second + part * (above->second - below->second);
}

/// From the last kernel to the first: how fast the slowest of it and those behind it can be with n multiprocessors, for
/// every n.
std::vector<std::uint32_t> ShareTable::Choose() const {
  const std::size_t kernels = speeds_.size();
  std::vector<double> slowest(sms_ + 1);
  for (std::uint32_t n = 0; n <= sms_; ++n) slowest[n] = Speed(kernels - 1, n);
  std::vector<std::vector<std::uint32_t>> own(kernels, std::vector<std::uint32_t>(sms_ + 1));
  for (std::size_t kernel = kernels - 1; kernel-- > 0;) {
    const auto behind = static_cast<std::uint32_t>(kernels - 1 - kernel);  // kernels that need one each
    std::vector<double> better(sms_ + 1, -1);
    for (std::uint32_t first = 1; first + behind <= sms_; ++first) {
      const double speed = Speed(kernel, first);
      for (std::uint32_t n = first + behind; n <= sms_; ++n) {
        const double slower = std::min(speed, slowest[n - first]);
        if (slower <= better[n]) continue;
        better[n] = slower;
        own[kernel][n] = first;
      }
    }
    slowest = std::move(better);
  }
  std::vector<std::uint32_t> shares;
  std::uint32_t left = sms_;
  for (std::size_t kernel = 0; kernel + 1 < kernels; ++kernel) {
    shares.push_back(own[kernel][left]);
    left -= shares.back();
  }
  shares.push_back(left);
  return shares;
}

double ShareTable::StepTime(const std::vector<std::uint32_t>& shares) const {
  double slowest = std::numeric_limits<double>::infinity();
  for (std::size_t kernel = 0; kernel < speeds_.size(); ++kernel)
    slowest = std::min(slowest, Speed(kernel, shares[kernel]));
  return 1 / std::max(slowest, 1e-300);
}

}  // namespace gridloom::policy
