// Cooperative launches: grid.sync between phases, occupancy-sized grids, too large a grid refused; a hand-written grid
// barrier.
#include <cooperative_groups.h>

#include "app.h"

namespace cg = cooperative_groups;

// Jacobi steps on a ring: every step reads what all blocks wrote in the step before.
__global__ void Ring(double* a, double* b, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  for (int s = 0; s < steps; ++s) {
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size())
      b[i] = 0.5 * a[(i + n - 1) % n] + 0.5 * a[(i + 1) % n];
    grid.sync();
    double* swap = a;
    a = b, b = swap;
  }
}
__device__ unsigned g_arrived;
__global__ void HandMade(int* data, int* out, int rounds) {
  const int n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    data[i] = r * n + i;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(&g_arrived, 1u);
      while (*const_cast<volatile unsigned*>(&g_arrived) < (2 * r + 1) * gridDim.x) {
      }
    }
    __syncthreads();
    out[i] = *const_cast<volatile int*>(&data[(i + blockDim.x * (r + 1)) % n]);
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicAdd(&g_arrived, 1u);
      while (*const_cast<volatile unsigned*>(&g_arrived) < (2 * r + 2) * gridDim.x) {
      }
    }
    __syncthreads();
  }
}

int main() {
  int cooperative = 0, multiprocessors = 0, per_sm = 0;
  CU(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  CU(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  True("attribute", cooperative == 1);
  CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, Ring, 64, 0));

  const int n = 1013, steps = 9;
  std::vector<double> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = i * 31 % 101;
  Buffer<double> da(a), db(n);
  double *pa = da, *pb = db;
  int count = n, rounds = steps;
  void* arguments[] = {&pa, &pb, &count, &rounds};
  CU(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Ring), dim3(11), dim3(64), arguments, 0, nullptr));
  CU_LAUNCHED();
  for (int s = 0; s < steps; ++s) {
    for (int i = 0; i < n; ++i) b[i] = 0.5 * a[(i + n - 1) % n] + 0.5 * a[(i + 1) % n];
    std::swap(a, b);
  }
  const auto got = (steps % 2 ? db : da).Read();
  for (int i = 0; i < n; ++i) Same("ring", i, got[i], a[i]);

  Error("too large",
        cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Ring), dim3(per_sm * multiprocessors + 1), dim3(64),
                                    arguments, 0, nullptr),
        cudaErrorCooperativeLaunchTooLarge);
  cudaGetLastError();

  const int blocks = 6, threads = 33, total = blocks * threads;
  Buffer<int> data(total), out(total);
  HandMade<<<blocks, threads>>>(data, out, 4);
  CU_LAUNCHED();
  const auto o = out.Read();
  for (int i = 0; i < total; ++i) Same("hand-made", i, o[i], 3 * total + (i + threads * 4) % total);
  return Verdict();
}
