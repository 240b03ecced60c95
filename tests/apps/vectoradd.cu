// The first program of everyone: c = a + b with a ragged last block.
#include "app.h"

__global__ void VectorAdd(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  const int n = 1'000'003;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = i * 0.5f, b[i] = i * 0.25f + 1;
  Buffer<float> da(a), db(b), dc(n);
  VectorAdd<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  CU_LAUNCHED();
  const auto c = dc.Read();
  for (int i = 0; i < n; ++i) Same("c", i, c[i], a[i] + b[i]);
  return Verdict();
}
