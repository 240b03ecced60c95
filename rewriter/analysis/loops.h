// Loop nest of any flow graph, irreducible parts included (Havlak 1997 in Ramalingam's near-linear form, 1999).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rewriter/analysis/graph.h"

namespace gridloom::analysis {

using LoopId = std::uint32_t;
inline constexpr LoopId kNoLoop = ~0u;

struct Loop {
  NodeId header = kNoNode;  ///< of an irreducible loop: the entry that the search found first
  LoopId parent = kNoLoop;
  std::uint32_t depth = 1;           ///< 1 for an outermost loop
  bool irreducible = false;          ///< it, not only a loop inside it, can be entered elsewhere than at the header
  std::vector<NodeId> latches = {};  ///< nodes of the loop with an edge to the header
};

class LoopNest {
 public:
  LoopNest(const Graph& graph, NodeId root);

  /// Outer loops stand before those inside them.
  const std::vector<Loop>& loops() const { return loops_; }
  /// The innermost loop that a node belongs to, kNoLoop when none. A header belongs to its own loop.
  LoopId LoopOf(NodeId node) const { return loop_of_[node]; }
  bool Contains(LoopId loop, NodeId node) const;
  /// Whether `inner` is `outer` or inside it.
  bool IsInside(LoopId inner, LoopId outer) const { return outer <= inner && inner < end_[outer]; }
  /// All nodes of a loop, those of inner loops included.
  std::span<const NodeId> Nodes(LoopId loop) const;

 private:
  void Build(const DepthFirst& search, const std::vector<NodeId>& header_of, const std::vector<bool>& is_header);

  std::vector<Loop> loops_;           ///< in preorder of the nest
  std::vector<LoopId> end_;           ///< one past the last loop inside
  std::vector<LoopId> loop_of_;       ///< by node
  std::vector<NodeId> nodes_;         ///< sorted by loop
  std::vector<std::uint32_t> first_;  ///< where a loop's nodes begin in nodes_; one more entry at the end
};

}  // namespace gridloom::analysis
