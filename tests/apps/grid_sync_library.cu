// The grid's barrier as functions of the device runtime library (numba's grid groups, cooperative groups of CUDA 9 and 10).
#include "app.h"

__global__ void Ring(int* a, int* b, int steps, unsigned* status) {
  const unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
  const int n = gridDim.x * gridDim.y * blockDim.x * blockDim.y;
  unsigned threads = 0, grids = 0, rank = 0, grid_rank = 7;
  const bool sized = cudaCGGetSize(&threads, &grids, grid) == cudaSuccess && cudaCGGetRank(&rank, &grid_rank, grid) == cudaSuccess;
  if (!sized || threads != n || grids != 1 || grid_rank != 0) atomicAdd(&status[0], 1);
  const int i = rank;
  a[i] = i;
  for (int s = 0; s < steps; ++s) {
    if ((s % 2 ? cudaCGSynchronizeGrid(grid, 0) : cudaCGSynchronize(grid, 0)) != cudaSuccess) atomicAdd(&status[1], 1);
    const int next = a[(i + 1) % n];
    cudaCGSynchronizeGrid(grid, 0);
    b[i] = next + 1;
    int* const swap = a;
    a = b, b = swap;
  }
}
__global__ void NotCooperative(unsigned* status) {
  const unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
  status[0] = grid == 0;
  status[1] = cudaCGSynchronizeGrid(grid, 0);
}

int main() {
  const dim3 blocks(3, 4), threads(16, 3);
  const int n = 3 * 4 * 16 * 3;
  int steps = 7;
  Buffer<int> a(n), b(n);
  Buffer<unsigned> status(2);
  int *pa = a, *pb = b;
  unsigned* ps = status;
  void* arguments[] = {&pa, &pb, &steps, &ps};
  CU(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Ring), blocks, threads, arguments, 0, nullptr));
  CU_LAUNCHED();
  const std::vector<int> got = (steps % 2 ? b : a).Read();
  for (int i = 0; i < n; ++i) Same("ring", i, got[i], (i + steps) % n + steps);
  for (const unsigned count : status.Read()) Same("bad answers", 0, count, 0u);
  NotCooperative<<<1, 1>>>(status);
  CU_LAUNCHED();
  const std::vector<unsigned> answers = status.Read();
  Same("no handle", 0, answers[0], 1u);
  Same("no barrier", 0, answers[1], 999u);
  return Verdict();
}
