// Works of a live timeline that the device has not got. With the timeline's lock held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/timing/live/place.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

struct PendingNode {
  Place place;
  Cycle submitted = 0;
  WorkKind kind = WorkKind::kMarker;
  std::shared_ptr<trace::CtaSource> source;  ///< null: of a kernel of which nothing runs
  std::uint64_t bytes = 0;
  bool is_group = false, closed = true;
  /// What of it may still come: itself while it is not closed or decided, and each of its members of which something
  /// may.
  std::uint64_t open = 0;
  std::vector<NodeId> members;
};

class PendingNodes {
 public:
  bool empty() const { return nodes_.empty(); }
  PendingNode* Find(NodeId id);
  PendingNode& at(NodeId id) { return nodes_.at(id); }
  /// Of one that is not closed the groups around it wait.
  void Add(NodeId id, PendingNode node);
  /// Nothing more comes of the work.
  void Close(PendingNode& node);
  /// Nothing where there is no such work.
  std::optional<PendingNode> Take(NodeId id);

 private:
  std::unordered_map<NodeId, PendingNode> nodes_;
};

}  // namespace gridloom::timing
