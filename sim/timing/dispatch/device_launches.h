// Kernels that kernels launch, from the time they are given until their first CTA starts: which call launches which of
// them, which calls have been made, and what pending launches take of device memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/timing/counters.h"
#include "sim/timing/cta.h"
#include "sim/timing/cycle.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

class DeviceLaunches {
 public:
  /// A work was given that such a call launches.
  void Expect(WorkId work, std::uint32_t address_space, const LaunchedBy& by);
  /// A warp makes a call (trace::EventKind::kDeviceLaunch), which lasts until EndCall. Nothing: no such work was given,
  /// or it was launched already.
  std::optional<WorkId> Call(std::uint32_t address_space, const CtaSignal& call);
  /// The call that launches the work is over.
  CtaSignal EndCall(WorkId work);
  /// The parent has ended: launches of it that nobody has called, in the order in which they were given. They are not
  /// expected any more.
  std::vector<WorkId> NeverCalled(WorkId parent);

  /// The launch is pending from then on; `bytes`: of device memory, for its parameters and what the device has to know
  /// of it.
  void SetPending(WorkId work, Cycle called, std::uint64_t bytes);
  /// The launch's first CTA starts then, or the launch has ended without one. Works that are not pending are ignored.
  void SetStarted(WorkId work, Cycle at);

  const LaunchCounters& counters() const { return counters_; }
  std::uint64_t pending_bytes() const { return bytes_; }
  bool idle() const { return expected_.empty() && pending_.empty(); }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // address space, number
  struct Pending {
    Cycle called = 0;
    std::uint64_t bytes = 0;
  };
  std::map<Key, std::pair<WorkId, WorkId>> expected_;       // work, parent
  std::unordered_map<WorkId, std::vector<Key>> by_parent_;  // some of which may have been called
  std::unordered_map<WorkId, CtaSignal> calls_;             // that last, by what they launch
  std::unordered_map<WorkId, Pending> pending_;
  std::uint64_t bytes_ = 0;  // of all that are pending
  LaunchCounters counters_;
};

}  // namespace gridloom::timing
