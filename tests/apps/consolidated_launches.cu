// Many small launches by kernels, of all shapes, by lanes that launch together and alone, in loops and in functions,
// nested, with barriers and without: what `run --consolidate` makes few launches of. Every thread of every child writes
// what it sees.
#include <vector>

#include "app.h"

/// Parameters of all widths, some of them in the middle of others.
struct Odd {
  char tag;
  short low;
  double weight;
  unsigned char bytes[5];
};

struct Shape {
  unsigned grid[3], block[3];
  __host__ __device__ unsigned threads() const { return grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2]; }
};

__host__ __device__ inline unsigned Mix(unsigned value) {
  value = (value ^ 61) ^ (value >> 16);
  value *= 9;
  value ^= value >> 4;
  value *= 0x27d4eb2d;
  return value ^ (value >> 15);
}

/// Of launch `id`: few shapes of blocks, so that some lanes have the same.
__host__ __device__ inline Shape ShapeOf(unsigned id) {
  const unsigned r = Mix(id);
  Shape shape = {{1 + r % 3, 1 + (r >> 4) % 2, 1 + (r >> 6) % 2}, {32, 1, 1}};
  if ((r >> 8) % 4 == 1) shape.block[0] = 5, shape.block[1] = 3, shape.block[2] = 2;
  if ((r >> 8) % 4 == 2) shape.block[0] = 8, shape.block[1] = 4;
  return shape;
}

__host__ __device__ inline unsigned Value(unsigned id, const Odd& odd, unsigned place) {
  return Mix(id * 977 + place + odd.tag * 3 + odd.low * 5 + static_cast<unsigned>(odd.weight) * 7 + odd.bytes[4] * 11);
}
__host__ __device__ inline Odd OddOf(unsigned id) {
  return {static_cast<char>(id % 50),
          static_cast<short>(id % 1000),
          id * 0.5,
          {0, 0, 0, 0, static_cast<unsigned char>(id)}};
}

constexpr unsigned kMost = 384;  // threads of a child

__device__ inline unsigned Place() {
  const unsigned cta = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return cta * blockDim.x * blockDim.y * blockDim.z + thread;
}

__global__ void Mark(Odd odd, unsigned* out, char pad, unsigned id) {
  if (pad != 7) return;
  out[id * kMost + Place()] += Value(id, odd, Place());
}

/// The same, of which a thread needs the others.
__global__ void MarkTogether(Odd odd, unsigned* out, unsigned id) {
  extern __shared__ unsigned places[];
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  places[threads - 1 - thread] = Place();
  __syncthreads();
  const unsigned place = places[thread];
  out[id * kMost + place] += Value(id, odd, place);
}

__device__ inline void Launch(unsigned* out, unsigned id, cudaStream_t stream) {
  const Shape shape = ShapeOf(id);
  const dim3 grid(shape.grid[0], shape.grid[1], shape.grid[2]), block(shape.block[0], shape.block[1], shape.block[2]);
  if (id % 3 != 0) Mark<<<grid, block, 0, stream>>>(OddOf(id), out, 7, id);
  else MarkTogether<<<grid, block, shape.threads() * 4, stream>>>(OddOf(id), out, id);
}

/// Each thread launches some, in a loop of its own length; some go into the NULL stream.
__global__ void Loops(unsigned* out, unsigned each) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned n = 0; n < Mix(i) % (each + 1); ++n) {
    const unsigned id = i * each + n;
    Launch(out, id, Mix(id) % 5 == 0 ? cudaStream_t(nullptr) : cudaStreamFireAndForget);
  }
}

__device__ __noinline__ void InFunction(unsigned* out, unsigned id) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  Launch(out, id, stream);
  cudaStreamDestroy(stream);
  if (id % 7 == 0) asm volatile("exit;");
}
__global__ void Functions(unsigned* out, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (Mix(i) % 2 == 0) InFunction(out, i);
  __syncwarp(__activemask());
  if (Mix(i) % 2 == 1) Launch(out, i, cudaStreamFireAndForget);
}

/// A tree: each thread is a node and launches its children.
__global__ void Tree(unsigned* out, unsigned first, unsigned end, unsigned nodes, unsigned fan) {
  const unsigned i = first + blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= end) return;
  atomicAdd(&out[i], Mix(i));
  const unsigned child = i * fan + 1;
  if (child < nodes)
    Tree<<<2, (fan + 1) / 2, 0, cudaStreamFireAndForget>>>(out, child, min(nodes, child + fan), nodes, fan);
}

__global__ void Nothing(int, int*) {}
__global__ void Errors(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  Nothing<<<i % 4 == 1 ? 0 : 1, i % 4 == 2 ? 2000 : 1, i % 4 == 3 ? 1 << 30 : 0, cudaStreamFireAndForget>>>(i, out);
  out[i] = cudaGetLastError() == cudaSuccess;
}

void Check(const char* what, const std::vector<unsigned>& out, const std::vector<bool>& launched) {
  for (unsigned id = 0; id < launched.size(); ++id) {
    const unsigned threads = ShapeOf(id).threads();
    for (unsigned place = 0; place < kMost; ++place) {
      const unsigned want = launched[id] && place < threads ? Value(id, OddOf(id), place) : 0;
      if (out[id * kMost + place] != want)
        Same(what, static_cast<int>(id * kMost + place), out[id * kMost + place], want);
    }
  }
}

int main() {
  CU(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8192));
  constexpr unsigned kParents = 300, kEach = 5;
  Buffer<unsigned> out(kParents * kEach * kMost);
  CU(cudaMemset(out, 0, kParents * kEach * kMost * 4));
  Loops<<<3, 100>>>(out, kEach);
  CU_LAUNCHED();
  std::vector<bool> launched(kParents * kEach);
  for (unsigned i = 0; i < launched.size(); ++i) launched[i] = i % kEach < Mix(i / kEach) % (kEach + 1);
  Check("loops", out.Read(), launched);

  CU(cudaMemset(out, 0, kParents * kEach * kMost * 4));
  Functions<<<5, 64>>>(out, kParents);
  CU_LAUNCHED();
  Check("functions", out.Read(), std::vector<bool>(kParents, true));

  constexpr unsigned kNodes = 3000, kFan = 6;
  CU(cudaMemset(out, 0, kNodes * 4));
  Tree<<<1, 1>>>(out, 0, 1, kNodes, kFan);
  CU_LAUNCHED();
  const auto tree = out.Read();
  for (unsigned i = 0; i < kNodes; ++i) {
    if (tree[i] != Mix(i)) Same("tree", static_cast<int>(i), tree[i], Mix(i));
  }

  Buffer<int> errors(64);
  Errors<<<1, 64>>>(errors);
  CU_LAUNCHED();
  for (int i = 0; i < 64; ++i) Same("errors", i, errors.Read()[i], i % 4 == 0 ? 1 : 0);
  return Verdict();
}
