// Products of square matrices: what the naive and the tiled benchmark share.
#pragma once

#include "tests/bench/kernels/common.h"

namespace bench {

inline void NativeMatMul(const Floats& a, const Floats& b, Floats& c, int n, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int y = 0; y < n; ++y) {
    float* __restrict row = &c[static_cast<std::size_t>(y) * n];
    std::memset(row, 0, n * sizeof(float));
    for (int k = 0; k < n; ++k) {
      const float left = a[static_cast<std::size_t>(y) * n + k];
      const float* __restrict right = &b[static_cast<std::size_t>(k) * n];
      for (int x = 0; x < n; ++x) row[x] = std::fma(left, right[x], row[x]);
    }
  }
}

inline Benchmark MatMul(double scale, const char* name, const char* kernel) {
  const int n = Scaled(std::cbrt(scale), 256, 16);
  auto a = std::make_shared<Floats>(RandomFloats(n * n, -1, 1, 4)),
       b = std::make_shared<Floats>(RandomFloats(n * n, -1, 1, 5));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n * n);
  return {name,
          std::to_string(n) + " x " + std::to_string(n),
          1e-4,
          [=](Device& d) {
            s->memory = {d.Upload(*a), d.Upload(*b), d.Allocate(n * n * 4)};
          },
          [=](Device& d) {
            d.Launch(kernel, {n / 16u, n / 16u}, {16, 16},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, Pointer{s->memory[2]}, n});
          },
          [=](Device& d) { return Download<float>(d, s->memory[2], static_cast<std::size_t>(n) * n); },
          [=](int threads) { NativeMatMul(*a, *b, s->out, n, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
