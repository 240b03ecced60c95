// Tiled matrix product of odd sizes; the same order of fused operations on the host, so results are equal bit by bit.
#include "host.h"

EMBED(kPtx, DEVICE_PTX);

int main() {
  const int m = 123, n = 161, k = 97;
  std::vector<float> a(m * k), b(k * n);
  for (int i = 0; i < m * k; ++i) a[i] = (i % 37) * 0.31f - 4;
  for (int i = 0; i < k * n; ++i) b[i] = (i % 23) * 0.17f - 2;
  driver::Program program(kPtx);
  driver::Buffer<float> da(a), db(b), dc(m * n);
  program.Launch("MatMul", {(n + 15u) / 16, (m + 15u) / 16}, {16, 16}, da.get(), db.get(), dc.get(), m, n, k);
  const auto c = dc.Read();
  long bad = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum = std::fma(a[i * k + l], b[l * n + j], sum);
      bad += c[i * n + j] != sum;
    }
  return driver::Verdict("matmul", bad, m * n);
}
