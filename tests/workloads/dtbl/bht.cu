// BHT (Burtscher and Pingali, Lonestar): forces between bodies, by a tree of cubes (Barnes and Hut). The tree is built
// from the root: a cube of too many bodies becomes eight. In the flat form a thread splits a cube, level by level; in
// the CDP form a CTA does, and launches the next one for each of the eight that must be split again. Then each body
// goes down the tree, and adds up the pull of the cubes that are far enough, and of the bodies of leaves that are not:
// the nested work. Last, bodies move. Not as there: places are whole numbers, and so are sums of them and of forces, in
// a unit far below the least force. So the order of bodies in a leaf, and of children, does not matter, and all results
// are exact.
#include <cmath>
#include <map>

#include "dtbl/program.h"

constexpr int kThreads = 64, kChildThreads = 32, kSplitThreads = 64;
constexpr int kBits = 20;  ///< of a coordinate: levels that a tree can have
constexpr int kStack = 7 * kBits + 8;
constexpr float kSoftening = 4096.0f * 4096.0f;       ///< square of the distance below which pulls do not grow
constexpr float kForceUnit = 1152921504606846976.0f;  ///< 2^60: how often a unit of force goes into 1
constexpr float kFar = 0.5f;  ///< a cube is far where its side squared is less than this part of the distance squared

using Wide = unsigned long long;  ///< sums, which wrap around below 0 as atomics do

struct Body {
  int x, y, z;
};

/// A cube; its bodies are those numbered order[level % 2][first] and on.
struct Node {
  int first, count, level;
  int children;  ///< the first of eight in a row; -1 for a leaf
  Wide path;     ///< three bits a level, behind a 1
  Wide x, y, z;  ///< sums over its bodies
};

struct Tree {
  const Body* bodies;
  Node* nodes;
  int* node_count;
  int* order[2];
  int node_capacity, leaf;  ///< bodies that a leaf may have
};

struct Sums {
  int count;
  Wide x, y, z;
};

__host__ __device__ inline int Octant(const Body& body, int level) {
  const int bit = kBits - 1 - level;
  return (body.x >> bit & 1) | (body.y >> bit & 1) << 1 | (body.z >> bit & 1) << 2;
}

__device__ inline bool Splits(const Tree& tree, const Node& node) {
  return node.count > tree.leaf && node.level < kBits;
}

/// Child `octant` of a cube, of which `sums` are known.
__device__ inline void WriteChild(const Tree& tree, const Node& parent, int children, int octant, int first,
                                  const Sums& sums) {
  tree.nodes[children + octant] = {first,  sums.count, parent.level + 1, -1, parent.path << 3 | octant, sums.x,
                                   sums.y, sums.z};
}

/// Room for eight cubes; nobody may have taken more than the host counted.
__device__ inline int TakeNodes(const Tree& tree) {
  const int at = atomicAdd(tree.node_count, 8);
  return at + 8 <= tree.node_capacity ? at : -1;
}

/// A thread splits a cube.
__global__ void SplitLevel(Tree tree, int begin, int end) {
  const int i = begin + blockIdx.x * kThreads + threadIdx.x;
  if (i >= end || !Splits(tree, tree.nodes[i])) return;
  const Node node = tree.nodes[i];
  const int *const from = tree.order[node.level % 2] + node.first, children = TakeNodes(tree);
  if (children < 0) return;
  int* const to = tree.order[(node.level + 1) % 2];
  Sums sums[8] = {};
#pragma unroll 1
  for (int j = 0; j < node.count; ++j) {
    const Body body = tree.bodies[from[j]];
    Sums& mine = sums[Octant(body, node.level)];
    ++mine.count;
    mine.x += body.x, mine.y += body.y, mine.z += body.z;
  }
  int places[8];
#pragma unroll 1
  for (int octant = 0, first = node.first; octant < 8; ++octant) {
    WriteChild(tree, node, children, octant, first, sums[octant]);
    places[octant] = first;
    first += sums[octant].count;
  }
#pragma unroll 1
  for (int j = 0; j < node.count; ++j) to[places[Octant(tree.bodies[from[j]], node.level)]++] = from[j];
  tree.nodes[i].children = children;
}

