// C = A B with 16 x 16 tiles in shared memory; sizes need not be multiples of the tile.
#include "device.h"

constexpr int kTile = 16;

extern "C" __global__ void MatMul(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float sa[kTile][kTile], sb[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * kTile + x, row = blockIdx.y * kTile + y;
  float sum = 0;
  for (int start = 0; start < k; start += kTile) {
    sa[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0;
    sb[y][x] = start + y < k && column < n ? b[(start + y) * n + column] : 0;
    SyncThreads();
    for (int i = 0; i < kTile; ++i) sum = Fma(sa[y][i], sb[i][x], sum);
    SyncThreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
