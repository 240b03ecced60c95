// BFS (Rodinia): levels of a graph's nodes, level by level. Two kernels a level: one goes from the frontier to its
// neighbours, one makes them the next frontier and tells the host whether there are any; the host looks before it goes
// on. Which nodes are touched is known only from the edges.
#include <deque>

#include "crcs/program.h"

struct Node {
  int first, degree;  ///< its edges
};
using Mask = unsigned char;

/// All who write to an element in one launch write the same value.
__global__ void Expand(const Node* nodes, const int* edges, Mask* frontier, Mask* next, const Mask* visited,
                       int* levels, int count) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= count || frontier[node] == 0) return;
  frontier[node] = 0;
  const int end = nodes[node].first + nodes[node].degree;
#pragma unroll 1
  for (int i = nodes[node].first; i < end; ++i) {
    const int neighbour = edges[i];
    if (visited[neighbour] != 0) continue;
    levels[neighbour] = levels[node] + 1;
    next[neighbour] = 1;
  }
}

__global__ void Promote(Mask* frontier, Mask* next, Mask* visited, int* more, int count) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= count || next[node] == 0) return;
  frontier[node] = 1;
  visited[node] = 1;
  next[node] = 0;
  *more = 1;
}

struct Graph {
  std::vector<Node> nodes;
  std::vector<int> edges;
};

/// Each node draws two to four neighbours among all, and is theirs in turn: about six edges a node. With this seed node
/// 0 reaches all that it reaches in 8 levels, at the paper's size as at the small one: the paper's 16 launches.
Graph UniformGraph(int count) {
  Random random(10);
  std::vector<std::vector<int>> neighbours(count);
  for (int node = 0; node < count; ++node) {
    for (int left = 2 + static_cast<int>(random.Next() % 3); left > 0; --left) {
      const int other = static_cast<int>(random.Next() % count);
      neighbours[node].push_back(other);
      neighbours[other].push_back(node);
    }
  }
  Graph graph;
  for (const std::vector<int>& list : neighbours) {
    graph.nodes.push_back({static_cast<int>(graph.edges.size()), static_cast<int>(list.size())});
    graph.edges.insert(graph.edges.end(), list.begin(), list.end());
  }
  return graph;
}

void CheckGraph(const Input<Node>& nodes, const Input<int>& edges) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node node = nodes[i];
    if (node.first >= 0 && node.degree >= 0 && static_cast<std::size_t>(node.first) + node.degree <= edges.size())
      continue;
    Refuse("bfs: node " + std::to_string(i) + " has edges that the file of edges does not have");
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (edges[i] < 0 || static_cast<std::size_t>(edges[i]) >= nodes.size())
      Refuse("bfs: edge " + std::to_string(i) + " leads to no node");
  }
}

/// Levels from node 0; -1 for nodes that it does not reach.
std::vector<int> Levels(const Input<Node>& nodes, const Input<int>& edges) {
  std::vector<int> levels(nodes.size(), -1);
  std::deque<int> queue = {0};
  for (levels[0] = 0; !queue.empty(); queue.pop_front()) {
    const Node node = nodes[queue.front()];
    for (int i = node.first; i < node.first + node.degree; ++i) {
      if (levels[edges[i]] >= 0) continue;
      levels[edges[i]] = levels[queue.front()] + 1;
      queue.push_back(edges[i]);
    }
  }
  return levels;
}

int main(int argc, char** argv) {
  // The paper: 16384 nodes in 32 CTAs, 8 levels, so 16 launches. Scaled: 32 CTAs, too, and as many levels.
  Program program("bfs", argc, argv, {{"nodes", 4096, 16384, 1, 1 << 24}, {"threads", 128, 512, 32, 1024, 32}});
  const int count = program["nodes"], threads = program["threads"], ctas = Ctas(count, threads);
  const Input<Node> nodes(program, "nodes", count, [count] { return UniformGraph(count).nodes; });
  const Input<int> edges(program, "edges", [count] { return UniformGraph(count).edges; });
  const HostArray<Mask> first_frontier(count), none(count);
  const HostArray<int> levels(count);
  const DeviceArray<Node> device_nodes(count);
  const DeviceArray<int> device_edges(edges.size()), device_levels(count), more(1);
  const DeviceArray<Mask> frontier(count), next(count), visited(count);

  program.Prelude();
  CheckGraph(nodes, edges);
  for (int i = 0; i < count; ++i) {
    first_frontier[i] = i == 0;
    none[i] = 0;
    levels[i] = i == 0 ? 0 : -1;
  }
  device_nodes.CopyFrom(nodes.data());
  device_edges.CopyFrom(edges.data());
  frontier.CopyFrom(first_frontier.data());
  next.CopyFrom(none.data());
  visited.CopyFrom(first_frontier.data());
  device_levels.CopyFrom(levels.data());
  for (int again = 1; again != 0;) {
    again = 0;
    CU(cudaMemcpy(more, &again, sizeof again, cudaMemcpyHostToDevice));
    Expand<<<ctas, threads>>>(device_nodes, device_edges, frontier, next, visited, device_levels, count);
    program.Launched();
    Promote<<<ctas, threads>>>(frontier, next, visited, more, count);
    program.Launched();
    CU(cudaMemcpy(&again, more, sizeof again, cudaMemcpyDeviceToHost));
  }
  device_levels.CopyTo(levels.data());
  program.Postlude(levels);

  return program.Finish(Levels(nodes, edges));
}