/// A CTA splits a cube, and launches one for each child that is to be split.
__global__ void SplitNested(Tree tree, int index, Nesting nesting) {
  __shared__ Sums sums[8];
  __shared__ int places[8], children;
  const Node node = tree.nodes[index];
  const int* const from = tree.order[node.level % 2] + node.first;
  int* const to = tree.order[(node.level + 1) % 2];
  if (threadIdx.x < 8) sums[threadIdx.x] = {};
  if (threadIdx.x == 0) children = TakeNodes(tree);
  __syncthreads();
  if (children < 0) return;
  for (int j = threadIdx.x; j < node.count; j += kSplitThreads) {
    const Body body = tree.bodies[from[j]];
    Sums& mine = sums[Octant(body, node.level)];
    atomicAdd(&mine.count, 1);
    atomicAdd(&mine.x, body.x), atomicAdd(&mine.y, body.y), atomicAdd(&mine.z, body.z);
  }
  __syncthreads();
  int first = node.first;
  if (threadIdx.x < 8) {
    for (int octant = 0; octant < threadIdx.x; ++octant) first += sums[octant].count;
    places[threadIdx.x] = first;
    WriteChild(tree, node, children, threadIdx.x, first, sums[threadIdx.x]);
  }
  if (threadIdx.x == 0) tree.nodes[index].children = children;
  __syncthreads();
  for (int j = threadIdx.x; j < node.count; j += kSplitThreads)
    to[atomicAdd(&places[Octant(tree.bodies[from[j]], node.level)], 1)] = from[j];
  __syncthreads();
  if (threadIdx.x < 8 && Splits(tree, tree.nodes[children + threadIdx.x])) {
    LaunchChild<SplitNested, kSplitThreads>(nesting, 1, tree, children + static_cast<int>(threadIdx.x), nesting);
  }
}

struct Force {
  Wide x, y, z;
};

__host__ __device__ inline float Squared(float x, float y, float z) { return fmaf(z, z, fmaf(y, y, x * x)); }

/// The pull of `mass` so far away, added to `force`. Each step is one operation that rounds alike on the host and the
/// device.
__host__ __device__ inline void Pull(Force& force, float x, float y, float z, float mass) {
  const float inverse = 1 / sqrtf(Squared(x, y, z) + kSoftening);
  const float strength = mass * inverse * inverse * inverse * kForceUnit;
  force.x += static_cast<Wide>(llrintf(strength * x));
  force.y += static_cast<Wide>(llrintf(strength * y));
  force.z += static_cast<Wide>(llrintf(strength * z));
}

__device__ inline void PullOfBody(Force& force, const Body& on, const Body& by) {
  Pull(force, static_cast<float>(by.x - on.x), static_cast<float>(by.y - on.y), static_cast<float>(by.z - on.z), 1);
}

__device__ inline void AddForce(Force* to, const Force& force) {
  atomicAdd(&to->x, force.x), atomicAdd(&to->y, force.y), atomicAdd(&to->z, force.z);
}

/// The bodies of a leaf, a thread each.
__global__ void PullOfLeaf(const Body* bodies, const int* list, int count, int on, Force* forces) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Force force = {};
  PullOfBody(force, bodies[on], bodies[list[i]]);
  AddForce(&forces[on], force);
}

/// Whether a cube is far from a body; if so it has pulled.
__host__ __device__ inline bool PullOfCube(Force& force, const Body& on, int level, int count, Wide sum_x, Wide sum_y,
                                           Wide sum_z) {
  const float mass = static_cast<float>(count), side = static_cast<float>(1 << (kBits - level));
  const float x = static_cast<float>(sum_x) / mass - on.x, y = static_cast<float>(sum_y) / mass - on.y,
              z = static_cast<float>(sum_z) / mass - on.z;
  if (side * side >= kFar * Squared(x, y, z)) return false;
  Pull(force, x, y, z, mass);
  return true;
}

template <Form kForm>
__global__ void Attract(Tree tree, int bodies, Force* forces, Nesting nesting) {
  const int on = blockIdx.x * kThreads + threadIdx.x;
  if (on >= bodies) return;
  const Body body = tree.bodies[on];
  Force force = {};
  int stack[kStack], depth = 0;
  for (stack[depth++] = 0; depth > 0;) {
    const Node node = tree.nodes[stack[--depth]];
    if (node.count == 0 || PullOfCube(force, body, node.level, node.count, node.x, node.y, node.z)) continue;
    if (node.children >= 0) {
      for (int octant = 7; octant >= 0; --octant) stack[depth++] = node.children + octant;
      continue;
    }
    const int* const list = tree.order[node.level % 2] + node.first;
    if constexpr (kForm == Form::kCdp) {
      if (node.count >= nesting.threshold) {
        LaunchChild<PullOfLeaf, kChildThreads>(nesting, node.count, tree.bodies, list, node.count, on, forces);
        continue;
      }
    }
    for (int i = 0; i < node.count; ++i) PullOfBody(force, body, tree.bodies[list[i]]);
  }
  AddForce(&forces[on], force);
}

