// Kernel parameters of 32 764 bytes, the limit since CUDA 12.1.
#include "app.h"

struct Huge {
  int v[8188];
};

__global__ void Kernel(const __grid_constant__ Huge huge, int* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = huge.v[n - 1 - i];
}

int main() {
  static Huge huge;
  const int n = 8188;
  for (int i = 0; i < n; ++i) huge.v[i] = i * 17 - 5;
  Buffer<int> out(n);
  Kernel<<<3, 64>>>(huge, out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) Same("huge", i, got[i], huge.v[n - 1 - i]);
  return Verdict();
}
