#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeReduce(const Ints& in, Ints& out, int threads) {
  const int n = static_cast<int>(in.size());
  const int* const values = in.data();  // through the vector gcc gathers, ten times as slowly
  int sum = 0;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(+ : sum)
  for (int i = 0; i < n; ++i) sum += values[i];
  out[0] = sum;
}

}  // namespace

GL_BENCHMARK(reduce) {
  const int n = Scaled(scale, 1 << 20, 512);
  auto in = std::make_shared<Ints>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = static_cast<int>(Hash(i) % 2001) - 1000;
  auto s = std::make_shared<State<int>>();
  s->out.resize(1);
  return {"reduce",
          std::to_string(n) + " ints",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(4)};
          },
          [=](Device& d) {
            d.Clear(s->memory[1], 4);
            d.Launch("Reduce", {Blocks(n, 512)}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
          },
          [=](Device& d) { return Download<int>(d, s->memory[1], 1); },
          [=](int threads) { NativeReduce(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
