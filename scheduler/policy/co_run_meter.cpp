#include "scheduler/policy/co_run_meter.h"

#include <algorithm>

namespace gridloom::policy {
namespace {

/// A kind has its part of the device when so much of its wave runs. Blocks end in bunches, and one decision replaces
/// them one by one.
constexpr double kMost = 0.5;

}  // namespace

void CoRunMeter::Start(const CoSchedule& schedule) {
  schedule_ = schedule;
  launches_.clear();
  ended_ = {};
  phase_ = Phase::kFills;
}

/// Counts the blocks that have ended. Whether the two go as the schedule says: until they do, each has to run in its
/// part of the device; from then on it is enough that it has blocks to.
bool CoRunMeter::Count(const Snapshot& snapshot) {
  const double sms = static_cast<double>(std::max<std::size_t>(snapshot.sms.size(), 1));
  std::array<double, 2> running{}, waiting{};
  bool others = false;
  for (Seen& seen : launches_) seen.here = false;
  for (const KernelView& kernel : snapshot.kernels) {
    const auto& parts = schedule_->parts;
    if (kernel.profile != parts[0].profile && kernel.profile != parts[1].profile) {
      others = others || kernel.started != kernel.finished;
      continue;
    }
    const std::size_t part = kernel.profile == parts[0].profile ? 0 : 1;
    running[part] += static_cast<double>(kernel.started - kernel.finished);
    waiting[part] += static_cast<double>(kernel.ctas - kernel.started);
    const auto known = std::ranges::find(launches_, kernel.id, &Seen::id);
    Seen& seen = known != launches_.end()
                     ? *known
                     : launches_.emplace_back(
                           Seen{.id = kernel.id, .ctas = kernel.ctas, .finished = kernel.finished, .part = part});
    ended_[part] += kernel.finished - seen.finished;
    seen.finished = kernel.finished;
    seen.here = true;
  }
  std::erase_if(launches_, [&](const Seen& seen) {
    if (!seen.here) ended_[seen.part] += seen.ctas - seen.finished;  // it has ended
    return !seen.here;
  });
  bool full = true;
  for (std::size_t i = 0; i < 2; ++i) {
    const policy::CoSchedule::Part& part = schedule_->parts[i];
    wave_[i] = part.ctas_per_sm * sms;
    const double most = std::max(wave_[i], static_cast<double>(part.smallest_slice));
    if (phase_ == Phase::kFills) full = full && running[i] >= kMost * wave_[i] && running[i] <= most;
    else full = full && running[i] + waiting[i] >= kMost * wave_[i];
  }
  return full && !others;
}

bool CoRunMeter::HaveEnded(double waves) const {
  for (std::size_t i = 0; i < 2; ++i) {
    if (static_cast<double>(ended_[i] - marked_[i]) < waves * wave_[i]) return false;
  }
  return true;
}

void CoRunMeter::Mark(std::uint64_t cycle) {
  marked_ = ended_;
  since_ = cycle;
}

std::optional<std::array<double, 2>> CoRunMeter::See(const Snapshot& snapshot) {
  const bool together = Count(snapshot);
  if (!together) {
    phase_ = Phase::kFills;
  } else if (phase_ == Phase::kFills) {
    phase_ = Phase::kWarms;
    Mark(snapshot.cycle);
  } else if (phase_ == Phase::kWarms) {
    if (!HaveEnded(1)) return std::nullopt;
    phase_ = Phase::kMeasures;
    Mark(snapshot.cycle);
  } else if (HaveEnded(waves_) && snapshot.cycle > since_) {
    const auto rate = [&](std::size_t i) {
      return static_cast<double>(ended_[i] - marked_[i]) / static_cast<double>(snapshot.cycle - since_);
    };
    Stop();
    return std::array{rate(0), rate(1)};
  }
  return std::nullopt;
}

}  // namespace gridloom::policy
