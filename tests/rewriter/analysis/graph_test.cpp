// Dominators, loops and components against slow definitions of the same, on hand-made and random graphs.
#include "rewriter/analysis/graph.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <random>
#include <set>

#include "rewriter/analysis/dominators.h"
#include "rewriter/analysis/loops.h"

namespace gridloom::analysis {
namespace {

Graph FromEdges(std::size_t nodes, const std::vector<std::pair<NodeId, NodeId>>& edges) {
  Graph graph(nodes);
  for (const auto& [from, to] : edges) graph.AddEdge(from, to);
  return graph;
}

Graph RandomGraph(std::mt19937& random, NodeId nodes, NodeId edges) {
  Graph graph(nodes);
  // A backbone keeps most nodes reachable; some graphs have unreachable parts all the same.
  for (NodeId node = 1; node < nodes; ++node) {
    if (random() % 10 != 0) graph.AddEdge(random() % 3 == 0 ? random() % node : node - 1, node);
  }
  for (NodeId i = 0; i < edges; ++i) graph.AddEdge(random() % nodes, random() % nodes);
  return graph;
}

/// What `from` reaches without passing through `without` and, when given, without leaving `allowed`.
std::set<NodeId> ReachedFrom(const Graph& graph, NodeId from, NodeId without,
                             const std::set<NodeId>* allowed = nullptr) {
  std::set<NodeId> reached;
  std::vector<NodeId> work;
  const auto add = [&](NodeId node) {
    if (node != without && (allowed == nullptr || allowed->contains(node)) && reached.insert(node).second)
      work.push_back(node);
  };
  add(from);
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    for (const NodeId successor : graph.successors[node]) add(successor);
  }
  return reached;
}

void CheckDominators(const Graph& graph, NodeId root) {
  const DominatorTree tree(graph, root);
  const std::set<NodeId> reachable = ReachedFrom(graph, root, kNoNode);
  for (NodeId node = 0; node < graph.size(); ++node) CHECK(tree.Reaches(node) == reachable.contains(node));
  for (const NodeId dominator : reachable) {
    const std::set<NodeId> without = ReachedFrom(graph, root, dominator);
    for (const NodeId node : reachable) CHECK(tree.Dominates(dominator, node) == !without.contains(node));
  }
  for (const NodeId node : reachable) {
    if (node == root) continue;
    const NodeId parent = tree.parent(node);
    REQUIRE(parent != kNoNode);
    for (const NodeId other : reachable) {
      if (other != node && tree.Dominates(other, node)) CHECK(tree.Dominates(other, parent));
    }
  }
}

/// A loop is what can get back to its header among the descendants of the header in the search tree (Havlak 1997); it
/// is irreducible when some edge comes from outside to another node of it.
void CheckLoops(const Graph& graph, NodeId root) {
  const DepthFirst search(graph, root);
  const LoopNest nest(graph, root);
  std::set<NodeId> headers;
  for (LoopId id = 0; id < nest.loops().size(); ++id) {
    const Loop& loop = nest.loops()[id];
    CHECK(headers.insert(loop.header).second);
    std::set<NodeId> below;
    for (const NodeId node : search.preorder) {
      if (search.IsAncestor(loop.header, node)) below.insert(node);
    }
    const Graph reversed = graph.Reversed();
    const std::set<NodeId> expected = ReachedFrom(reversed, loop.header, kNoNode, &below);
    const auto nodes = nest.Nodes(id);
    CHECK(std::set<NodeId>(nodes.begin(), nodes.end()) == expected);
    CHECK(nodes.size() == expected.size());
    bool irregular = false;
    for (const NodeId node : search.preorder) {
      CHECK(nest.Contains(id, node) == expected.contains(node));
      for (const NodeId to : graph.successors[node])
        irregular |= !expected.contains(node) && expected.contains(to) && to != loop.header;
    }
    CHECK(loop.irreducible == irregular);
    if (loop.parent != kNoLoop) {
      CHECK(loop.parent < id);
      CHECK(nest.Contains(loop.parent, loop.header));
      CHECK(loop.depth == nest.loops()[loop.parent].depth + 1);
    } else {
      CHECK(loop.depth == 1);
    }
    CHECK(nest.LoopOf(loop.header) == id);
    for (const NodeId latch : loop.latches) CHECK(nest.Contains(id, latch));
  }
  // Every node on a cycle is in a loop.
  for (const NodeId node : search.preorder) {
    bool back = false;
    for (const NodeId successor : graph.successors[node]) back |= ReachedFrom(graph, successor, kNoNode).contains(node);
    CHECK(back == (nest.LoopOf(node) != kNoLoop));
  }
}

void CheckPostDominators(const Graph& graph, NodeId entry) {
  const PostDominatorTree tree(graph, entry);
  for (const NodeId node : ReachedFrom(graph, entry, kNoNode)) {
    CHECK(tree.parent(node) != kNoNode);
    const std::set<NodeId> from_here = ReachedFrom(graph, node, kNoNode);
    for (const NodeId later : from_here) {
      if (later == node || !tree.PostDominates(later, node)) continue;
      // Without it no node that leaves is reached.
      for (const NodeId other : ReachedFrom(graph, node, later)) CHECK_FALSE(graph.successors[other].empty());
    }
    for (const NodeId later : from_here) {
      if (later == node || tree.PostDominates(later, node)) continue;
      bool leaves = false, endless = false;
      for (const NodeId other : ReachedFrom(graph, node, later)) {
        leaves |= graph.successors[other].empty();
        for (const NodeId next : graph.successors[other]) endless |= ReachedFrom(graph, next, kNoNode).contains(other);
      }
      CHECK((leaves || endless));
    }
  }
}

}  // namespace

