// Votes, ballots, active masks, match, lane masks, warp barriers with subsets of lanes.
#include "app.h"

constexpr int kRows = 12;

__global__ void Kernel(const unsigned* in, unsigned* out) {
  __shared__ unsigned exchange[128];
  const int t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  const unsigned v = in[t];
  unsigned* o = out + t * kRows;
  o[0] = __ballot_sync(~0u, v & 1), o[1] = __any_sync(~0u, v == 77), o[2] = __all_sync(~0u, v < 1000),
  o[3] = __uni_sync(~0u, v > 5000);
  o[4] = __match_any_sync(~0u, v % 5);
  int same = 0;
  o[5] = __match_all_sync(~0u, v / 100000, &same), o[6] = same;
  if (lane & 4) {
    o[7] = __ballot_sync(0xf0f0f0f0u, v & 2);
    exchange[threadIdx.x] = v * 3;
    __syncwarp(0xf0f0f0f0u);
    o[8] = exchange[threadIdx.x ^ 3];
  } else {
    o[7] = __popc(__activemask()) <= 16,
    o[8] = __match_any_sync(0x0f0f0f0fu, static_cast<unsigned long long>(v % 3) << 40);
  }
  unsigned lt, le, gt, ge, eq;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(le));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(gt));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
  o[9] = lt ^ (ge << 1), o[10] = le ^ gt, o[11] = eq;
}

int main() {
  const int n = 128 * 2;
  std::vector<unsigned> in(n);
  Random random(14);
  for (int i = 0; i < n; ++i) in[i] = i < 64 ? random.Next() % 100 : i < 96 ? 6000u + i % 2 : random.Next() % 9000;
  in[40] = 77;
  Buffer<unsigned> din(in), out(n * kRows);
  Kernel<<<2, 128>>>(din, out);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int t = 0; t < n; ++t) {
    const int lane = t % 32;
    const unsigned* w = &in[t - lane];
    unsigned odd = 0, any = 0, all = 1, above = 0, match = 0, second = 0, match3 = 0;
    for (int k = 0; k < 32; ++k) {
      odd |= (w[k] & 1) << k, any |= w[k] == 77, all &= w[k]<1000, above += w[k]> 5000;
      if (w[k] % 5 == w[lane] % 5) match |= 1u << k;
      if ((k & 4) && (w[k] & 2)) second |= 1u << k;
      if (!(k & 4) && w[k] % 3 == w[lane] % 3) match3 |= 1u << k;
    }
    const unsigned want[kRows] = {odd,
                                  any,
                                  all,
                                  above == 0 || above == 32,
                                  match,
                                  ~0u,
                                  1,
                                  lane & 4 ? second : 1,
                                  lane & 4 ? w[lane ^ 3] * 3 : match3,
                                  ((1u << lane) - 1) ^ (lane == 31 ? 0 : ~0u << (lane + 1)),
                                  ~0u,
                                  1u << lane};
    for (int k = 0; k < kRows; ++k) Same("vote", t * 100 + k, got[t * kRows + k], want[k]);
  }
  return Verdict();
}