/// The way of one step: a 2^28th of the force.
__global__ void Move(Body* bodies, const Force* forces, int count) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  bodies[i].x += static_cast<int>(static_cast<long long>(forces[i].x) >> 28);
  bodies[i].y += static_cast<int>(static_cast<long long>(forces[i].y) >> 28);
  bodies[i].z += static_cast<int>(static_cast<long long>(forces[i].z) >> 28);
}

/// The same tree from lists of bodies, cube by cube.
struct HostNode {
  int level = 0;
  std::vector<int> bodies;
  Wide x = 0, y = 0, z = 0;
  std::vector<HostNode> children;
};

struct HostTree {
  const std::vector<Body>& bodies;
  int leaf;
  std::map<Wide, Node> nodes = {};  ///< by path
  int splits_below_root = 0;

  void Build(HostNode& node, Wide path) {
    for (const int i : node.bodies) node.x += bodies[i].x, node.y += bodies[i].y, node.z += bodies[i].z;
    nodes[path] = {0, static_cast<int>(node.bodies.size()), node.level, -1, path, node.x, node.y, node.z};
    if (nodes[path].count <= leaf || node.level == kBits) return;
    nodes[path].children = 1;
    node.children.resize(8);
    for (const int i : node.bodies) node.children[Octant(bodies[i], node.level)].bodies.push_back(i);
    for (int octant = 0; octant < 8; ++octant) {
      node.children[octant].level = node.level + 1;
      Build(node.children[octant], path << 3 | octant);
    }
  }

  void Pulls(const HostNode& node, int on, Force& force, Program& program) const {
    const Body& body = bodies[on];
    const int count = static_cast<int>(node.bodies.size());
    if (count == 0 || PullOfCube(force, body, node.level, count, node.x, node.y, node.z)) return;
    for (const HostNode& child : node.children) Pulls(child, on, force, program);
    if (!node.children.empty()) return;
    program.Nested(count, kChildThreads);
    for (const int i : node.bodies) {
      Pull(force, static_cast<float>(bodies[i].x - body.x), static_cast<float>(bodies[i].y - body.y),
           static_cast<float>(bodies[i].z - body.z), 1);
    }
  }
};

/// Points of a cube, as likely here as there.
std::vector<Body> RandomBodies(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<Body> bodies(count);
  for (Body& body : bodies) {
    body.x = static_cast<int>(random.Next() >> (32 - kBits));
    body.y = static_cast<int>(random.Next() >> (32 - kBits));
    body.z = static_cast<int>(random.Next() >> (32 - kBits));
  }
  return bodies;
}

/// That the tree comes near what all pairs of bodies say: the greatest difference, beside the greatest force.
double WorstError(const std::vector<Body>& bodies, const std::vector<Force>& forces) {
  double worst = 0, greatest = 0;
  const std::size_t step = CheckEvery(bodies.size(), 256);
  for (std::size_t i = 0; i < bodies.size(); i += step) {
    double x = 0, y = 0, z = 0;
    for (const Body& other : bodies) {
      const double dx = other.x - bodies[i].x, dy = other.y - bodies[i].y, dz = other.z - bodies[i].z;
      const double strength = std::pow(dx * dx + dy * dy + dz * dz + kSoftening, -1.5) * kForceUnit;
      x += dx * strength, y += dy * strength, z += dz * strength;
    }
    const auto got = [](Wide force) { return static_cast<double>(static_cast<long long>(force)); };
    worst = std::max(worst, std::hypot(got(forces[i].x) - x, got(forces[i].y) - y, got(forces[i].z) - z));
    greatest = std::max(greatest, std::hypot(x, y, z));
  }
  return worst / greatest;
}

std::vector<Wide> Flattened(const std::map<Wide, Node>& nodes) {
  std::vector<Wide> values;
  for (const auto& [path, node] : nodes) {
    values.insert(values.end(), {path, static_cast<Wide>(node.count), static_cast<Wide>(node.level),
                                 node.children >= 0 ? 1u : 0u, node.x, node.y, node.z});
  }
  return values;
}

