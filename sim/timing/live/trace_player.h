// A traced program's calls, made again: its launches, copies, events and waits in their order, at the simulated times at which a host
// with the device in question would make them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rewriter/support/result.h"
#include "sim/timing/live/live_timeline.h"
#include "sim/trace/trace_file.h"

namespace gridloom::timing {

/// KernelWork::profile of a launch.
using ProfileFunction = std::function<std::uint64_t(const trace::CtaSource& source)>;

class TracePlayer {
 public:
  TracePlayer(LiveTimeline& timeline, HostId host, std::shared_ptr<trace::TraceFile> file, ProfileFunction profile_of = {});
  /// Returns when the program has made its last call; takes the host out of the timeline. What a trace does not have (a launch that was
  /// not kept, or is not complete) takes no time. Fails when a kernel does not fit on the device, or the simulation does.
  Status Play();

 private:
  Status PlayAll();
  Status PlayAction(const trace::HostAction& action);
  /// A work without any in it.
  NodeId AddPlain(Place place, const trace::HostAction& action);
  /// `launch`: of the file.
  Result<NodeId> AddLaunch(Place place, std::size_t launch, bool opens);
  std::vector<NodeId> NodesOf(const std::vector<std::uint64_t>& works) const;

  LiveTimeline& timeline_;
  const HostId host_;
  const std::shared_ptr<trace::TraceFile> file_;
  const ProfileFunction profile_of_;
  std::unordered_map<std::uint64_t, std::vector<const trace::HostAction*>> members_;  // by group
  std::unordered_map<std::uint64_t, std::size_t> launches_;                           // complete ones, by work
  std::vector<bool> played_;                                                          // by launch
  std::unordered_map<std::uint64_t, NodeId> nodes_;                                   // by work
};

/// Plays each trace as a host of its own, all of them from the same moment, and simulates to the end.
Status PlayTraces(LiveTimeline& timeline, const std::vector<std::shared_ptr<trace::TraceFile>>& files,
                  const ProfileFunction& profile_of = {});

}  // namespace gridloom::timing