TEST_CASE("DominatorTree_Diamond_JoinIsDominatedByTheFork", "[analysis]") {
  const DominatorTree tree(FromEdges(5, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}}), 0);
  CHECK(tree.parent(3) == 0);
  CHECK(tree.parent(4) == 3);
  CHECK(tree.parent(0) == kNoNode);
}

TEST_CASE("PostDominatorTree_EndlessLoop_StillHasAnExit", "[analysis]") {
  const Graph graph = FromEdges(4, {{0, 1}, {1, 2}, {2, 1}, {0, 3}});
  const PostDominatorTree tree(graph, 0);
  CHECK(tree.parent(0) == tree.virtual_exit());
  CHECK(tree.parent(3) == tree.virtual_exit());
  CHECK(tree.parent(1) == 2);
}

TEST_CASE("PostDominatorTree_GuardedExit_BlockMayLeave", "[analysis]") {
  const Graph graph = FromEdges(3, {{0, 1}, {1, 2}});
  CHECK(PostDominatorTree(graph, 0).parent(1) == 2);
  const PostDominatorTree tree(graph, 0, {1});
  CHECK(tree.parent(1) == tree.virtual_exit());
}

TEST_CASE("LoopNest_NestedLoops_HaveDepths", "[analysis]") {
  const Graph graph = FromEdges(6, {{0, 1}, {1, 2}, {2, 3}, {3, 2}, {3, 4}, {4, 1}, {4, 5}});
  const LoopNest nest(graph, 0);
  REQUIRE(nest.loops().size() == 2);
  CHECK(nest.loops()[0].header == 1);
  CHECK(nest.loops()[0].latches == std::vector<NodeId>{4});
  CHECK(nest.loops()[1].header == 2);
  CHECK(nest.loops()[1].parent == 0);
  CHECK(nest.loops()[1].depth == 2);
  for (const Loop& loop : nest.loops()) CHECK_FALSE(loop.irreducible);
}

TEST_CASE("LoopNest_TwoEntries_Irreducible", "[analysis]") {
  const LoopNest nest(FromEdges(3, {{0, 1}, {0, 2}, {1, 2}, {2, 1}}), 0);
  REQUIRE(nest.loops().size() == 1);
  CHECK(nest.loops()[0].irreducible);
}

TEST_CASE("Graph_Random_DominatorsAndLoopsMatchTheirDefinitions", "[analysis]") {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const NodeId nodes = 1 + random() % 24;
    const Graph graph = RandomGraph(random, nodes, random() % (nodes + 4));
    INFO("round " << round);
    CheckDominators(graph, 0);
    CheckLoops(graph, 0);
    CheckPostDominators(graph, 0);
    const Components components(graph);
    for (NodeId a = 0; a < nodes; ++a) {
      const auto from_a = ReachedFrom(graph, a, kNoNode);
      for (const NodeId b : from_a) {
        CHECK((components.of[a] == components.of[b]) == ReachedFrom(graph, b, kNoNode).contains(a));
        CHECK(components.of[a] >= components.of[b]);
      }
    }
  }
}

TEST_CASE("Graph_Large_NearLinear", "[analysis]") {
  // Shapes that make simple algorithms quadratic: a chain of back edges to every header, a ladder, deep nests.
  const NodeId nodes = 60'000;
  Graph nested(nodes), ladder(nodes), fan(nodes);
  for (NodeId node = 0; node + 1 < nodes; ++node) {
    nested.AddEdge(node, node + 1);
    if (node >= nodes / 2) nested.AddEdge(node, nodes - 1 - node);
    ladder.AddEdge(node, node + 1);
    if (node + 2 < nodes) ladder.AddEdge(node, node + 2);
    if (node > 2) ladder.AddEdge(node, node - 2);
    fan.AddEdge(node, node + 1);
    fan.AddEdge(0, node + 1);
    fan.AddEdge(node, 0);
  }
  const std::clock_t start = std::clock();
  for (const Graph* graph : {&nested, &ladder, &fan}) {
    const DominatorTree dominators(*graph, 0);
    const PostDominatorTree post(*graph, 0);
    const LoopNest loops(*graph, 0);
    CHECK_FALSE(loops.loops().empty());
  }
  CHECK(std::clock() - start < 5 * CLOCKS_PER_SEC);  // CPU time: other work on the machine does not count
}

}  // namespace gridloom::analysis
