// 3MM (PolyBench/GPU): three matrix products, G = (A B) (C D), one thread a result. The first two kernels are
// independent of each other; the third needs a band of rows of E = A B, and all of F = C D.
#include "crcs/program.h"

constexpr int kThreadsX = 32, kThreadsY = 8;

/// c = a b, all n x n. Sums are kept in a register, or, as in the suite, in memory: twice the traffic.
template <bool kSumsInMemory>
__global__ void __launch_bounds__(kThreadsX* kThreadsY) Multiply(const float* a, const float* b, float* c, int n) {
  const int column = blockIdx.x * kThreadsX + threadIdx.x, row = blockIdx.y * kThreadsY + threadIdx.y;
  volatile float* const result = c + row * n + column;
  float sum = 0;
  if (kSumsInMemory) *result = 0;
#pragma unroll 1
  for (int k = 0; k < n; ++k) {
    if (kSumsInMemory) *result = fmaf(a[row * n + k], b[k * n + column], *result);
    else sum = fmaf(a[row * n + k], b[k * n + column], sum);
  }
  if (!kSumsInMemory) *result = sum;
}

/// Small rationals: a formula of row and column, as in the suite.
std::vector<float> Rationals(int n, int shift) {
  std::vector<float> matrix(static_cast<std::size_t>(n) * n);
  for (int row = 0; row < n; ++row) {
    for (int column = 0; column < n; ++column)
      matrix[row * n + column] = static_cast<float>(row * (column + shift) % n) / n;
  }
  return matrix;
}

template <class Matrix>
std::vector<float> Product(const Matrix& a, const std::vector<float>& b, int n) {
  std::vector<float> c(b.size(), 0);
  for (int row = 0; row < n; ++row) {
    for (int k = 0; k < n; ++k) {
      for (int column = 0; column < n; ++column)
        c[row * n + column] = std::fma(a[row * n + k], b[k * n + column], c[row * n + column]);
    }
  }
  return c;
}

int main(int argc, char** argv) {
  // The paper: 256 x 256, so 256 CTAs a kernel: one wave on 64 SMs. Scaled: 64 CTAs, one wave on 16 SMs.
  Program program("3mm", argc, argv, {{"size", 128, 256, 32, 4096, 32}, {"sums-in-memory", 0, 0, 0, 1}});
  const int n = program["size"];
  const std::size_t count = static_cast<std::size_t>(n) * n;
  const Input<float> a(program, "a", count, [n] { return Rationals(n, 0); }),
      b(program, "b", count, [n] { return Rationals(n, 1); });
  const Input<float> c(program, "c", count, [n] { return Rationals(n, 3); }),
      d(program, "d", count, [n] { return Rationals(n, 2); });
  const DeviceArray<float> device_a(count), device_b(count), device_c(count), device_d(count);
  const DeviceArray<float> device_e(count), device_f(count), device_g(count);
  const HostArray<float> g(count);

  program.Prelude();
  device_a.CopyFrom(a.data());
  device_b.CopyFrom(b.data());
  device_c.CopyFrom(c.data());
  device_d.CopyFrom(d.data());
  const auto kernel = program["sums-in-memory"] != 0 ? Multiply<true> : Multiply<false>;
  const dim3 grid(n / kThreadsX, n / kThreadsY), threads(kThreadsX, kThreadsY);
  kernel<<<grid, threads>>>(device_a, device_b, device_e, n);
  program.Launched();
  kernel<<<grid, threads>>>(device_c, device_d, device_f, n);
  program.Launched();
  kernel<<<grid, threads>>>(device_e, device_f, device_g, n);
  program.Launched();
  device_g.CopyTo(g.data());
  program.Postlude(g);

  return program.Finish(Product(Product(a, b.Values(), n), Product(c, d.Values(), n), n));
}
