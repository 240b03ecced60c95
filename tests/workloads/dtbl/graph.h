// Graphs for bfs, clr and sssp: stand-ins, of any size, for those that the paper names (Table 4). They are not shipped;
// what is copied from each is what the paper's effects come from: how many neighbours the vertices have, how much that
// differs, and how far apart in memory they are. Sizes of the originals are those of the SuiteSparse Matrix Collection
// (group DIMACS10, vanHeukelum), in which the graphs of the 10th DIMACS Implementation Challenge stand, and of
// OpenFlights in KONECT.
#pragma once

#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "dtbl/program.h"

/// Compressed rows: the neighbours of v are to[first[v]] to to[first[v + 1] - 1], in ascending order.
struct Graph {
  std::vector<int> first, to, weights;
  int vertices() const { return static_cast<int>(first.size()) - 1; }
  int edges() const { return static_cast<int>(to.size()); }
  int Degree(int vertex) const { return first[vertex + 1] - first[vertex]; }
};

struct DeviceGraph {
  explicit DeviceGraph(const Graph& graph) : first(graph.first), to(graph.to), weights(graph.weights) {}
  const DeviceArray<int> first, to, weights;
};

using Edges = std::vector<std::pair<int, int>>;

/// Each edge leads both ways, and weighs 1 to 1000 either way; loops and repeated edges are dropped.
inline Graph Symmetric(int vertices, Edges edges, Random& random) {
  const std::size_t count = edges.size();
  for (std::size_t i = 0; i < count; ++i) edges.emplace_back(edges[i].second, edges[i].first);
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  Graph graph;
  graph.first.assign(vertices + 1, 0);
  for (const auto& [from, to] : edges) {
    if (from == to) continue;
    ++graph.first[from + 1];
    graph.to.push_back(to);
    graph.weights.push_back(1 + static_cast<int>(random.Next() % 1000));
  }
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  return graph;
}

/// A number from a power law: P(x) ~ x^-exponent from `least` on, cut off at `most`.
inline int PowerLaw(Random& random, double least, double most, double exponent) {
  const double uniform = random.Uniform(0, 1), low = std::pow(least, 1 - exponent), high = std::pow(most, 1 - exponent);
  return static_cast<int>(std::pow(low + uniform * (high - low), 1 / (1 - exponent)));
}

/// citationCiteseer has 268,495 vertices and 1,156,647 edges, so 8.6 neighbours on average; the most that a vertex has
/// is 1,318. Degrees of citation networks follow a power law with an exponent of 2.7. Each paper cites earlier ones:
/// half of them by how often they are cited already.
inline Graph Citation(int vertices, std::uint64_t seed) {
  Random random(seed);
  Edges edges;
  std::vector<int> cited = {0};
  for (int paper = 1; paper < vertices; ++paper) {
    const int cites = std::min(paper, PowerLaw(random, 2, 100, 2.7));
    for (int i = 0; i < cites; ++i) {
      const bool preferred = random.Next() % 2 == 0;
      const int other = preferred ? cited[random.Next() % cited.size()] : static_cast<int>(random.Next() % paper);
      edges.emplace_back(paper, other);
    }
    for (int i = 0; i < cites; ++i) cited.push_back(edges[edges.size() - 1 - i].second);
    cited.push_back(paper);
  }
  return Symmetric(vertices, std::move(edges), random);
}

/// road_usa has 23,947,347 vertices and 28,854,312 edges: 2.41 neighbours on average, 9 at most; it is connected,
/// nearly planar and thousands of edges wide. Here: a random spanning tree of a lattice with diagonals, and edges of
/// the lattice until there are enough; junctions near to each other have numbers near to each other, out of order.
inline Graph Road(int vertices, std::uint64_t seed) {
  Random random(seed);
  const int side = std::max(2, static_cast<int>(std::sqrt(static_cast<double>(vertices))));
  const int count = side * side;
  std::vector<int> number(count), root(count);
  std::iota(number.begin(), number.end(), 0);
  std::iota(root.begin(), root.end(), 0);
  for (int i = 0; i < count; ++i)
    std::swap(number[i], number[std::min(count - 1, i / 64 * 64 + static_cast<int>(random.Next() % 64))]);
  Edges lattice, edges;
  for (int at = 0; at < count; ++at) {
    if (at % side + 1 < side) lattice.emplace_back(at, at + 1);
    if (at + side < count) lattice.emplace_back(at, at + side);
    if (at % side + 1 < side && at + side < count && random.Next() % 50 == 0) lattice.emplace_back(at, at + side + 1);
  }
  for (std::size_t i = lattice.size(); i > 1; --i) std::swap(lattice[i - 1], lattice[random.Next() % i]);
  const auto top = [&root](int vertex) {
    while (root[vertex] != vertex) vertex = root[vertex] = root[root[vertex]];
    return vertex;
  };
  int more = static_cast<int>(count * 0.205);
  for (const auto& [from, to] : lattice) {
    const int one = top(from), other = top(to);
    if (one == other && more-- <= 0) continue;
    root[one] = other;
    edges.emplace_back(number[from], number[to]);
  }
  return Symmetric(count, std::move(edges), random);
}

