#include "tests/bench/kernels/common.h"
#include "tests/bench/kernels/sparse.h"

namespace bench {
namespace {

void NativeBfs(const Ints& starts, const Ints& edges, Ints& distance, int threads) {
  const int n = static_cast<int>(distance.size());
  std::fill(distance.begin(), distance.end(), -1);
  distance[0] = 0;
  int changed = 1;
  for (int level = 0; changed; ++level) {
    changed = 0;
    // Threads may find the same vertex; both store the same value.
#pragma omp parallel for num_threads(threads) schedule(static) reduction(| : changed)
    for (int v = 0; v < n; ++v) {
      if (__atomic_load_n(&distance[v], __ATOMIC_RELAXED) != level) continue;
      for (int k = starts[v]; k < starts[v + 1]; ++k) {
        int* to = &distance[edges[k]];
        if (__atomic_load_n(to, __ATOMIC_RELAXED) < 0) {
          __atomic_store_n(to, level + 1, __ATOMIC_RELAXED);
          changed = 1;
        }
      }
    }
  }
}

}  // namespace

GL_BENCHMARK(bfs) {
  const int n = Scaled(scale, 1 << 17, 256);
  auto m = MakeSparse(n);
  auto s = std::make_shared<State<int>>();
  s->out.resize(n);
  return {"bfs",
          std::to_string(n) + " vertices, " + std::to_string(m->columns.size()) + " edges",
          0,
          [=](Device& d) {
            s->memory = {d.Upload(m->starts), d.Upload(m->columns), d.Allocate(n * 4), d.Allocate(4)};
          },
          [=](Device& d) {
            d.Launch("BfsInit", {Blocks(n, 256)}, {256}, {Pointer{s->memory[2]}, n});
            int changed = 1;
            for (int level = 0; changed; ++level) {
              d.Clear(s->memory[3], 4);
              d.Launch("BfsLevel", {Blocks(n, 256)}, {256},
                       {Pointer{s->memory[0]}, Pointer{s->memory[1]}, Pointer{s->memory[2]}, Pointer{s->memory[3]},
                        level, n});
              d.Read(&changed, s->memory[3], 4);
            }
          },
          [=](Device& d) { return Download<int>(d, s->memory[2], n); },
          [=](int threads) { NativeBfs(m->starts, m->columns, s->out, threads); },
          [=] { return Doubles(s->out); }};
}

}  // namespace bench
