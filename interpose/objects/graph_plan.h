// What a launch of a graph runs. A launch keeps the plan that it was launched with: changes of the executable graph
// make another one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interpose/objects/operation.h"

namespace gridloom::session {

class Graph;
class GraphNode;
struct GraphKept;

struct GraphPlan {
  struct Node {
    Operation operation;
    std::vector<std::uint32_t> dependencies;               ///< places of nodes before it
    std::shared_ptr<const GraphPlan> child;                ///< of a child graph node
    std::vector<std::shared_ptr<const GraphPlan>> bodies;  ///< of a conditional node
    GraphNode* origin = nullptr;                           ///< node it was made from: an identity only
    bool enabled = true;
  };
  std::vector<Node> nodes;                ///< in an order that respects dependencies
  std::shared_ptr<const GraphKept> kept;  ///< what of the graph lives as long as this

  /// INVALID_VALUE for a cycle.
  static cuda::CUresult Make(const Graph& graph, std::shared_ptr<const GraphPlan>* plan);
  /// The plan with the operations of a graph of the same shape. GRAPH_EXEC_UPDATE_FAILURE, explained in `info`, where
  /// it has another.
  cuda::CUresult Updated(const Graph& graph, cuda::CUgraphExecUpdateResultInfo* info,
                         std::shared_ptr<const GraphPlan>* plan) const;

  /// A launch begins: conditions get the values they begin with.
  void BeginConditions() const;
  /// How many nodes the graph and its children have.
  std::uint64_t operations() const;
};

}  // namespace gridloom::session
