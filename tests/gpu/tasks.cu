// Kernels for the MasterKernel's test: each as a plain launch and as a task has to give the same. Compiled to PTX,
// rewritten by the pass `task`, loaded by master_kernel.
#include <cstdint>

extern "C" {

__global__ void Scale(std::uint32_t* out, const std::uint32_t* in, std::uint32_t n, std::uint32_t factor) {
  const std::uint32_t stride = gridDim.x * blockDim.x;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) out[i] = in[i] * factor + i;
}

/// Sums of blocks through shared memory: barriers in a loop that all threads go round equally often.
__global__ void Sums(std::uint32_t* out, const std::uint32_t* in, std::uint32_t n) {
  __shared__ std::uint32_t part[512];
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0;
  for (std::uint32_t width = 1; width < blockDim.x; width *= 2) {
    __syncthreads();
    const std::uint32_t more = threadIdx.x >= width ? part[threadIdx.x - width] : 0;
    __syncthreads();
    part[threadIdx.x] += more;
  }
  out[i] = part[threadIdx.x] + blockIdx.x;
}

/// Threads beyond n end before the others wait for each other.
__global__ void Early(std::uint32_t* out, const std::uint32_t* in, std::uint32_t n) {
  extern __shared__ std::uint32_t words[];
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  words[threadIdx.x] = 7;
  if (i >= n) return;
  for (std::uint32_t round = 0; round < 3 + blockIdx.x % 2; ++round) {
    words[threadIdx.x] = in[i] + round;
    __syncthreads();
    const std::uint32_t next = threadIdx.x + 1;
    const bool lives = next < blockDim.x && i + 1 < n;
    const std::uint32_t other = lives ? words[next] : 1;
    __syncthreads();
    out[i] = out[i] * 31 + other;
  }
}

/// Blocks of two and three dimensions in grids of three.
__global__ void Corners(std::uint32_t* out, std::uint32_t nx, std::uint32_t ny, std::uint32_t nz) {
  const std::uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
                      z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < nx && y < ny && z < nz)
    out[(z * ny + y) * nx + x] = x + 1000 * y + 1000000 * z + gridDim.x * 7 + gridDim.y * 11 + gridDim.z * 13 +
                                 blockDim.x * blockDim.y * blockDim.z;
}

__device__ __noinline__ std::uint32_t Turned(const std::uint32_t* words, std::uint32_t side) {
  return words[threadIdx.x * side + threadIdx.y] ^ blockIdx.x;
}

/// Static and dynamic shared memory, a function that asks for its place.
__global__ void Turn(std::uint32_t* out, const std::uint32_t* in, std::uint32_t n) {
  __shared__ std::uint32_t tile[16 * 17];
  extern __shared__ std::uint32_t words[];
  const std::uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x,
                      i = blockIdx.x * blockDim.x * blockDim.y + thread;
  tile[threadIdx.y * 17 + threadIdx.x] = i < n ? in[i] : i;
  words[thread] = thread;
  __syncthreads();
  if (i < n) out[i] = Turned(tile, 17) + words[blockDim.x * blockDim.y - 1 - thread];
}

/// Wide parameters and a loop whose length differs by thread and task.
struct Wide {
  std::uint64_t values[9];
  std::uint16_t few[5];
};
__global__ void Mix(std::uint64_t* out, Wide wide, std::uint32_t n, std::uint32_t rounds) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  std::uint64_t value = wide.values[i % 9] + wide.few[i % 5];
  for (std::uint32_t round = 0; round < rounds * (i % 7 + 1); ++round)
    value = value * 6364136223846793005u + 1442695040888963407u + (value >> 33);
  out[i] = value;
}

/// Lanes exchange values under conditions that are the same for a warp: some warps only, others end before, each warp
/// another number of times, as long as a vote says.
__global__ void Chosen(std::uint32_t* out, const std::uint32_t* in, std::uint32_t which) {
  const std::uint32_t thread = threadIdx.y * blockDim.x + threadIdx.x, warp = thread / 32,
                      i = blockIdx.x * blockDim.x * blockDim.y + thread;
  std::uint32_t value = in[i % 4096];
  out[i] = value;
  if (warp == which) value += __shfl_down_sync(0xFFFFFFFF, value, 3);
  if (thread < 32) value ^= __ballot_sync(0xFFFFFFFF, value % 3 == 0);
  for (std::uint32_t round = 0; round < warp; ++round) value += __shfl_xor_sync(0xFFFFFFFF, value, 1 + round % 16);
  while (__any_sync(0xFFFFFFFF, value % 5 != 0)) value -= value % 5 != 0 ? 1 : 0;
  out[i] = value;
  if (warp > which) return;
  const std::uint32_t first = __shfl_sync(0xFFFFFFFF, value, 0);
  if (first % 2 == 0) value += __shfl_up_sync(0xFFFFFFFF, value, 1) * 7;
  out[i] = value;
}
}
