// SSSP (Kulkarni et al., Lonestar): shortest ways from one vertex, by relaxation from a work list. Two kernels an
// iteration: one relaxes the edges of all listed vertices, one settles the distances that came of it, which are what
// the next iteration starts from. Distances of one iteration do not depend on each other, so that work lists, and with
// them launches, are the same in each run.
#include <climits>
#include <functional>
#include <queue>

#include "dtbl/graph.h"

constexpr int kThreads = 128, kChildThreads = 32;

struct Search {
  const int *to, *weights;
  int* tentative;  ///< the shortest way known
  int* listed;     ///< whether a vertex is in the next list
  int *next, *next_count;
};

__device__ inline void RelaxEdge(const Search& search, int edge, int distance) {
  const int vertex = search.to[edge], longer = distance + search.weights[edge];
  if (atomicMin(&search.tentative[vertex], longer) <= longer || atomicExch(&search.listed[vertex], 1) != 0) return;
  search.next[atomicAdd(search.next_count, 1)] = vertex;
}

__global__ void RelaxEdges(Search search, int begin, int count, int distance) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) RelaxEdge(search, begin + i, distance);
}

template <Form kForm>
__global__ void Relax(Search search, const int* first, const int* settled, const int* list, int count,
                      Nesting nesting) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const int vertex = list[i], begin = first[vertex], degree = first[vertex + 1] - begin, distance = settled[vertex];
  if constexpr (kForm == Form::kCdp) {
    if (degree >= nesting.threshold) {
      LaunchChild<RelaxEdges, kChildThreads>(nesting, degree, search, begin, degree, distance);
      return;
    }
  }
  for (int edge = begin; edge < begin + degree; ++edge) RelaxEdge(search, edge, distance);
}

__global__ void Settle(const int* list, int count, const int* tentative, int* settled, int* listed) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  settled[list[i]] = tentative[list[i]];
  listed[list[i]] = 0;
}

/// Dijkstra's: nothing in common with the device but the graph.
std::vector<int> DistancesOnHost(const Graph& graph, int source) {
  std::vector<int> distances(graph.vertices(), INT_MAX);
  std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>> queue;
  distances[source] = 0;
  for (queue.emplace(0, source); !queue.empty();) {
    const auto [distance, vertex] = queue.top();
    queue.pop();
    if (distance > distances[vertex]) continue;
    for (int i = graph.first[vertex]; i < graph.first[vertex + 1]; ++i) {
      const int longer = distance + graph.weights[i];
      if (longer >= distances[graph.to[i]]) continue;
      distances[graph.to[i]] = longer;
      queue.emplace(longer, graph.to[i]);
    }
  }
  return distances;
}

/// Which vertices are in which list; the number of iterations.
int ListsOnHost(const Graph& graph, int source, Program& program) {
  std::vector<int> settled(graph.vertices(), INT_MAX), list = {source};
  settled[source] = 0;
  int iterations = 0;
  for (; !list.empty(); ++iterations) {
    std::vector<int> tentative = settled, next;
    for (const int vertex : list) {
      program.Nested(graph.Degree(vertex), kChildThreads);
      for (int i = graph.first[vertex]; i < graph.first[vertex + 1]; ++i) {
        int& other = tentative[graph.to[i]];
        other = std::min(other, settled[vertex] + graph.weights[i]);
        next.push_back(graph.to[i]);
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    list.clear();
    for (const int vertex : next) {
      if (tentative[vertex] < settled[vertex]) list.push_back(vertex);
    }
    settled = tentative;
  }
  return iterations;
}

int main(int argc, char** argv) {
  Program program("sssp", "single-source shortest paths, by work lists", argc, argv,
                  {{"citation", 32, "citation network"},
                   {"flight", 32, "airports and routes"},
                   {"cage15", 16, "matrix of DNA electrophoresis"}},
                  {{"vertices", 2048, 262144, 4, 1 << 24}});
  const Graph graph = MakeGraph(program);
  const DeviceGraph device(graph);
  const int source = Hub(graph), count = graph.vertices();
  std::vector<int> start(count, INT_MAX);
  start[source] = 0;
  const DeviceArray<int> settled(start), tentative(start), listed(std::vector<int>(count, 0)), one(count), other(count);
  const DeviceValue<int> next_count(0);
  const Nesting nesting = program.Nest(count);
  const auto relax = program.flat() ? Relax<Form::kFlat> : Relax<Form::kCdp>;

  CU(cudaMemcpy(one, &source, sizeof source, cudaMemcpyHostToDevice));
  int iterations = 0;
  for (int listed_now = 1; listed_now > 0; ++iterations) {
    int *const list = iterations % 2 == 0 ? one : other, *const next = iterations % 2 == 0 ? other : one;
    next_count.Write(0);
    const Search search = {device.to, device.weights, tentative, listed, next, next_count};
    relax<<<Ctas(listed_now, kThreads), kThreads>>>(search, device.first, settled, list, listed_now, nesting);
    program.Launched();
    listed_now = next_count.Read();
    if (listed_now == 0) continue;
    Settle<<<Ctas(listed_now, kThreads), kThreads>>>(next, listed_now, tentative, settled, listed);
    program.Launched();
  }
  program.Compare("distance", settled.Read(), DistancesOnHost(graph, source));
  program.Compare("iterations", std::vector<int>{iterations}, {ListsOnHost(graph, source, program)});
  program.Say(iterations, " iterations from vertex ", source);
  return program.Finish();
}
