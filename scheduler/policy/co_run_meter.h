// How fast two kinds of kernels go side by side, from what a policy sees anyway.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/policy/co_schedule.h"
#include "scheduler/policy/policy.h"

namespace gridloom::policy {

/// Watches a co-schedule until as many waves of both kinds have ended as it is told to measure, behind one that is not
/// measured. A wave: the blocks of a kind that the multiprocessors hold. It counts while both kinds have blocks enough
/// and nobody else has any.
class CoRunMeter {
 public:
  explicit CoRunMeter(std::uint32_t waves) : waves_(waves) {}

  void Start(const CoSchedule& schedule);
  void Stop() { schedule_.reset(); }
  bool running() const { return schedule_.has_value(); }
  const CoSchedule& schedule() const { return *schedule_; }  ///< running

  /// To be called with every snapshot while it runs. Blocks of each kind that end in a unit of Snapshot::cycle, when
  /// they are measured.
  std::optional<std::array<double, 2>> See(const Snapshot& snapshot);

 private:
  struct Seen {
    std::uint64_t id = 0, ctas = 0, finished = 0;
    std::size_t part = 0;
    bool here = false;
  };
  bool Count(const Snapshot& snapshot);
  bool HaveEnded(double waves) const;
  void Mark(std::uint64_t cycle);

  const std::uint32_t waves_;
  std::optional<CoSchedule> schedule_;
  std::vector<Seen> launches_;             ///< of the two kinds
  std::array<std::uint64_t, 2> ended_{};   ///< blocks of each kind, since Start
  std::array<std::uint64_t, 2> marked_{};  ///< of them, when it began to warm up or to measure
  std::array<double, 2> wave_{};
  std::uint64_t since_ = 0;
  enum class Phase : std::uint8_t { kFills, kWarms, kMeasures } phase_ = Phase::kFills;
};

}  // namespace gridloom::policy
