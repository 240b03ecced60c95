// How a live timeline runs, and who is told what.
#pragma once

#include <functional>

#include "sim/timing/engine.h"
#include "sim/timing/live/place.h"
#include "sim/timing/live/profiling_policy.h"

namespace gridloom::timing {

struct LiveOptions {
  EngineOptions engine;  ///< a timeline does not need EngineOptions::keep_ended
  /// A host stops waiting when for so long no CTA came of a kernel of its own: the kernel may itself wait for the
  /// host.
  unsigned patience_ms = 3000;
  /// Likewise when for so long the simulation has stood before a kernel of its own that is not decided.
  unsigned decision_patience_ms = 30000;
  /// Told of each work of a host that has ended, groups' works included; by the simulation's thread, and must not
  /// call back.
  std::function<void(HostId host, const WorkResult& work, const Counters& during)> on_ended = {};
  Profiler profiler = {};  ///< of all kernels; called by the simulation's thread, in the order of simulated time
  /// For LiveTimeline::Kernels. A service that runs for ever keeps none: programs name as many kernels as they like.
  bool keep_table = true;
  /// Told when all that is known of a host that was dropped is let go; as on_ended.
  std::function<void(HostId host)> on_forgotten = {};
  /// Told of each work as the host gave it, once it has ended, and of those that were dropped with their host; on any
  /// thread, with the timeline's lock held, and must not call back.
  std::function<void(NodeId node, Cycle end)> on_node_ended = {};
  int niceness = 0;  ///< of the simulation's thread: how far others go before it
};

}  // namespace gridloom::timing
