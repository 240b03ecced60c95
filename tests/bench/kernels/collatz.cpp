#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeCollatz(Words& out, int threads) {
  const int n = static_cast<int>(out.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) {
    std::uint32_t v = (static_cast<std::uint32_t>(i) * 2654435761u >> 12) + 1, steps = 0;
    while (v != 1 && steps < 1000) v = v & 1 ? 3 * v + 1 : v / 2, ++steps;
    out[i] = steps;
  }
}

}  // namespace

GL_BENCHMARK(collatz) {
  const int n = Scaled(scale, 1 << 14, 256);
  auto s = std::make_shared<State<std::uint32_t>>();
  s->out.resize(n);
  return {"collatz",
          std::to_string(n) + " threads",
          0,
          [=](Device& d) { s->memory = {d.Allocate(n * 4)}; },
          [=](Device& d) {
            d.Launch("Collatz", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, n});
          },
          [=](Device& d) { return Download<std::uint32_t>(d, s->memory[0], n); },
          [=](int threads) { NativeCollatz(s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
