#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeFmaLoop(Floats& out, int rounds, int threads) {
  const int n = static_cast<int>(out.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) {
    float a = i * 1e-6f, b = a + 1, c = a + 2, d = a + 3;
    for (int k = 0; k < rounds; ++k) {
      a = std::fma(a, 0.999f, 0.5f);
      b = std::fma(b, 0.998f, 0.25f);
      c = std::fma(c, 0.997f, 0.125f);
      d = std::fma(d, 0.996f, 0.0625f);
    }
    out[i] = a + b + c + d;
  }
}

}  // namespace

GL_BENCHMARK(fmaloop) {
  const int n = Scaled(scale, 160 * 256, 256), rounds = 256;
  auto s = std::make_shared<State<float>>();
  s->out.resize(n);
  return {"fmaloop",
          std::to_string(n) + " threads, " + std::to_string(rounds) + " x 4 fma",
          1e-6,
          [=](Device& d) { s->memory = {d.Allocate(n * 4)}; },
          [=](Device& d) {
            d.Launch("FmaLoop", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, rounds});
          },
          [=](Device& d) { return Download<float>(d, s->memory[0], n); },
          [=](int threads) { NativeFmaLoop(s->out, rounds, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
