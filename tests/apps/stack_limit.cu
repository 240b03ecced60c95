// cudaLimitStackSize: recursion and alloca as deep as the limit allows, in kernels of the host's and of other kernels';
// what is asked of it.
#include "app.h"

constexpr int kFrame = 256;  // bytes of a frame's array

/// Each level fills an array, goes deeper, and finds the array as it left it.
__device__ __noinline__ unsigned Deep(int levels, unsigned seed) {
  volatile unsigned mine[kFrame / 4];
  for (int i = 0; i < kFrame / 4; ++i) mine[i] = seed * 31u + i;
  unsigned sum = levels > 1 ? Deep(levels - 1, seed + 1) : 0;
  for (int i = 0; i < kFrame / 4; ++i) sum += mine[i];
  return sum;
}
__host__ unsigned Expected(int levels, unsigned seed) {
  unsigned sum = 0;
  for (int level = 0; level < levels; ++level, ++seed)
    for (int i = 0; i < kFrame / 4; ++i) sum += seed * 31u + i;
  return sum;
}
__global__ void Recursive(unsigned* out, int levels) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = Deep(levels - static_cast<int>(t % 3), t);
}
/// Without memory of its own: what a level needs is in registers, on a GPU in its frame.
__host__ __device__ unsigned Mixed(unsigned below, unsigned n) { return (below * 3) ^ n; }
__device__ __noinline__ unsigned Mix(unsigned n) { return n == 0 ? 1 : Mixed(Mix(n - 1), n); }
__global__ void Mixing(unsigned* out, unsigned n) { out[threadIdx.x] = Mix(n); }

__global__ void Dynamic(unsigned* out, int bytes) {
  const unsigned t = threadIdx.x;
  volatile auto* const mine = static_cast<unsigned*>(alloca(bytes));
  for (int i = 0; i < bytes / 4; ++i) mine[i] = t + i;
  unsigned sum = 0;
  for (int i = 0; i < bytes / 4; ++i) sum += mine[i];
  out[t] = sum;
}
__global__ void Flat(unsigned* out, int at) {
  volatile unsigned mine[512];
  for (int i = 0; i < 512; ++i) mine[i] = i;
  out[threadIdx.x] = mine[at + threadIdx.x];
}
__global__ void Parent(unsigned* out, int levels) { Recursive<<<1, 64>>>(out, levels); }

template <class Kernel>
std::size_t LocalBytes(Kernel kernel) {
  cudaFuncAttributes attributes;
  CU(cudaFuncGetAttributes(&attributes, kernel));
  return attributes.localSizeBytes;
}
template <class Kernel>
int Blocks(Kernel kernel) {
  int blocks = 0;
  CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0));
  return blocks;
}
void CheckDeep(const char* what, const std::vector<unsigned>& got, int levels) {
  for (unsigned t = 0; t < got.size(); ++t) Same(what, t, got[t], Expected(levels - static_cast<int>(t % 3), t));
}

int main() {
  std::size_t limit = 0;
  CU(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  Same<std::size_t>("default", 0, limit, 1024);
  const std::size_t flat = LocalBytes(Flat), before = LocalBytes(Recursive);
  True("frames of callees count", before >= kFrame && flat >= 2048);

  const int stack = 64 << 10, levels = stack / (kFrame + 64);
  CU(cudaDeviceSetLimit(cudaLimitStackSize, stack));
  CU(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  Same<std::size_t>("limit", 0, limit, stack);
  Same<std::size_t>("static frames", 0, LocalBytes(Flat), flat);
  Same<std::size_t>("open frames", 0, LocalBytes(Recursive), before + stack - 1024);
  True("occupancy", Blocks(Recursive) >= 1);

  Buffer<unsigned> out(4 * 64);
  Recursive<<<4, 64>>>(out, levels);
  CU_LAUNCHED();
  CheckDeep("deep", out.Read(), levels);
  unsigned mixed = 1;
  for (unsigned n = 1; n <= 1500; ++n) mixed = Mixed(mixed, n);
  Mixing<<<1, 64>>>(out, 1500);
  CU_LAUNCHED();
  Same("mixed", 63, out.Read()[63], mixed);
  const int bytes = stack - 1024;
  Dynamic<<<1, 64>>>(out, bytes);
  CU_LAUNCHED();
  const auto sums = out.Read();
  for (unsigned t = 0; t < 64; ++t)
    Same("alloca", t, sums[t], t * (bytes / 4) + unsigned(bytes / 4) * unsigned(bytes / 4 - 1) / 2);
  Buffer<unsigned> of_child(64);
  Parent<<<1, 1>>>(of_child, levels);
  CU_LAUNCHED();
  CheckDeep("launched by a kernel", of_child.Read(), levels);

  // A launch keeps the limit that it was launched with; what is smaller holds for later ones.
  Recursive<<<4, 64>>>(out, levels);
  CU(cudaDeviceSetLimit(cudaLimitStackSize, 1024));
  CU_LAUNCHED();
  CheckDeep("launched before", out.Read(), levels);
  Flat<<<1, 64>>>(out, 7);
  CU_LAUNCHED();
  Same("flat", 5, out.Read()[5], 12u);

  Error("beyond the architecture", cudaDeviceSetLimit(cudaLimitStackSize, std::size_t{1} << 30), cudaErrorInvalidValue);
  cudaGetLastError();
  CU(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  Same<std::size_t>("as it was", 0, limit, 1024);
  return Verdict();
}
