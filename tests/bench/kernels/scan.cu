#include "tests/bench/kernels/block_scan.cuh"

// Inclusive prefix sums in three passes: sums of blocks of 1,024 values, the sums before each block, the blocks again.
KERNEL ScanTotals(const int4* in, int* totals) {
  const int4 v = in[blockIdx.x * 256 + threadIdx.x];
  const int sum = SumUpToThread(v.x + v.y + v.z + v.w);
  if (threadIdx.x == 255) totals[blockIdx.x] = sum;
}
KERNEL ScanOfTotals(int* totals, int n) { SumsBefore(totals, n); }
KERNEL ScanBlocks(const int4* in, const int* before, int4* out) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  int4 v = in[i];
  v.y += v.x, v.z += v.y, v.w += v.z;
  const int start = SumUpToThread(v.w) - v.w + before[blockIdx.x];
  v.x += start, v.y += start, v.z += start, v.w += start;
  out[i] = v;
}
