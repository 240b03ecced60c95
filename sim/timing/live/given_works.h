// Works of a live timeline that the device has and that have not ended, by the names that hosts and the device have for
// them.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/timing/live/place.h"

namespace gridloom::timing {

/// Changed by the simulation's thread alone, with the timeline's lock held; it reads them without the lock.
class GivenWorks {
 public:
  struct Given {
    WorkId begin = 0, work = 0;  ///< with the second it has ended; they differ where it is a group with members
    std::size_t waits = 0;       ///< works that it waited for when the host gave it
  };
  struct Ended {
    NodeId node = 0;
    std::size_t waits = 0;
  };

  bool empty() const { return given_.empty(); }
  void Add(NodeId node, const Given& given);
  /// What has to end so that the node has. Nothing: the device has not got it, or it has ended.
  std::optional<WorkId> WorkOf(NodeId node) const;
  /// Nothing: the work is the begin of a group, or a part's.
  std::optional<NodeId> NodeOf(WorkId work) const;
  /// The work has ended. Nothing as with NodeOf.
  std::optional<Ended> Take(WorkId work);
  /// With what the host's works begin.
  std::vector<WorkId> BeginsOf(HostId host) const;

 private:
  std::unordered_map<NodeId, Given> given_;
  std::unordered_map<WorkId, NodeId> nodes_;  ///< of the same works, by Given::work
};

}  // namespace gridloom::timing
