#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

void NativeBitonicSort(const Words& in, Words& keys, int threads) {
  const int n = static_cast<int>(in.size());
  keys = in;
  std::uint32_t* data = keys.data();
  for (int size = 2; size <= n; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
#pragma omp parallel for num_threads(threads) schedule(static)
      for (int t = 0; t < n / 2; ++t) {
        const int i = 2 * t - (t & (stride - 1)), j = i + stride;
        const std::uint32_t a = data[i], b = data[j];
        const bool swap = (a > b) == ((i & size) == 0);
        data[i] = swap ? b : a, data[j] = swap ? a : b;
      }
    }
}

}  // namespace

GL_BENCHMARK(bitonic) {
  int n = 1 << 17;
  while (n > 1024 && n > (1 << 17) * scale) n /= 2;
  auto in = std::make_shared<Words>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = Hash(i);
  auto s = std::make_shared<State<std::uint32_t>>();
  return {"bitonic",
          std::to_string(n) + " keys",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            d.Launch("CopyKeys", {Blocks(n, 256)}, {256}, {Pointer{s->memory[0]}, Pointer{s->memory[1]}, n});
            for (int size = 2; size <= n; size *= 2)
              for (int stride = size / 2; stride > 0; stride /= 2)
                d.Launch("BitonicStep", {Blocks(n / 2, 256)}, {256}, {Pointer{s->memory[1]}, size, stride});
          },
          [=](Device& d) { return Download<std::uint32_t>(d, s->memory[1], n); },
          [=](int threads) { NativeBitonicSort(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
