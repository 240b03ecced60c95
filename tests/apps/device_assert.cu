// A failing device assert: error 710, sticky, with file, line and condition on stderr.
#undef NDEBUG
#include <cassert>

#include "app.h"

__global__ void Check(const int* v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) assert(v[i] < 90 && "value too large");
}

int main() {
  const int n = 100;
  std::vector<int> v(n);
  for (int i = 0; i < n; ++i) v[i] = i < 90 ? i : 0;
  {
    Buffer<int> good(v);
    Check<<<1, 128>>>(good, n);
    CU_LAUNCHED();
  }
  v[77] = 95;
  int* bad = nullptr;
  CU(cudaMalloc(&bad, n * sizeof(int)));
  CU(cudaMemcpy(bad, v.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  Check<<<1, 128>>>(bad, n);
  Error("launch", cudaGetLastError(), cudaSuccess);
  Error("synchronize", cudaDeviceSynchronize(), cudaErrorAssert);
  Error("sticky: synchronize", cudaDeviceSynchronize(), cudaErrorAssert);
  void* more = nullptr;
  Error("sticky: malloc", cudaMalloc(&more, 16), cudaErrorAssert);
  return Verdict();
}
