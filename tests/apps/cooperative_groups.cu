// Cooperative groups: tiles of every size, coalesced and labelled groups, partitions, collective reduce and scan.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "app.h"

namespace cg = cooperative_groups;
constexpr int kRows = 10;

template <int kSize>
__device__ int TileSum(cg::thread_block block, int v) {
  auto tile = cg::tiled_partition<kSize>(block);
  for (int step = tile.size() / 2; step > 0; step /= 2) v += tile.shfl_down(v, step);
  return tile.shfl(v, 0) * 100 + tile.meta_group_rank();
}
__global__ void Kernel(const int* in, int* out, int* counter) {
  cg::thread_block block = cg::this_thread_block();
  const int t = blockIdx.x * blockDim.x + threadIdx.x, v = in[t];
  int* o = out + t * kRows;
  o[0] = TileSum<4>(block, v), o[1] = TileSum<16>(block, v), o[2] = TileSum<32>(block, v), o[3] = TileSum<1>(block, v);
  auto warp = cg::tiled_partition<32>(block);
  o[4] = cg::reduce(warp, v, cg::greater<int>()), o[5] = cg::exclusive_scan(warp, v),
  o[6] = cg::inclusive_scan(warp, v, cg::plus<int>());
  o[7] = 0;
  if (v % 3 == 1) {
    // Aggregated increment: one atomic for the lanes that are here.
    cg::coalesced_group active = cg::coalesced_threads();
    int base = 0;
    if (active.thread_rank() == 0) base = atomicAdd(counter, active.size());
    o[7] = active.shfl(base, 0) + active.thread_rank() + 1;
  }
  warp.sync();
  auto labelled = cg::labeled_partition(warp, v % 4);
  o[8] = cg::reduce(labelled, v, cg::plus<int>());
  auto halves = cg::binary_partition(warp, v > 50);
  o[9] = halves.size() * 1000 + halves.thread_rank() +
         (block.group_dim().x == 96 && block.thread_rank() == threadIdx.x ? 0 : 1'000'000);
  block.sync();
}

int main() {
  const int n = 96 * 3;
  std::vector<int> in(n);
  for (int i = 0; i < n; ++i) in[i] = i * 53 % 101;
  Buffer<int> din(in), out(n * kRows), counter(1);
  Kernel<<<3, 96>>>(din, out, counter);
  CU_LAUNCHED();
  const auto got = out.Read();
  int ones = 0;
  std::vector<bool> taken(n + 1);
  for (int t = 0; t < n; ++t) {
    const int lane = t % 32, thread = t % 96;
    const int* w = &in[t - lane];
    const auto tile = [&](int size) {
      int sum = 0;
      for (int k = lane / size * size; k < (lane / size + 1) * size; ++k) sum += w[k];
      return sum * 100 + thread / size;
    };
    int max = 0, before = 0, label = 0, side = 0, rank = 0;
    for (int k = 0; k < 32; ++k) {
      max = w[k] > max ? w[k] : max, before += k < lane ? w[k] : 0, label += w[k] % 4 == w[lane] % 4 ? w[k] : 0;
      if ((w[k] > 50) == (w[lane] > 50)) ++side, rank += k < lane;
    }
    const int* o = &got[t * kRows];
    Same("tile 4", t, o[0], tile(4)), Same("tile 16", t, o[1], tile(16)), Same("tile 32", t, o[2], tile(32)),
        Same("tile 1", t, o[3], tile(1));
    Same("reduce", t, o[4], max), Same("exclusive", t, o[5], before), Same("inclusive", t, o[6], before + w[lane]);
    if (in[t] % 3 == 1) {
      ++ones;
      True("slot", o[7] >= 1 && o[7] <= n && !taken[o[7]]);
      if (o[7] >= 1 && o[7] <= n) taken[o[7]] = true;
    }
    Same("labelled", t, o[8], label), Same("binary", t, o[9], side * 1000 + rank);
  }
  Same("counter", 0, counter.Read()[0], ones);
  return Verdict();
}
