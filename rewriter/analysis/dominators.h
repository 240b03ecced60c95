// Dominator and post-dominator trees (Lengauer and Tarjan, 1979: near-linear on any graph).
#pragma once

#include <vector>

#include "rewriter/analysis/graph.h"

namespace gridloom::analysis {

class DominatorTree {
 public:
  /// Computes the dominators of the nodes that `root` reaches.
  DominatorTree(const Graph& graph, NodeId root);

  NodeId root() const { return root_; }
  bool Reaches(NodeId node) const { return node == root_ || parent_[node] != kNoNode; }
  /// Immediate dominator; kNoNode for the root and for nodes that cannot be reached.
  NodeId parent(NodeId node) const { return parent_[node]; }
  const std::vector<NodeId>& children(NodeId node) const { return children_[node]; }
  /// Whether every way from the root to `node` leads through `dominator`; a node dominates itself. A node that cannot
  /// be reached dominates only itself and is dominated only by itself.
  bool Dominates(NodeId dominator, NodeId node) const;
  std::uint32_t depth(NodeId node) const { return depth_[node]; }

 private:
  void NumberTree();

  NodeId root_;
  std::vector<NodeId> parent_;
  std::vector<std::vector<NodeId>> children_;
  std::vector<std::uint32_t> depth_, enter_, leave_;
};

/// Post-dominators. All nodes without successors lead to one virtual exit; a part that never ends (an infinite loop)
/// counts as leaving from one of its nodes, so that every node that `entry` reaches has a post-dominator.
class PostDominatorTree {
 public:
  PostDominatorTree(const Graph& graph, NodeId entry) : PostDominatorTree(graph, entry, {}) {}
  /// With further nodes that may leave though they have successors: blocks that end in a guarded exit.
  PostDominatorTree(const Graph& graph, NodeId entry, const std::vector<NodeId>& also_leave);

  NodeId virtual_exit() const { return tree_.root(); }
  /// Immediate post-dominator, which may be `virtual_exit()`; kNoNode for nodes that `entry` does not reach.
  NodeId parent(NodeId node) const { return tree_.parent(node); }
  bool PostDominates(NodeId later, NodeId node) const { return tree_.Dominates(later, node); }
  /// The tree itself, rooted in the virtual exit.
  const DominatorTree& tree() const { return tree_; }

 private:
  DominatorTree tree_;
};

}  // namespace gridloom::analysis
