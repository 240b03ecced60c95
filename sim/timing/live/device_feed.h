// What the device of a live timeline gets, and when: works in the order of simulated time, groups with all that is in
// them. By the simulation's thread, with the timeline's lock held.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/timing/engine.h"
#include "sim/timing/live/given_works.h"
#include "sim/timing/live/live_questions.h"
#include "sim/timing/live/live_streams.h"
#include "sim/timing/live/pending_nodes.h"
#include "sim/timing/live/stop_conditions.h"

namespace gridloom::timing {

class DeviceFeed {
 public:
  /// What the feed takes from and gives to. `profiling` is null where there is no profiler.
  struct Sides {
    Engine& engine;
    ProfilingPolicy* profiling = nullptr;
    LiveHosts& hosts;
    PendingNodes& nodes;
    LiveStreams& streams;
    const LiveQuestions& questions;
    GivenWorks& works;
    StopConditions& stops;
    SimulationSignals& signals;
  };
  explicit DeviceFeed(const Sides& sides) : to_(sides) {}

  /// Gives the engine what is sure to come next; the time of a group that it cannot give yet, or kNever.
  Result<Cycle> Feed();

 private:
  /// A node that the engine is being given, with all that is in it.
  struct Feeding {
    NodeId id = 0;
    PendingNode node;
    std::uint32_t stream = 0;
    WorkId begin = 0;
    WorkOrder end{};       ///< of the whole, where there are members
    std::size_t next = 0;  ///< of them
  };

  LiveHost* NextHost(HostId& id);
  Status FeedNode(NodeId id, std::uint32_t stream);
  Result<Feeding> BeginNode(NodeId id, std::uint32_t stream, const std::vector<WorkId>& after, LaunchedBy by);
  Result<Feeding> BeginMember(Feeding& group);
  Result<WorkId> EndNode(Feeding& feeding);
  Result<WorkId> FeedBegin(WorkOrder order, PendingNode& node, LaunchedBy by);
  Result<WorkId> FeedKernel(WorkOrder order, PendingNode& node, LaunchedBy by);
  MemoryUse UseOf(const Place& place, bool kernel);
  std::shared_ptr<const std::vector<HostReuse>> ReusesOf(const Place& place) const;
  std::vector<WorkId> WorksBefore(const PendingNode& node) const;

  const Sides to_;
  std::unordered_map<NodeId, WorkId> partners_;  ///< of works with Place::is_partner
};

}  // namespace gridloom::timing
