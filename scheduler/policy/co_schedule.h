// Which kernels should share the multiprocessors: what a policy asks a performance model. Policies depend on no model;
// who makes a policy hands in a planner (scheduler/model/planner.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace gridloom::policy {

/// Two kinds of kernels side by side: <K1, K2, size1, size2> of Kernelet's Algorithm 1.
struct CoSchedule {
  struct Part {
    std::uint64_t profile = 0;  ///< KernelView::profile
    /// Blocks that a multiprocessor holds at a time; a slice has this many for each multiprocessor.
    std::uint32_t ctas_per_sm = 0;
    std::uint64_t smallest_slice = 1;  ///< a new slice should not be smaller, the kernel's last one aside
  };
  std::array<Part, 2> parts{};
  double profit = 0;  ///< expected co-scheduling profit CP (Eq. 1): part of the time that is saved; > 0
};

/// Thread-compatible; the same questions in the same order get the same answers.
class CoSchedulePlanner {
 public:
  virtual ~CoSchedulePlanner() = default;
  /// The best co-schedule of two of the kinds that wait, or nothing where none pays. `waiting` rises; it may contain
  /// kinds that the planner does not know.
  virtual std::optional<CoSchedule> Find(std::span<const std::uint64_t> waiting) = 0;
  /// Changes when the planner has learned something, so that the same question may have another answer.
  virtual std::uint64_t revision() const { return 0; }

  /// Whether it would learn from how fast the two really go. Then the policy measures it while it runs the schedule,
  /// and says so.
  virtual bool Wants(const CoSchedule&) const { return false; }
  /// Blocks of each kind that ended in a unit of Snapshot::cycle.
  virtual void Observe(const CoSchedule&, std::array<double, 2> /*rates*/) {}
};

}  // namespace gridloom::policy