/// cage15 has 5,154,859 rows and, without the diagonal, 94,044,692 entries at symmetric places: 18.2 neighbours on
/// average, 2 to 46. Some are near, others far away in memory (5.2 A of the paper: a "distributed neighbor list", a
/// "relatively small variance in vertex degree").
inline Graph Cage(int vertices, std::uint64_t seed) {
  Random random(seed);
  std::vector<int> distances;
  for (double distance = 16; distance < vertices / 3.0; distance *= 1.6)
    distances.push_back(static_cast<int>(distance));
  if (distances.empty()) distances.push_back(1);
  Edges edges;
  for (int vertex = 0; vertex < vertices; ++vertex) {
    const int draws = 3 + static_cast<int>(random.Next() % 7 + random.Next() % 8);
    for (int i = 0; i < draws; ++i) {
      const int near = 1 + static_cast<int>(random.Next() % 24);
      const int far = distances[random.Next() % distances.size()] + static_cast<int>(random.Next() % 4);
      edges.emplace_back(vertex, static_cast<int>((vertex + static_cast<long>(i % 2 == 0 ? near : far)) % vertices));
    }
  }
  return Symmetric(vertices, std::move(edges), random);
}

/// kron_g500-logn20 has 1,048,576 vertices and 44,620,272 edges, drawn 48 a vertex from the Kronecker matrix of Graph
/// 500 (0.57, 0.19; 0.19, 0.05): 85 neighbours on average, a quarter of the vertices with none, some with a tenth of
/// all.
inline Graph Kronecker(int vertices, int each, std::uint64_t seed) {
  Random random(seed);
  int bits = 1;
  while ((1 << bits) < vertices) ++bits;
  std::vector<int> number(std::size_t{1} << bits);
  std::iota(number.begin(), number.end(), 0);
  for (std::size_t i = number.size(); i > 1; --i) std::swap(number[i - 1], number[random.Next() % i]);
  Edges edges;
  for (long i = 0; i < static_cast<long>(each) << bits; ++i) {
    int from = 0, to = 0;
    for (int bit = 0; bit < bits; ++bit) {
      const int percent = static_cast<int>(random.Next() % 100);
      from = from * 2 + (percent >= 76);
      to = to * 2 + (percent >= 95 || (percent >= 57 && percent < 76));
    }
    edges.emplace_back(number[from], number[to]);
  }
  return Symmetric(1 << bits, std::move(edges), random);
}

/// The paper says of the same graph that its vertex degrees are "very balanced" (5.2 C), which a Kronecker graph's are
/// not. So there is another one, of as many edges, whose vertices are much alike.
inline Graph Balanced(int vertices, int each, std::uint64_t seed) {
  Random random(seed);
  Edges edges;
  for (int vertex = 0; vertex < vertices; ++vertex) {
    for (int i = 0; i < each; ++i) edges.emplace_back(vertex, static_cast<int>(random.Next() % vertices));
  }
  return Symmetric(vertices, std::move(edges), random);
}

/// OpenFlights (KONECT) has 2,939 airports and 30,501 routes: 20.8 in and out on average, 473 at most, exponent 1.74;
/// most have few. Here, edges between airports drawn as often as their numbers from the power law say.
inline Graph Flight(int vertices, std::uint64_t seed) {
  Random random(seed);
  std::vector<int> ends;
  for (int airport = 0; airport < vertices; ++airport) {
    ends.insert(ends.end(), PowerLaw(random, 1, std::max(2, vertices / 6), 1.75), airport);
  }
  Edges edges;
  for (std::size_t i = 0; i < ends.size() / 2; ++i)
    edges.emplace_back(ends[random.Next() % ends.size()], ends[random.Next() % ends.size()]);
  return Symmetric(vertices, std::move(edges), random);
}

/// The graph that --input names.
inline Graph MakeGraph(const Program& program) {
  const int vertices = program["vertices"];
  const std::string input = program.input();
  Graph graph = input == "citation"   ? Citation(vertices, program.seed())
                : input == "road"     ? Road(vertices, program.seed())
                : input == "cage15"   ? Cage(vertices, program.seed())
                : input == "graph500" ? Kronecker(vertices, program["draws"], program.seed())
                : input == "balanced" ? Balanced(vertices, program["draws"], program.seed())
                                      : Flight(vertices, program.seed());
  int most = 0;
  for (int vertex = 0; vertex < graph.vertices(); ++vertex) most = std::max(most, graph.Degree(vertex));
  program.Say(graph.vertices(), " vertices, ", graph.edges(), " directed edges, ",
              static_cast<double>(graph.edges()) / graph.vertices(), " neighbours on average, ", most, " at most");
  return graph;
}

/// The vertex with the most neighbours: where searches begin, so that they reach much.
inline int Hub(const Graph& graph) {
  int hub = 0;
  for (int vertex = 1; vertex < graph.vertices(); ++vertex) {
    if (graph.Degree(vertex) > graph.Degree(hub)) hub = vertex;
  }
  return hub;
}
