// When the device has to stop before it has been simulated as far as hosts allow, so that they hear of what they wait
// for.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "sim/timing/live/given_works.h"

namespace gridloom::timing {

/// Used by the simulation's thread alone.
class StopConditions {
 public:
  /// When this work has ended.
  void Await(WorkId work) { awaited_.insert(work); }
  /// When so many works of the host have.
  void AwaitAll(HostId host, std::uint64_t works) { left_[host] = works; }
  /// The device goes on. What AwaitAll has said does not count any more.
  void Begin();
  /// A work has ended.
  void Ended(WorkId work, const GivenWorks& works);
  bool stops() const { return stops_; }

 private:
  std::unordered_set<WorkId> awaited_;
  std::unordered_map<HostId, std::uint64_t> left_;
  bool stops_ = false;
};

}  // namespace gridloom::timing
