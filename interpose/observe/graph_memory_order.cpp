#include "interpose/observe/graph_memory_order.h"

#include "interpose/objects/graph_memory.h"
#include "interpose/objects/graph_plan.h"

namespace gridloom::session {
namespace {

/// Nodes that come after `node` in the graph. Nodes stand in an order that respects dependencies.
std::vector<bool> NodesAfter(const GraphPlan& plan, std::uint32_t node) {
  std::vector<bool> after(plan.nodes.size(), false);
  for (std::size_t i = node + 1; i < plan.nodes.size(); ++i) {
    for (const std::uint32_t dependency : plan.nodes[i].dependencies)
      if (dependency == node || after[dependency]) after[i] = true;
  }
  return after;
}

std::vector<bool> NodesBefore(const GraphPlan& plan, std::uint32_t node) {
  std::vector<bool> before(plan.nodes.size(), false);
  for (std::size_t i = node + 1; i-- > 0;) {
    if (i != node && !before[i]) continue;
    for (const std::uint32_t dependency : plan.nodes[i].dependencies) before[dependency] = true;
  }
  return before;
}

}  // namespace

GraphMemoryOrder::GraphMemoryOrder(const GraphPlan& plan) {
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    const Operation& operation = plan.nodes[i].operation;
    if (const auto* allocation = std::get_if<AllocOp>(&operation)) {
      Lifetime& lifetime = lifetimes_[allocation->memory->address()];
      lifetime.allocates = i;
      lifetime.after_allocation = NodesAfter(plan, i);
    } else if (const auto* free = std::get_if<FreeOp>(&operation)) {
      Lifetime& lifetime = lifetimes_[free->address];
      lifetime.frees = i;
      lifetime.before_free = NodesBefore(plan, i);
      lifetime.after_free = NodesAfter(plan, i);
    }
  }
}

const GraphMemoryOrder::Lifetime* GraphMemoryOrder::Find(std::uint64_t address) const {
  const auto found = lifetimes_.find(address);
  return found == lifetimes_.end() ? nullptr : &found->second;
}

}  // namespace gridloom::session
