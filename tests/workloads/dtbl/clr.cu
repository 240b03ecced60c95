// CLR (Cohen and Castonguay): colours of a graph's vertices such that neighbours differ. Each vertex has a random key.
// In a round, all vertices without a colour whose key is greater than that of all neighbours without one take a new
// colour, and those whose key is less take another one. Two kernels a round: one compares keys, one gives colours; what
// the first one reads does not change while it runs.
#include "dtbl/graph.h"

constexpr int kThreads = 128, kChildThreads = 32;
constexpr int kNone = -1;
constexpr int kNotGreatest = 1, kNotLeast = 2;  ///< what a vertex has been found to be, in this round

struct Colouring {
  const int *first, *to;
  const unsigned* keys;  ///< all different
  const int* colours;
};

/// What a neighbour makes of a vertex.
__device__ inline int CompareKeys(const Colouring& graph, int vertex, int edge) {
  const int neighbour = graph.to[edge];
  if (graph.colours[neighbour] != kNone) return 0;
  return graph.keys[neighbour] > graph.keys[vertex] ? kNotGreatest : kNotLeast;
}

__global__ void CompareNeighbours(Colouring graph, int vertex, int begin, int count, int* found) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int is = i < count ? CompareKeys(graph, vertex, begin + i) : 0;
  if (is != 0 && (*static_cast<volatile int*>(found) & is) == 0) atomicOr(found, is);
}

template <Form kForm>
__global__ void Compare(Colouring graph, int count, int* found, Nesting nesting) {
  const int vertex = blockIdx.x * kThreads + threadIdx.x;
  if (vertex >= count || graph.colours[vertex] != kNone) return;
  const int begin = graph.first[vertex], degree = graph.first[vertex + 1] - begin;
  if constexpr (kForm == Form::kCdp) {
    if (degree >= nesting.threshold) {
      LaunchChild<CompareNeighbours, kChildThreads>(nesting, degree, graph, vertex, begin, degree, found + vertex);
      return;
    }
  }
  int is = 0;
  for (int edge = begin; edge < begin + degree; ++edge) is |= CompareKeys(graph, vertex, edge);
  found[vertex] = is;
}

__global__ void GiveColours(int* colours, int* found, int count, int round, int* left) {
  const int vertex = blockIdx.x * kThreads + threadIdx.x;
  if (vertex >= count || colours[vertex] != kNone) return;
  if ((found[vertex] & kNotGreatest) == 0) colours[vertex] = 2 * round;
  else if ((found[vertex] & kNotLeast) == 0) colours[vertex] = 2 * round + 1;
  else atomicAdd(left, 1);
  found[vertex] = 0;
}

/// The same rounds, from lists of the vertices that are left.
std::vector<int> ColoursOnHost(const Graph& graph, const std::vector<unsigned>& keys, Program& program) {
  std::vector<int> colours(graph.vertices(), kNone), left(graph.vertices());
  std::iota(left.begin(), left.end(), 0);
  for (int round = 0; !left.empty(); ++round) {
    std::vector<int> greatest, least, rest;
    for (const int vertex : left) {
      program.Nested(graph.Degree(vertex), kChildThreads);
      unsigned high = 0, low = ~0u;
      for (int i = graph.first[vertex]; i < graph.first[vertex + 1]; ++i) {
        if (colours[graph.to[i]] != kNone) continue;
        high = std::max(high, keys[graph.to[i]]);
        low = std::min(low, keys[graph.to[i]]);
      }
      (keys[vertex] >= high ? greatest : keys[vertex] <= low ? least : rest).push_back(vertex);
    }
    for (const int vertex : greatest) colours[vertex] = 2 * round;
    for (const int vertex : least) colours[vertex] = 2 * round + 1;
    left = rest;
  }
  return colours;
}

/// A permutation, so that no two are equal.
std::vector<unsigned> RandomKeys(int count, std::uint64_t seed) {
  Random random(seed + 1000);
  std::vector<unsigned> keys(count);
  std::iota(keys.begin(), keys.end(), 1u);
  for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[random.Next() % i]);
  return keys;
}

int main(int argc, char** argv) {
  Program program("clr", "graph colouring, by random keys", argc, argv,
                  {{"citation", 32, "citation network"},
                   {"graph500", 32, "Kronecker graph of Graph 500"},
                   {"cage15", 16, "matrix of DNA electrophoresis"},
                   {"balanced", 32, "as many edges as graph500, vertices much alike"}},
                  {{"vertices", 1024, 32768, 4, 1 << 20}, {"draws", 24, 48, 1, 64}});
  const Graph graph = MakeGraph(program);
  const DeviceGraph device(graph);
  const int count = graph.vertices(), ctas = Ctas(count, kThreads);
  const std::vector<unsigned> host_keys = RandomKeys(count, program.seed());
  const DeviceArray<unsigned> keys(host_keys);
  const DeviceArray<int> colours(std::vector<int>(count, kNone)), found(std::vector<int>(count, 0));
  const DeviceValue<int> left(0);
  const Nesting nesting = program.Nest(count);
  const auto compare = program.flat() ? Compare<Form::kFlat> : Compare<Form::kCdp>;

  int round = 0;
  for (int more = 1; more > 0; more = left.Read(), ++round) {
    left.Write(0);
    compare<<<ctas, kThreads>>>(Colouring{device.first, device.to, keys, colours}, count, found, nesting);
    program.Launched();
    GiveColours<<<ctas, kThreads>>>(colours, found, count, round, left);
    program.Launched();
  }
  const std::vector<int> got = colours.Read();
  program.Compare("colour", got, ColoursOnHost(graph, host_keys, program));
  bool proper = true;
  for (int vertex = 0; vertex < count; ++vertex) {
    for (int i = graph.first[vertex]; i < graph.first[vertex + 1]; ++i)
      proper = proper && got[vertex] != got[graph.to[i]];
  }
  program.Check("neighbours have one colour", proper);
  program.Say(round, " rounds, ", 1 + *std::max_element(got.begin(), got.end()), " colours at most");
  return program.Finish();
}
