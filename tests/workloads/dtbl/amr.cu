// AMR: a mesh that is refined where it is hot. A cell as hot as the limit becomes 32 cells (4 x 4 x 2), which are cells
// in their turn. The flat form goes level by level from the host: a thread has a cell, and makes its 32 cells in a
// loop. The CDP form begins with one grid; each hot cell is a child grid of the same kernel, which launches children of
// its own (4.1, Figure 2a).
#include <cmath>

#include "dtbl/program.h"

constexpr int kThreads = 128, kCells = 32, kRootBits = 12;

/// Where a cell is: the number of its root cell, and five bits a level below it. A 1 stands before all, so that paths
/// of all levels differ.
using Path = unsigned long long;

struct Mesh {
  float* temperatures;
  Path* paths;
  int* count;
  int capacity, depth;
  float limit;
};

/// Which of the cells in a cell has the heat.
__host__ __device__ inline int HotSpot(Path path) {
  path ^= path >> 31;
  path *= 0x9E3779B97F4A7C15u;
  return static_cast<int>(path >> 59);
}

/// Heat falls with the square of the distance from the hot spot. All sums are of small whole numbers, so that there is
/// one quotient and one product that can be rounded, alike on the host and the device.
__host__ __device__ inline float CellTemperature(float parent, Path parent_path, int cell) {
  const int hot = HotSpot(parent_path);
  const int x = cell % 4 - hot % 4, y = cell / 4 % 4 - hot / 4 % 4, z = cell / 16 - hot / 16;
  return parent * (0.875f / static_cast<float>(1 + x * x + y * y + z * z));
}

/// Room for the cells of a cell; nobody may have taken more than the host counted.
__device__ inline int TakeCells(const Mesh& mesh) {
  const int at = atomicAdd(mesh.count, kCells);
  return at + kCells <= mesh.capacity ? at : -1;
}

/// One level: cells `begin` to `end`.
__global__ void RefineLevel(Mesh mesh, int begin, int end) {
  const int cell = begin + blockIdx.x * kThreads + threadIdx.x;
  if (cell >= end || mesh.temperatures[cell] < mesh.limit) return;
  const int at = TakeCells(mesh);
  if (at < 0) return;
  for (int i = 0; i < kCells; ++i) {
    mesh.temperatures[at + i] = CellTemperature(mesh.temperatures[cell], mesh.paths[cell], i);
    mesh.paths[at + i] = mesh.paths[cell] << 5 | i;
  }
}

/// A grid of cells, and all that is below them. Those of the root are there; others have a parent to be made from.
__global__ void RefineNested(Mesh mesh, int begin, int count, int level, float parent, Path parent_path,
                             Nesting nesting) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (level > 0) {
    mesh.temperatures[begin + i] = CellTemperature(parent, parent_path, i);
    mesh.paths[begin + i] = parent_path << 5 | i;
  }
  if (level == mesh.depth || mesh.temperatures[begin + i] < mesh.limit) return;
  const int at = TakeCells(mesh);
  if (at < 0) return;
  LaunchChild<RefineNested, kCells>(nesting, kCells, mesh, at, kCells, level + 1, mesh.temperatures[begin + i],
                                    mesh.paths[begin + i], nesting);
}

/// The paper's input is a combustion simulation, of which nothing is published. This one is a flame: a ring that is
/// hot, in cells that are not.
std::vector<float> Flame(int side, float most, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> temperatures;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const float from_middle = std::hypot(x + 0.5f - side / 2.0f, y + 0.5f - side / 2.0f) / side;
      const bool hot = std::fabs(from_middle - 0.35f) < 0.06f;
      temperatures.push_back(hot ? random.Uniform(0.2f, 1) * most : random.Uniform(20, 90));
    }
  }
  return temperatures;
}

struct HostMesh {
  std::vector<std::pair<Path, float>> cells;
  std::vector<int> refined;  ///< by level
};

