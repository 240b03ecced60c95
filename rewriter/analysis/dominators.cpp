#include "rewriter/analysis/dominators.h"

#include <algorithm>

namespace gridloom::analysis {
namespace {

/// The forest of Lengauer and Tarjan's algorithm, over preorder numbers: finds the node of smallest semidominator
/// between a node and the root of its tree, compressing the path.
class LinkEval {
 public:
  explicit LinkEval(const std::vector<NodeId>& semi)
      : semi_(semi), ancestor_(semi.size(), kNoNode), label_(semi.size()) {
    for (NodeId i = 0; i < label_.size(); ++i) label_[i] = i;
  }

  void Link(NodeId parent, NodeId node) { ancestor_[node] = parent; }

  NodeId Eval(NodeId node) {
    if (ancestor_[node] == kNoNode) return node;
    path_.clear();
    for (NodeId at = node; ancestor_[ancestor_[at]] != kNoNode; at = ancestor_[at]) path_.push_back(at);
    for (auto it = path_.rbegin(); it != path_.rend(); ++it) {
      const NodeId above = ancestor_[*it];
      if (semi_[label_[above]] < semi_[label_[*it]]) label_[*it] = label_[above];
      ancestor_[*it] = ancestor_[above];
    }
    return label_[node];
  }

 private:
  const std::vector<NodeId>& semi_;
  std::vector<NodeId> ancestor_, label_, path_;
};

std::vector<NodeId> ImmediateDominators(const Graph& graph, NodeId root) {
  const DepthFirst search(graph, root);
  const auto count = static_cast<NodeId>(search.preorder.size());
  std::vector<NodeId> semi(count), dominator(count, 0);
  for (NodeId i = 0; i < count; ++i) semi[i] = i;
  std::vector<std::vector<NodeId>> bucket(count);
  LinkEval forest(semi);
  for (NodeId w = count; w-- > 1;) {
    const NodeId node = search.preorder[w];
    for (const NodeId predecessor : graph.predecessors[node]) {
      if (search.Reaches(predecessor)) semi[w] = std::min(semi[w], semi[forest.Eval(search.number[predecessor])]);
    }
    bucket[semi[w]].push_back(w);
    const NodeId parent = search.number[search.parent[node]];
    forest.Link(parent, w);
    for (const NodeId v : bucket[parent]) {
      const NodeId u = forest.Eval(v);
      dominator[v] = semi[u] < semi[v] ? u : parent;
    }
    bucket[parent].clear();
  }
  std::vector<NodeId> parents(graph.size(), kNoNode);
  for (NodeId w = 1; w < count; ++w) {
    if (dominator[w] != semi[w]) dominator[w] = dominator[dominator[w]];
    parents[search.preorder[w]] = search.preorder[dominator[w]];
  }
  return parents;
}

/// The graph turned round, with the virtual exit as its last node, restricted to what `entry` reaches.
Graph ExitGraph(const Graph& graph, NodeId entry, const std::vector<NodeId>& also_leave) {
  const DepthFirst search(graph, entry);
  Graph forward(graph.size() + 1);
  const NodeId exit = graph.size();
  for (const NodeId node : search.preorder) {
    for (const NodeId successor : graph.successors[node]) forward.AddEdge(node, successor);
    if (graph.successors[node].empty()) forward.AddEdge(node, exit);
  }
  for (const NodeId node : also_leave) {
    if (search.Reaches(node)) forward.AddEdge(node, exit);
  }
  // A component that nothing leaves is an endless loop; the node of it that the search finished first leaves.
  const Components components(forward);
  std::vector<bool> left(components.count, false);
  left[components.of[exit]] = true;
  for (const NodeId node : search.preorder) {
    for (const NodeId successor : forward.successors[node]) {
      if (components.of[successor] != components.of[node]) left[components.of[node]] = true;
    }
  }
  for (const NodeId node : search.postorder) {
    if (left[components.of[node]]) continue;
    left[components.of[node]] = true;
    forward.AddEdge(node, exit);
  }
  return forward.Reversed();
}

}  // namespace

DominatorTree::DominatorTree(const Graph& graph, NodeId root)
    : root_(root),
      parent_(ImmediateDominators(graph, root)),
      children_(graph.size()),
      depth_(graph.size(), 0),
      enter_(graph.size(), 0),
      leave_(graph.size(), 0) {
  for (NodeId node = 0; node < graph.size(); ++node) {
    if (parent_[node] != kNoNode) children_[parent_[node]].push_back(node);
  }
  NumberTree();
}

void DominatorTree::NumberTree() {
  if (root_ >= parent_.size()) return;
  std::vector<std::pair<NodeId, std::size_t>> stack{{root_, 0}};
  std::uint32_t clock = 0;
  enter_[root_] = clock++;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == children_[node].size()) {
      leave_[node] = clock;
      stack.pop_back();
      continue;
    }
    const NodeId child = children_[node][next++];
    depth_[child] = depth_[node] + 1;
    enter_[child] = clock++;
    stack.push_back({child, 0});
  }
}

bool DominatorTree::Dominates(NodeId dominator, NodeId node) const {
  if (dominator == node) return true;
  if (!Reaches(dominator) || !Reaches(node)) return false;
  return enter_[dominator] <= enter_[node] && enter_[node] < leave_[dominator];
}

PostDominatorTree::PostDominatorTree(const Graph& graph, NodeId entry, const std::vector<NodeId>& also_leave)
    : tree_(ExitGraph(graph, entry, also_leave), graph.size()) {}

}  // namespace gridloom::analysis
