#include "sim/timing/live/pending_nodes.h"

#include <utility>

namespace gridloom::timing {

PendingNode* PendingNodes::Find(NodeId id) {
  const auto found = nodes_.find(id);
  return found != nodes_.end() ? &found->second : nullptr;
}

void PendingNodes::Add(NodeId id, PendingNode node) {
  PendingNode* one = &nodes_.emplace(id, std::move(node)).first->second;
  if (one->closed) return;
  // The groups around it count it once.
  while (one != nullptr && one->open++ == 0) one = Find(one->place.group);
}

void PendingNodes::Close(PendingNode& node) {
  node.closed = true;
  for (PendingNode* one = &node; one != nullptr && --one->open == 0;) one = Find(one->place.group);
}

std::optional<PendingNode> PendingNodes::Take(NodeId id) {
  auto node = nodes_.extract(id);
  return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
}

}  // namespace gridloom::timing
