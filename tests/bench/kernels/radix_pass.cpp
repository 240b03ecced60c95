#include <omp.h>

#include <array>
#include <utility>

#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

constexpr int kShift = 8;

void NativeRadixPass(const Words& in, Words& out, int threads) {
  const int n = static_cast<int>(in.size()), part = (n + threads - 1) / threads;
  std::vector<std::array<std::uint32_t, 256>> places(threads);
#pragma omp parallel num_threads(threads)
  {
    const int id = omp_get_thread_num(), first = std::min(n, id * part), last = std::min(n, first + part);
    const std::uint32_t* const from = in.data();
    std::uint32_t* const to = out.data();
    std::uint32_t own[256] = {};
    for (int i = first; i < last; ++i) ++own[from[i] >> kShift & 255];
    std::copy_n(own, 256, places[id].begin());
#pragma omp barrier
#pragma omp single
    {
      std::uint32_t sum = 0;
      for (int digit = 0; digit < 256; ++digit)
        for (auto& of_thread : places) sum += std::exchange(of_thread[digit], sum);
    }
    std::copy_n(places[id].begin(), 256, own);
    for (int i = first; i < last; ++i) to[own[from[i] >> kShift & 255]++] = from[i];
  }
}

}  // namespace

GL_BENCHMARK(radix_pass) {
  const int n = Scaled(scale, 1 << 19, 2048 * 4), blocks = n / 2048;
  auto in = std::make_shared<Words>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = Hash(i);
  auto s = std::make_shared<State<std::uint32_t>>();
  s->out.resize(n);
  return {"radix_pass",
          std::to_string(n) + " keys, 8 bits",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Allocate(256 * 4 * blocks), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            const Pointer keys{s->memory[0]}, counts{s->memory[1]}, output{s->memory[2]};
            const Shape grid{static_cast<unsigned>(blocks)};
            d.Launch("RadixCount", grid, {256}, {keys, counts, kShift});
            d.Launch("RadixPlaces", {1}, {256}, {counts, 256 * blocks});
            d.Launch("RadixScatter", grid, {256}, {keys, counts, output, kShift});
          },
          [=](Device& d) { return Download<std::uint32_t>(d, s->memory[2], n); },
          [=](int threads) { NativeRadixPass(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
