#include "sim/timing/live/given_works.h"

namespace gridloom::timing {

void GivenWorks::Add(NodeId node, const Given& given) {
  given_[node] = given;
  nodes_[given.work] = node;
}

std::optional<WorkId> GivenWorks::WorkOf(NodeId node) const {
  const auto given = given_.find(node);
  return given != given_.end() ? std::optional(given->second.work) : std::nullopt;
}

std::optional<NodeId> GivenWorks::NodeOf(WorkId work) const {
  const auto node = nodes_.find(work);
  return node != nodes_.end() ? std::optional(node->second) : std::nullopt;
}

std::optional<GivenWorks::Ended> GivenWorks::Take(WorkId work) {
  const auto node = nodes_.extract(work);
  if (node.empty()) return std::nullopt;
  const auto given = given_.extract(node.mapped());
  return Ended{.node = node.mapped(), .waits = given.mapped().waits};
}

std::vector<WorkId> GivenWorks::BeginsOf(HostId host) const {
  std::vector<WorkId> begins;
  for (const auto& [node, given] : given_) {
    if (HostOf(node) == host) begins.push_back(given.begin);
  }
  return begins;
}

}  // namespace gridloom::timing