/// Cell by cell, in depth first order.
void RefineOnHost(HostMesh& mesh, Path path, float temperature, int level, float limit) {
  mesh.cells.emplace_back(path, temperature);
  if (level + 1 == static_cast<int>(mesh.refined.size()) || temperature < limit) return;
  ++mesh.refined[level];
  for (int i = 0; i < kCells; ++i)
    RefineOnHost(mesh, path << 5 | i, CellTemperature(temperature, path, i), level + 1, limit);
}

int main(int argc, char** argv) {
  Program program("amr", "adaptive mesh refinement", argc, argv, {{"combustion", kCells, "a ring of flame"}},
                  {{"side", 16, 48, 1, 1 << kRootBits / 2},
                   {"depth", 4, 8, 1, 9},
                   {"limit", 100, 100, 1, 1 << 20},
                   {"heat", 500, 1500, 1, 1 << 20}});
  if (program.threshold() > kCells)
    Refuse("amr: --threshold is more than the 32 cells of a cell: nothing could be refined");
  const int side = program["side"], roots = side * side, depth = program["depth"];
  const float limit = static_cast<float>(program["limit"]);
  const std::vector<float> flame = Flame(side, static_cast<float>(program["heat"]), program.seed());
  HostMesh want{{}, std::vector<int>(depth + 1, 0)};
  for (int i = 0; i < roots; ++i) RefineOnHost(want, (Path{1} << kRootBits) + i, flame[i], 0, limit);
  if (want.cells.size() > std::size_t{1} << 28) Refuse("amr: more than 268435456 cells");
  int most_refined = 0;
  for (const int refined : want.refined) {
    most_refined = std::max(most_refined, refined);
    for (int i = 0; i < refined; ++i) program.Nested(kCells, kCells);
  }

  const int capacity = static_cast<int>(want.cells.size());
  const DeviceArray<float> temperatures(capacity);
  const DeviceArray<Path> paths(capacity);
  const DeviceValue<int> count(roots);
  std::vector<Path> root_paths(roots);
  for (int i = 0; i < roots; ++i) root_paths[i] = (Path{1} << kRootBits) + i;
  CU(cudaMemcpy(temperatures, flame.data(), roots * sizeof(float), cudaMemcpyHostToDevice));
  CU(cudaMemcpy(paths, root_paths.data(), roots * sizeof(Path), cudaMemcpyHostToDevice));
  const Mesh mesh = {temperatures, paths, count, capacity, depth, limit};
  const Nesting nesting = program.Nest(capacity / kCells);
  if (program.flat()) {
    for (int level = 0, begin = 0, end = roots; level < depth && begin < end; ++level) {
      RefineLevel<<<Ctas(end - begin, kThreads), kThreads>>>(mesh, begin, end);
      program.Launched();
      begin = end;
      end = std::min(count.Read(), capacity);
    }
  } else {
    RefineNested<<<Ctas(roots, kCells), kCells>>>(mesh, 0, roots, 0, 0, 0, nesting);
    program.Launched();
  }

  // Cells lie in the order in which there was room for them; paths bring them into one that is always the same.
  program.Compare("cells", std::vector<int>{count.Read()}, {capacity});
  const std::vector<Path> got_paths = paths.Read();
  const std::vector<float> got_temperatures = temperatures.Read();
  std::vector<std::pair<Path, float>> got;
  for (int i = 0; i < capacity; ++i) got.emplace_back(got_paths[i], got_temperatures[i]);
  std::sort(got.begin(), got.end());
  std::sort(want.cells.begin(), want.cells.end());
  std::vector<Path> path, want_path;
  std::vector<float> temperature, want_temperature;
  for (int i = 0; i < capacity; ++i) {
    path.push_back(got[i].first), temperature.push_back(got[i].second);
    want_path.push_back(want.cells[i].first), want_temperature.push_back(want.cells[i].second);
  }
  program.Compare("path", path, want_path);
  program.Compare("temperature", temperature, want_temperature);
  program.Say(capacity, " cells, ", most_refined, " refined in one level at most");
  return program.Finish();
}
