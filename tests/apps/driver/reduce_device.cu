// Sum of integers: a shuffle tree per warp, shared memory per block, one atomic per block.
#include "device.h"

extern "C" __global__ void Reduce(const int* in, unsigned* out, int n) {
  __shared__ int sums[32];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int step = 16; step > 0; step /= 2) sum += ShuffleDown(sum, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  SyncThreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0;
    for (int step = 16; step > 0; step /= 2) sum += ShuffleDown(sum, step);
    if (threadIdx.x == 0) AtomicAdd(out, sum);
  }
}
