#include "rewriter/analysis/loops.h"

#include <algorithm>
#include <numeric>

namespace gridloom::analysis {
namespace {

class UnionFind {
 public:
  explicit UnionFind(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }
  NodeId Find(NodeId node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  /// The representative of `into` stays.
  void Merge(NodeId from, NodeId into) { parent_[from] = into; }

 private:
  std::vector<NodeId> parent_;
};

struct Edge {
  NodeId from, to;
};

/// Finds for each node the header of the innermost loop around it (for a header: around its own loop).
class HeaderFinder {
 public:
  HeaderFinder(const Graph& graph, const DepthFirst& search)
      : search_(search),
        sets_(graph.size()),
        into_(graph.size()),
        back_(graph.size()),
        cross_(graph.size()),
        mark_(graph.size(), kNoNode) {
    header_of.assign(graph.size(), kNoNode);
    is_header.assign(graph.size(), false);
    SortEdges(graph);
  }

  void Run() {
    for (auto it = search_.preorder.rbegin(); it != search_.preorder.rend(); ++it) {
      for (const Edge& edge : cross_[*it]) {
        const NodeId target = sets_.Find(edge.to);
        into_[target].push_back(sets_.Find(edge.from));
        // The loops around edge.to found so far end at the header `target`: this edge enters them elsewhere.
        if (target != edge.to) irregular_.push_back({edge.to, target});
      }
      FindLoop(*it);
    }
  }

  std::vector<NodeId> header_of;
  std::vector<bool> is_header;

  struct IrregularEntry {
    NodeId at;   ///< the node entered
    NodeId top;  ///< header of the outermost loop entered so
  };
  const std::vector<IrregularEntry>& irregular() const { return irregular_; }

 private:
  /// Back edges, tree and other edges go to their lists; an edge between two branches of the search tree is kept at the
  /// nearest common ancestor, since no loop deeper than that can contain both ends.
  void SortEdges(const Graph& graph) {
    UnionFind done(graph.size());  // Tarjan's off-line search for common ancestors
    std::vector<std::vector<Edge>> waiting(graph.size());
    for (const NodeId node : search_.preorder) {
      for (const NodeId to : graph.successors[node]) {
        if (search_.IsAncestor(to, node)) {
          back_[to].push_back(node);
        } else if (search_.parent[to] == node) {
          into_[to].push_back(node);
        } else if (search_.IsAncestor(node, to)) {
          cross_[node].push_back({node, to});
        } else {
          waiting[node].push_back({node, to});  // `to` was finished before `node` was begun
        }
      }
    }
    // In postorder, a finished subtree is merged into its parent: the set of an already finished node is represented by
    // the nearest ancestor that is still open.
    std::vector<bool> finished(graph.size(), false);
    std::size_t next = 0;
    for (const NodeId node : search_.postorder) {
      // Enter all nodes up to and including `node` before it is left.
      for (; next < search_.preorder.size() && search_.number[search_.preorder[next]] <= search_.number[node]; ++next) {
        for (const Edge& edge : waiting[search_.preorder[next]]) cross_[done.Find(edge.to)].push_back(edge);
      }
      if (search_.parent[node] != kNoNode) done.Merge(node, search_.parent[node]);
    }
  }

  void FindLoop(NodeId header) {
    std::vector<NodeId> body;
    const auto add = [&](NodeId node) {
      node = sets_.Find(node);
      if (node == header || mark_[node] == header) return;
      mark_[node] = header;
      body.push_back(node);
    };
    if (!back_[header].empty()) is_header[header] = true;
    for (const NodeId latch : back_[header]) add(latch);
    for (std::size_t i = 0; i < body.size(); ++i) {
      for (const NodeId predecessor : into_[body[i]]) add(predecessor);
    }
    for (const NodeId node : body) {
      header_of[node] = header;
      sets_.Merge(node, header);
    }
  }

