// Directed graph with numbered nodes: what dominators, loops and component search work on.
#pragma once

#include <cstdint>
#include <vector>

namespace gridloom::analysis {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = ~0u;

struct Graph {
  std::vector<std::vector<NodeId>> successors, predecessors;

  explicit Graph(std::size_t nodes = 0) : successors(nodes), predecessors(nodes) {}
  NodeId size() const { return static_cast<NodeId>(successors.size()); }
  void AddEdge(NodeId from, NodeId to) {
    successors[from].push_back(to);
    predecessors[to].push_back(from);
  }
  Graph Reversed() const;
};

/// Depth-first search from one node; successors in their order. All vectors but `preorder` and `postorder` are indexed
/// by node; nodes that cannot be reached have number and parent kNoNode.
struct DepthFirst {
  std::vector<NodeId> preorder, postorder;  ///< reached nodes
  std::vector<NodeId> number;               ///< position in `preorder`
  std::vector<NodeId> parent;               ///< in the search tree; kNoNode for the root
  std::vector<NodeId> last;                 ///< highest `number` in the node's subtree

  DepthFirst(const Graph& graph, NodeId root);
  bool Reaches(NodeId node) const { return number[node] != kNoNode; }
  /// In the search tree; a node is its own ancestor.
  bool IsAncestor(NodeId ancestor, NodeId node) const {
    return number[ancestor] <= number[node] && number[node] <= last[ancestor];
  }
};

/// Strongly connected components, numbered so that an edge between two leads from a higher number to a lower one.
struct Components {
  std::vector<std::uint32_t> of;  ///< by node
  std::uint32_t count = 0;

  explicit Components(const Graph& graph);
};

}  // namespace gridloom::analysis
