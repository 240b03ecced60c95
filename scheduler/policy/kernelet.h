// Kernelet's execution of co-schedules (Zhong and He, Algorithm 1): slices of two kernels share the multiprocessors,
// each kernel with its number of thread blocks per multiprocessor, until one of them has no blocks left. Which two, and
// how many of each, a planner says. Kernels for which no co-schedule pays, or which have no profile, run as under
// `leftover`.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/policy/co_run_meter.h"
#include "scheduler/policy/co_schedule.h"
#include "scheduler/policy/policy.h"

namespace gridloom::policy {

struct KerneletOptions {
  /// Plan again when a kind of kernel arrives that was not waiting (section 2.2), not only when one of the two has
  /// started all of its blocks (Algorithm 1, line 8).
  bool replan_on_arrival = true;
  /// Kernels that may begin before the one that waits longest; then it runs alone. 0: any number, as in the paper,
  /// which is after throughput alone: where pairs that pay keep coming, a kernel that pays with none would never run.
  std::uint32_t patience = 100;
  /// Waves of a co-schedule that are measured for a planner which wants to learn from them (not in the paper).
  std::uint32_t probe_waves = 2;
};

class Kernelet final : public Policy {
 public:
  /// Without a planner no co-schedule pays. `name`: with a planner that learns it is another policy; a literal.
  explicit Kernelet(std::shared_ptr<CoSchedulePlanner> planner = nullptr, const KerneletOptions& options = {},
                    std::string_view name = "kernelet")
      : planner_(std::move(planner)), options_(options), name_(name), meter_(options.probe_waves) {}
  std::string_view name() const override { return name_; }
  std::optional<Slice> Next(const Snapshot& snapshot) override;

  const std::optional<CoSchedule>& co_schedule() const { return co_schedule_; }  ///< in force since the last decision

 private:
  struct Candidate;
  void Plan(const Snapshot& snapshot);
  void Measure(const Snapshot& snapshot);
  std::optional<Slice> NextOfCoSchedule(const Snapshot& snapshot) const;
  static Candidate Examine(const Snapshot& snapshot, const CoSchedule::Part& part);
  void CountOvertaking(const KernelView& oldest, const Slice& slice);

  std::shared_ptr<CoSchedulePlanner> planner_;
  KerneletOptions options_;
  std::string_view name_;
  CoRunMeter meter_;  ///< of co_schedule_, while the planner wants it measured
  std::optional<CoSchedule> co_schedule_;
  std::vector<std::uint64_t> waiting_, scratch_;  ///< kinds with blocks to start, when co_schedule_ was planned; sorted
  std::uint64_t revision_ = 0;                    ///< of the planner, then
  std::uint64_t oldest_ = 0, began_ = 0;  ///< launches: the one that waits longest, the last one that overtook it
  std::uint32_t overtaken_ = 0;
};

}  // namespace gridloom::policy
