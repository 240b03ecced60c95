#include "interpose/objects/graph_plan.h"

#include <algorithm>
#include <unordered_map>

#include "interpose/objects/graph.h"

namespace gridloom::session {

using namespace cuda;

/// What a plan needs of its graph beside the operations, which keep their memory themselves.
struct GraphKept {
  explicit GraphKept(const Graph& graph) : handles(graph.handles()), objects(graph.user_objects) {
    for (const auto& [object, count] : objects) object->Retain(count);
  }
  ~GraphKept() { ReleaseAll(handles, objects); }
  GraphKept(const GraphKept&) = delete;
  GraphKept& operator=(const GraphKept&) = delete;

  ProgramHandles& handles;
  UserObjects objects;
};

CUresult GraphPlan::Make(const Graph& graph, std::shared_ptr<const GraphPlan>* plan) {
  const auto lock = graph.Lock();
  auto made = std::make_shared<GraphPlan>();
  std::vector<GraphNode*> order;
  if (!graph.Order(&order)) return CUDA_ERROR_INVALID_VALUE;
  std::unordered_map<const GraphNode*, std::uint32_t> place;
  for (GraphNode* node : order) {
    Node entry;
    entry.operation = node->operation;
    entry.origin = node;
    for (const GraphNode* dependency : node->dependencies) entry.dependencies.push_back(place.at(dependency));
    if (const auto* child = std::get_if<ChildOp>(&node->operation)) {
      if (const auto status = Make(*child->graph, &entry.child); status != CUDA_SUCCESS) return status;
    }
    if (const auto* conditional = std::get_if<ConditionalOp>(&node->operation)) {
      for (const auto& body : conditional->bodies->graphs) {
        if (const auto status = Make(*body, &entry.bodies.emplace_back()); status != CUDA_SUCCESS) return status;
      }
    }
    place[node] = static_cast<std::uint32_t>(made->nodes.size());
    made->nodes.push_back(std::move(entry));
  }
  made->kept = std::make_shared<GraphKept>(graph);
  *plan = std::move(made);
  return CUDA_SUCCESS;
}

CUresult GraphPlan::Updated(const Graph& graph, CUgraphExecUpdateResultInfo* info,
                            std::shared_ptr<const GraphPlan>* plan) const {
  const auto lock = graph.Lock();
  const auto fail = [info](CUgraphExecUpdateResult result, GraphNode* node) {
    *info = {result, node == nullptr ? nullptr : node->handle(), nullptr};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  // Nodes correspond in the order in which they were added, as captures of the same code give them.
  std::vector<GraphNode*> order;
  if (!graph.Order(&order) || order.size() != nodes.size())
    return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  std::unordered_map<const GraphNode*, std::uint32_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i]->operation.index() != nodes[i].operation.index())
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, order[i]);
    std::vector<std::uint32_t> dependencies;
    for (const GraphNode* dependency : order[i]->dependencies) dependencies.push_back(place.at(dependency));
    auto known = nodes[i].dependencies;
    std::ranges::sort(dependencies);
    std::ranges::sort(known);
    if (dependencies != known) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, order[i]);
    if (std::holds_alternative<AllocOp>(order[i]->operation) || std::holds_alternative<FreeOp>(order[i]->operation)) {
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, order[i]);
    }
  }
  auto made = std::make_shared<GraphPlan>(*this);
  for (std::size_t i = 0; i < order.size(); ++i) {
    Node& node = made->nodes[i];
    if (const auto* child = std::get_if<ChildOp>(&order[i]->operation)) {
      if (const auto status = nodes[i].child->Updated(*child->graph, info, &node.child); status != CUDA_SUCCESS)
        return status;
    }
    if (const auto* conditional = std::get_if<ConditionalOp>(&order[i]->operation)) {
      const auto& graphs = conditional->bodies->graphs;
      if (graphs.size() != node.bodies.size()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, order[i]);
      for (std::size_t body = 0; body < graphs.size(); ++body) {
        const auto status = nodes[i].bodies[body]->Updated(*graphs[body], info, &node.bodies[body]);
        if (status != CUDA_SUCCESS) return status;
      }
    }
    node.operation = order[i]->operation;
  }
  made->kept = std::make_shared<GraphKept>(graph);
  *plan = std::move(made);
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  return CUDA_SUCCESS;
}

void GraphPlan::BeginConditions() const {
  for (const Node& node : nodes) {
    if (const auto* conditional = std::get_if<ConditionalOp>(&node.operation)) conditional->condition->Begin();
    if (node.child != nullptr) node.child->BeginConditions();
    for (const auto& body : node.bodies) body->BeginConditions();
  }
}

std::uint64_t GraphPlan::operations() const {
  std::uint64_t count = nodes.size();
  for (const Node& node : nodes) {
    if (node.child != nullptr) count += node.child->operations();
  }
  return count;
}

}  // namespace gridloom::session
