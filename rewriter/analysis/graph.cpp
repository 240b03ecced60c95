#include "rewriter/analysis/graph.h"

#include <algorithm>

namespace gridloom::analysis {

Graph Graph::Reversed() const {
  Graph reversed;
  reversed.successors = predecessors;
  reversed.predecessors = successors;
  return reversed;
}

namespace {

/// A node whose successors are being visited; `next` is the first not yet looked at.
struct Visit {
  NodeId node;
  std::size_t next = 0;
};

}  // namespace

DepthFirst::DepthFirst(const Graph& graph, NodeId root)
    : number(graph.size(), kNoNode), parent(graph.size(), kNoNode), last(graph.size(), kNoNode) {
  std::vector<Visit> stack;
  const auto enter = [&](NodeId node) {
    number[node] = static_cast<NodeId>(preorder.size());
    preorder.push_back(node);
    stack.push_back({node});
  };
  if (root < graph.size()) enter(root);
  while (!stack.empty()) {
    Visit& visit = stack.back();
    const auto& successors = graph.successors[visit.node];
    if (visit.next == successors.size()) {
      last[visit.node] = static_cast<NodeId>(preorder.size() - 1);
      postorder.push_back(visit.node);
      stack.pop_back();
      continue;
    }
    const NodeId successor = successors[visit.next++];
    if (Reaches(successor)) continue;
    parent[successor] = visit.node;
    enter(successor);
  }
}

// Tarjan's algorithm; a component is complete, and gets its number, once all it leads to have theirs.
Components::Components(const Graph& graph) : of(graph.size(), kNoNode) {
  std::vector<NodeId> index(graph.size(), kNoNode), low(graph.size(), kNoNode), open;
  std::vector<Visit> stack;
  NodeId next_index = 0;
  const auto enter = [&](NodeId node) {
    index[node] = low[node] = next_index++;
    open.push_back(node);
    stack.push_back({node});
  };
  for (NodeId root = 0; root < graph.size(); ++root) {
    if (index[root] != kNoNode) continue;
    enter(root);
    while (!stack.empty()) {
      Visit& visit = stack.back();
      const NodeId node = visit.node;
      if (visit.next < graph.successors[node].size()) {
        const NodeId successor = graph.successors[node][visit.next++];
        if (index[successor] == kNoNode) {
          enter(successor);
        } else if (of[successor] == kNoNode) {
          low[node] = std::min(low[node], index[successor]);
        }
        continue;
      }
      stack.pop_back();
      if (!stack.empty()) low[stack.back().node] = std::min(low[stack.back().node], low[node]);
      if (low[node] != index[node]) continue;
      NodeId member;
      do {
        member = open.back();
        open.pop_back();
        of[member] = count;
      } while (member != node);
      ++count;
    }
  }
}

}  // namespace gridloom::analysis
