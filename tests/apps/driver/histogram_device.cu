// 256 bins: shared-memory atomics per block, merged by global atomics.
#include "device.h"

extern "C" __global__ void Histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  SyncThreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) AtomicAdd(&bins[in[i]], 1);
  SyncThreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) AtomicAdd(&out[i], bins[i]);
}