  const DepthFirst& search_;
  UnionFind sets_;
  std::vector<std::vector<NodeId>> into_;  ///< predecessors, back edges left out
  std::vector<std::vector<NodeId>> back_;  ///< sources of back edges
  std::vector<std::vector<Edge>> cross_;   ///< forward and cross edges, at the nearest common ancestor
  std::vector<NodeId> mark_;               ///< the last loop a set was put into
  std::vector<IrregularEntry> irregular_;
};

}  // namespace

LoopNest::LoopNest(const Graph& graph, NodeId root) : loop_of_(graph.size(), kNoLoop) {
  const DepthFirst search(graph, root);
  HeaderFinder finder(graph, search);
  finder.Run();
  Build(search, finder.header_of, finder.is_header);
  for (const NodeId node : search.preorder) {
    for (const NodeId to : graph.successors[node]) {
      const LoopId loop = loop_of_[to];
      if (loop != kNoLoop && loops_[loop].header == to && search.IsAncestor(to, node))
        loops_[loop].latches.push_back(node);
    }
  }
  // Each irregular entry marks the loops from the one entered up to `top`: counted at both ends, summed up the nest.
  std::vector<std::int64_t> count(loops_.size() + 1, 0);
  const auto above = [&](LoopId loop) { return loops_[loop].parent == kNoLoop ? loops_.size() : loops_[loop].parent; };
  for (const auto& [at, top] : finder.irregular()) {
    LoopId first = loop_of_[at];
    if (loops_[first].header == at) first = loops_[first].parent;
    ++count[first];
    --count[above(loop_of_[top])];
  }
  for (std::size_t i = loops_.size(); i-- > 0;) {
    loops_[i].irreducible = count[i] > 0;
    count[above(static_cast<LoopId>(i))] += count[i];
  }
}

void LoopNest::Build(const DepthFirst& search, const std::vector<NodeId>& header_of,
                     const std::vector<bool>& is_header) {
  // Headers are ancestors of what is in their loops, so in preorder a loop's parent is known before it; the final order
  // of loops is a preorder of the nest, in which each loop's members are consecutive.
  std::vector<std::vector<NodeId>> inner(search.number.size());
  std::vector<NodeId> outermost;
  for (const NodeId node : search.preorder) {
    if (!is_header[node]) continue;
    (header_of[node] == kNoNode ? outermost : inner[header_of[node]]).push_back(node);
  }
  std::vector<NodeId> stack(outermost.rbegin(), outermost.rend());
  while (!stack.empty()) {
    const NodeId header = stack.back();
    stack.pop_back();
    const NodeId around = header_of[header];
    const LoopId parent = around == kNoNode ? kNoLoop : loop_of_[around];
    loop_of_[header] = static_cast<LoopId>(loops_.size());
    loops_.push_back({.header = header, .parent = parent, .depth = parent == kNoLoop ? 1 : loops_[parent].depth + 1});
    stack.insert(stack.end(), inner[header].rbegin(), inner[header].rend());
  }
  end_.resize(loops_.size());
  for (LoopId i = 0; i < loops_.size(); ++i) end_[i] = i + 1;
  for (std::size_t i = loops_.size(); i-- > 0;) {
    if (const LoopId parent = loops_[i].parent; parent != kNoLoop) end_[parent] = std::max(end_[parent], end_[i]);
  }
  for (const NodeId node : search.preorder) {
    if (!is_header[node] && header_of[node] != kNoNode) loop_of_[node] = loop_of_[header_of[node]];
    if (loop_of_[node] != kNoLoop) nodes_.push_back(node);
  }
  std::stable_sort(nodes_.begin(), nodes_.end(), [&](NodeId a, NodeId b) { return loop_of_[a] < loop_of_[b]; });
  first_.assign(loops_.size() + 1, 0);
  for (const NodeId node : nodes_) ++first_[loop_of_[node] + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
}

bool LoopNest::Contains(LoopId loop, NodeId node) const {
  return loop_of_[node] != kNoLoop && IsInside(loop_of_[node], loop);
}

std::span<const NodeId> LoopNest::Nodes(LoopId loop) const {
  return std::span(nodes_).subspan(first_[loop], first_[end_[loop]] - first_[loop]);
}

}  // namespace gridloom::analysis
