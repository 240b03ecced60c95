#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeHistogram(const Words& in, Words& out, int threads) {
  const int n = static_cast<int>(in.size());
  std::fill(out.begin(), out.end(), 0);
#pragma omp parallel num_threads(threads)
  {
    std::uint32_t bins[256] = {};
#pragma omp for schedule(static)
    for (int i = 0; i < n; ++i) ++bins[in[i] & 255];
#pragma omp critical
    for (int k = 0; k < 256; ++k) out[k] += bins[k];
  }
}

}  // namespace

GL_BENCHMARK(histogram) {
  const int n = Scaled(scale, 1 << 19, 256);
  auto in = std::make_shared<Words>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = Hash(i);
  auto s = std::make_shared<State<std::uint32_t>>();
  s->out.resize(256);
  return {"histogram",
          std::to_string(n) + " words, 256 bins",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(1024)};
          },
          [=](Device& d) {
            d.Clear(s->memory[1], 1024);
            d.Launch("Histogram", {160}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
          },
          [=](Device& d) { return Download<std::uint32_t>(d, s->memory[1], 256); },
          [=](int threads) { NativeHistogram(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
