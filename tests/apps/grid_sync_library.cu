// The grid's barrier as functions of the device runtime library (numba's grid groups, cooperative groups of CUDA 9 and
// 10).
#include "app.h"

// What cudaCGGetSize stores, and the second number of cudaCGGetRank, no manual says: they are shown, not checked.
__global__ void Ring(int* a, int* b, int steps, unsigned* status) {
  const unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
  const int n = gridDim.x * gridDim.y * blockDim.x * blockDim.y;
  unsigned threads = 0, grids = 0, rank = 0, grid_rank = 7;
  const cudaError_t sized = cudaCGGetSize(&threads, &grids, grid);
  if (cudaCGGetRank(&rank, &grid_rank, grid) != cudaSuccess) atomicAdd(&status[0], 1);
  if (rank == 0) status[2] = sized, status[3] = threads, status[4] = grids, status[5] = grid_rank;
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
// Threads without an element leave before the first barrier, as kernels of Numba do. Those that have left do not count
// at any.
__global__ void RingOfSome(int* a, int* b, int n, int steps) {
  const unsigned long long grid = cudaCGGetIntrinsicHandle(cudaCGScopeGrid);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  a[i] = i;
  for (int s = 0; s < steps; ++s) {
    cudaCGSynchronize(grid, 0);
    const int next = a[(i + 1) % n];
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
  Buffer<unsigned> status(6);
  int *pa = a, *pb = b;
  unsigned* ps = status;
  void* arguments[] = {&pa, &pb, &steps, &ps};
  CU(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Ring), blocks, threads, arguments, 0, nullptr));
  CU_LAUNCHED();
  const std::vector<int> got = (steps % 2 ? b : a).Read();
  for (int i = 0; i < n; ++i) Same("ring", i, got[i], (i + steps) % n + steps);
  const std::vector<unsigned> said = status.Read();
  for (int i = 0; i < 2; ++i) Same("bad answers", i, said[i], 0u);
  std::printf("of %d threads: status %u, threads %u, grids %u, rank of the grid %u\n", n, said[2], said[3], said[4],
              said[5]);
  // The last block has one thread, half a warp and one, a warp and a half, or all.
  for (int some : {97, 96 + 17, 96 + 48, 192}) {
    void* of_some[] = {&pa, &pb, &some, &steps};
    CU(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(RingOfSome), dim3((some + 95) / 96), dim3(96), of_some, 0,
                                   nullptr));
    CU_LAUNCHED();
    const std::vector<int> ring = (steps % 2 ? b : a).Read();
    for (int i = 0; i < some; ++i) Same("ring of some", i, ring[i], (i + steps) % some + steps);
  }
  NotCooperative<<<1, 1>>>(status);
  CU_LAUNCHED();
  const std::vector<unsigned> answers = status.Read();
  Same("no handle", 0, answers[0], 1u);
  Same("no barrier", 0, answers[1], 999u);
  return Verdict();
}
