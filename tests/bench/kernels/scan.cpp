#include <omp.h>

#include "tests/bench/kernels/common.h"

namespace bench {
namespace {

int SumOf(const int* values, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += values[i];
  return sum;
}

/// Each thread has one part; all but the first need the sums of the parts before theirs.
void NativeScan(const Ints& in, Ints& out, int threads) {
  const int n = static_cast<int>(in.size()), part = (n + threads - 1) / threads;
  Ints before(threads, 0);
#pragma omp parallel num_threads(threads)
  {
    const int id = omp_get_thread_num(), first = std::min(n, id * part), last = std::min(n, first + part);
    if (threads > 1) {
      const int sum = SumOf(&in[first], last - first);
      for (int later = id + 1; later < threads; ++later) {
#pragma omp atomic
        before[later] += sum;
      }
#pragma omp barrier
    }
    const int* const from = in.data();
    int* const to = out.data();
    int sum = before[id];
    for (int i = first; i < last; ++i) to[i] = sum += from[i];
  }
}

}  // namespace

GL_BENCHMARK(scan) {
  const int n = Scaled(scale, 1 << 20, 1024), blocks = n / 1024, padded = (blocks + 1023) / 1024 * 1024;
  auto in = std::make_shared<Ints>(n);
  for (int i = 0; i < n; ++i) (*in)[i] = static_cast<int>(Hash(i) % 2001) - 1000;
  auto s = std::make_shared<State<int>>();
  s->out.resize(n);
  return {"scan",
          std::to_string(n) + " ints",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(*in), d.Upload(Ints(padded)), d.Allocate(n * 4)};
          },
          [=](Device& d) {
            const Pointer input{s->memory[0]}, totals{s->memory[1]}, output{s->memory[2]};
            const Shape grid{static_cast<unsigned>(blocks)};
            d.Launch("ScanTotals", grid, {256}, {input, totals});
            d.Launch("ScanOfTotals", {1}, {256}, {totals, padded});
            d.Launch("ScanBlocks", grid, {256}, {input, totals, output});
          },
          [=](Device& d) { return Download<int>(d, s->memory[2], n); },
          [=](int threads) { NativeScan(*in, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
