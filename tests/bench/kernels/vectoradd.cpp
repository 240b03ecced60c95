#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeVectorAdd(const Floats& a, const Floats& b, Floats& c, int threads) {
  const int n = static_cast<int>(a.size());
#pragma omp parallel for simd num_threads(threads) schedule(static)
  for (int i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

}  // namespace

GL_BENCHMARK(vectoradd) {
  const int n = Scaled(scale, 1 << 20, 256);
  auto a = std::make_shared<Floats>(RandomFloats(n, -1, 1, 1)), b = std::make_shared<Floats>(RandomFloats(n, -1, 1, 2));
  auto s = std::make_shared<State<float>>();
  s->out.resize(n);
  return {"vectoradd",
          std::to_string(n) + " floats",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*a), d.Upload(*b), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            d.Launch("VectorAdd", {Blocks(n, 256)}, {256},
                     {Pointer{s->memory[0]}, Pointer{s->memory[1]}, Pointer{s->memory[2]}, n});
          },
          [=](Device& d) { return Download<float>(d, s->memory[2], n); },
          [=](int threads) { NativeVectorAdd(*a, *b, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
