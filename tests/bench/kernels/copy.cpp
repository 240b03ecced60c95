#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeCopy(const Floats& in, Floats& out, int threads) {
  const int n = static_cast<int>(in.size());
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) out[i] = in[i];
}

}  // namespace

GL_BENCHMARK(copy) {
  const int n = Scaled(scale, 1 << 22, 256);
  auto in = std::make_shared<Floats>(RandomFloats(n, -1, 1, 1));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n);
  return {"copy",
          std::to_string(n) + " floats",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            d.Launch("Copy", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
          },
          [=](Device& d) { return Download<float>(d, s->memory[1], n); },
          [=](int threads) { NativeCopy(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
