// BFS (Merrill, Garland and Grimshaw): levels of a graph's vertices, level by level. Two kernels a level: one expands
// the frontier to the list of all its neighbours, one contracts that list to those that nobody had reached. The flat
// form is the exception of the paper's 5.1: it does not leave long lists to single threads, a CTA or a warp helps; the
// CDP form has child grids in the place of that.
#include <deque>

#include "dtbl/graph.h"

constexpr int kThreads = 128, kChildThreads = 32;

/// Copies a part of a list with as many lanes as there are.
__device__ inline void CopyList(int* to, const int* from, int count, int lane, int lanes) {
#pragma unroll 1
  for (int i = lane; i < count; i += lanes) to[i] = from[i];
}

__global__ void Gather(int* to, const int* from, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

/// What one thread has to copy, as it tells the others of its CTA or warp.
struct List {
  const int* from;
  int* to;
  int count;
};

/// The CTA copies the lists that have an element for each of its threads, one after the other.
__device__ inline void CopyByCta(List& mine) {
  __shared__ List shared;
  __shared__ int next;
  while (__syncthreads_or(mine.count >= kThreads)) {
    if (threadIdx.x == 0) next = kThreads;
    __syncthreads();
    if (mine.count >= kThreads) atomicMin(&next, static_cast<int>(threadIdx.x));
    __syncthreads();
    if (threadIdx.x == next) {
      shared = mine;
      mine.count = 0;
    }
    __syncthreads();
    CopyList(shared.to, shared.from, shared.count, threadIdx.x, kThreads);
  }
}

__device__ inline void CopyByWarp(List& mine) {
  const int lane = threadIdx.x % 32;
  for (unsigned votes; (votes = __ballot_sync(~0u, mine.count >= 32)) != 0;) {
    const int whose = __ffs(votes) - 1;
    const auto from = __shfl_sync(~0u, reinterpret_cast<unsigned long long>(mine.from), whose);
    const auto to = __shfl_sync(~0u, reinterpret_cast<unsigned long long>(mine.to), whose);
    const int count = __shfl_sync(~0u, mine.count, whose);
    CopyList(reinterpret_cast<int*>(to), reinterpret_cast<const int*>(from), count, lane, 32);
    if (lane == whose) mine.count = 0;
  }
}

template <Form kForm>
__global__ void Expand(const int* first, const int* to, const int* frontier, int count, int* neighbours,
                       int* neighbour_count, Nesting nesting) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  List mine = {to, neighbours, 0};
  if (i < count) {
    const int vertex = frontier[i];
    mine.count = first[vertex + 1] - first[vertex];
    mine.from = to + first[vertex];
    mine.to = neighbours + atomicAdd(neighbour_count, mine.count);
  }
  if constexpr (kForm == Form::kFlat) {
    CopyByCta(mine);
    CopyByWarp(mine);
  } else if (mine.count >= nesting.threshold) {
    LaunchChild<Gather, kChildThreads>(nesting, mine.count, mine.to, mine.from, mine.count);
    mine.count = 0;
  }
  CopyList(mine.to, mine.from, mine.count, 0, 1);
}

/// Of all who reach a vertex at once the first one has it; they write the same level.
__global__ void Contract(const int* neighbours, int count, int* levels, int level, int* frontier, int* frontier_count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count && atomicCAS(&levels[neighbours[i]], -1, level) == -1)
    frontier[atomicAdd(frontier_count, 1)] = neighbours[i];
}

std::vector<int> LevelsOnHost(const Graph& graph, int source, Program& program) {
  std::vector<int> levels(graph.vertices(), -1);
  std::deque<int> queue = {source};
  for (levels[source] = 0; !queue.empty(); queue.pop_front()) {
    const int vertex = queue.front();
    program.Nested(graph.Degree(vertex), kChildThreads);
    for (int i = graph.first[vertex]; i < graph.first[vertex + 1]; ++i) {
      if (levels[graph.to[i]] >= 0) continue;
      levels[graph.to[i]] = levels[vertex] + 1;
      queue.push_back(graph.to[i]);
    }
  }
  return levels;
}

int main(int argc, char** argv) {
  Program program("bfs", "breadth-first search, level by level", argc, argv,
                  {{"citation", 32, "citation network"},
                   {"road", 32, "road network"},
                   {"cage15", 16, "matrix of DNA electrophoresis"}},
                  {{"vertices", 4096, 262144, 4, 1 << 24}});
  const Graph graph = MakeGraph(program);
  const DeviceGraph device(graph);
  const int source = Hub(graph);
  std::vector<int> no_levels(graph.vertices(), -1);
  no_levels[source] = 0;
  const DeviceArray<int> levels(no_levels), frontier(graph.vertices()), neighbours(graph.edges());
  const DeviceValue<int> frontier_count(0), neighbour_count(0);
  const Nesting nesting = program.Nest(graph.vertices());
  const auto expand = program.flat() ? Expand<Form::kFlat> : Expand<Form::kCdp>;

  CU(cudaMemcpy(frontier, &source, sizeof source, cudaMemcpyHostToDevice));
  int level = 0;
  for (int count = 1; count > 0; count = frontier_count.Read()) {
    neighbour_count.Write(0);
    expand<<<Ctas(count, kThreads), kThreads>>>(device.first, device.to, frontier, count, neighbours, neighbour_count,
                                                nesting);
    program.Launched();
    frontier_count.Write(0);
    ++level;
    const int reached = neighbour_count.Read();
    if (reached == 0) break;
    Contract<<<Ctas(reached, kThreads), kThreads>>>(neighbours, reached, levels, level, frontier, frontier_count);
    program.Launched();
  }
  program.Compare("level", levels.Read(), LevelsOnHost(graph, source, program));
  program.Say(level, " levels from vertex ", source);
  return program.Finish();
}
