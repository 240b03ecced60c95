// Kernels compiled with --default-stream per-thread: each thread's launches without a stream are in order, in a stream
// of its own.
#include "app.h"

__global__ void First(int* values, int i) { values[i] = 3 * i + 1; }
__global__ void Second(int* values, int i) { values[i] = values[i] * 2 + 5; }

__global__ void Parent(int* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  First<<<1, 1>>>(values, i);
  Second<<<1, 1>>>(values, i);
  if (i % 3 == 0) Second<<<1, 1, 0, cudaStreamPerThread>>>(values, i);
}

int main() {
  constexpr int kCount = 3 * 37;
  Buffer<int> values(kCount);
  Parent<<<3, 37>>>(values);
  CU_LAUNCHED();
  const std::vector<int> got = values.Read();
  for (int i = 0; i < kCount; ++i) {
    const int twice = (3 * i + 1) * 2 + 5;
    Same("value", i, got[i], i % 3 == 0 ? twice * 2 + 5 : twice);
  }
  return Verdict();
}