void CheckTree(Program& program, const HostTree& want, const std::vector<Node>& got) {
  std::map<Wide, Node> nodes;
  for (const Node& node : got) nodes[node.path] = node;
  program.Compare("node", Flattened(nodes), Flattened(want.nodes));
}

std::vector<Force> ForcesOnHost(const HostTree& tree, const HostNode& root, Program& program) {
  std::vector<Force> forces(tree.bodies.size(), Force{});
  for (std::size_t i = 0; i < forces.size(); ++i) tree.Pulls(root, static_cast<int>(i), forces[i], program);
  return forces;
}

void CheckBodies(Program& program, const std::vector<Body>& bodies, const std::vector<Force>& want,
                 const std::vector<Force>& got, const std::vector<Body>& moved) {
  std::vector<Wide> force, want_force;
  std::vector<int> place, want_place;
  const auto way = [](Wide along) { return static_cast<int>(static_cast<long long>(along) >> 28); };
  for (std::size_t i = 0; i < want.size(); ++i) {
    force.insert(force.end(), {got[i].x, got[i].y, got[i].z});
    want_force.insert(want_force.end(), {want[i].x, want[i].y, want[i].z});
    place.insert(place.end(), {moved[i].x, moved[i].y, moved[i].z});
    want_place.insert(want_place.end(),
                      {bodies[i].x + way(want[i].x), bodies[i].y + way(want[i].y), bodies[i].z + way(want[i].z)});
  }
  program.Compare("force", force, want_force);
  program.Compare("place", place, want_place);
  program.Check("forces are not near those of all pairs", WorstError(bodies, got) < 0.05);
}

int main(int argc, char** argv) {
  Program program("bht", "forces between bodies, by a tree", argc, argv, {{"points", 16, "random points"}},
                  {{"bodies", 2048, 32768, 1, 1 << 20}, {"leaf", 64, 64, 1, 1 << 20}});
  const int count = program["bodies"];
  if (program.threshold() > program["leaf"] + 1)
    Refuse("bht: --threshold is more than --leaf and 1: cubes that are split are children in any case");
  const std::vector<Body> host_bodies = RandomBodies(count, program.seed());
  HostTree want{host_bodies, program["leaf"]};
  HostNode root;
  Node first_node = {0, count, 0, -1, 1, 0, 0, 0};
  for (int i = 0; i < count; ++i) {
    root.bodies.push_back(i);
    first_node.x += host_bodies[i].x, first_node.y += host_bodies[i].y, first_node.z += host_bodies[i].z;
  }
  want.Build(root, 1);
  const int node_count = static_cast<int>(want.nodes.size());
  for (const auto& [path, node] : want.nodes) {
    if (path > 1 && node.children >= 0) program.NestedInGrid(node.count, kSplitThreads);
  }

  const DeviceArray<Body> bodies(host_bodies);
  const DeviceArray<Node> nodes(node_count);
  const DeviceArray<int> one(root.bodies), other(count);
  const DeviceArray<Force> forces(std::vector<Force>(count, Force{}));
  const DeviceValue<int> nodes_taken(1);
  CU(cudaMemcpy(nodes, &first_node, sizeof first_node, cudaMemcpyHostToDevice));
  const Tree tree = {bodies, nodes, nodes_taken, {one, other}, node_count, program["leaf"]};
  const std::vector<Force> want_forces = ForcesOnHost(want, root, program);
  const Nesting nesting = program.Nest(program.children());
  if (!program.flat() && count > program["leaf"]) {
    SplitNested<<<1, kSplitThreads>>>(tree, 0, nesting);
    program.Launched();
  }
  for (int begin = 0, end = 1; program.flat() && begin < end;) {
    SplitLevel<<<Ctas(end - begin, kThreads), kThreads>>>(tree, begin, end);
    program.Launched();
    begin = end;
    end = std::min(nodes_taken.Read(), node_count);
  }
  const auto attract = program.flat() ? Attract<Form::kFlat> : Attract<Form::kCdp>;
  attract<<<Ctas(count, kThreads), kThreads>>>(tree, count, forces, nesting);
  program.Launched();
  Move<<<Ctas(count, kThreads), kThreads>>>(bodies, forces, count);
  program.Launched();

  program.Compare("nodes", std::vector<int>{nodes_taken.Read()}, {node_count});
  CheckTree(program, want, nodes.Read());
  CheckBodies(program, host_bodies, want_forces, forces.Read(), bodies.Read());
  program.Say(node_count, " cubes, ", count, " bodies");
  return program.Finish();
}
