// What a launch of a graph runs. A launch keeps the plan that it was launched with: changes of the executable graph
// make another one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interpose/session/operation.h"
#include "interpose/session/task.h"

namespace gridloom::session {

class Graph;
class GraphNode;
struct CopiedBytes;
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
  /// Adds what its nodes copy over PCIe. Without those of conditional nodes' bodies: how often these run is not known
  /// before.
  void AddCopies(CopiedBytes& copied) const;
  /// Its nodes and those of its children.
  std::uint64_t operations() const;
};

/// Submits every node behind `first`; answers the tasks that nothing in the graph waits for. `group`: number of this
/// launch in the program's timeline, if there is one. `origin`: of the launch, or where the plan is one of a node, of
/// that node (`inside`); null where nobody asks.
std::vector<TaskPtr> SubmitPlan(Context& context, const std::shared_ptr<const GraphPlan>& plan, const TaskPtr& first,
                                std::uint64_t group, const WorkOriginPtr& origin, bool inside = false);

}  // namespace gridloom::session
