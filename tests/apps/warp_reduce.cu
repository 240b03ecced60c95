// redux.sync (sm_80): sums, minima, maxima, and bitwise reductions over full and partial warps.
#include <algorithm>

#include "app.h"

constexpr int kRows = 8;

__global__ void Kernel(const unsigned* in, unsigned* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned v = in[t];
  unsigned* o = out + t * kRows;
  o[0] = __reduce_add_sync(~0u, v), o[1] = __reduce_min_sync(~0u, v),
  o[2] = __reduce_max_sync(~0u, static_cast<int>(v));
  o[3] = __reduce_and_sync(~0u, v | 0xff), o[4] = __reduce_or_sync(~0u, v & 0xf0f), o[5] = __reduce_xor_sync(~0u, v);
  o[6] = 0;
  if (threadIdx.x % 2) o[6] = __reduce_add_sync(0xaaaaaaaau, v);
  o[7] = __reduce_min_sync(~0u, static_cast<int>(v));
}

int main() {
  const int n = 32 * 10;
  std::vector<unsigned> in(n);
  Random random(16);
  for (auto& v : in) v = random.Next();
  Buffer<unsigned> din(in), out(n * kRows);
  Kernel<<<5, 64>>>(din, out);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int t = 0; t < n; ++t) {
    const unsigned* w = &in[t / 32 * 32];
    unsigned r[kRows] = {0, ~0u, 0x80000000u, ~0u, 0, 0, 0, 0x7fffffff};
    for (int k = 0; k < 32; ++k) {
      r[0] += w[k], r[1] = std::min(r[1], w[k]), r[2] = std::max<int>(r[2], w[k]), r[3] &= w[k] | 0xff,
                    r[4] |= w[k] & 0xf0f, r[5] ^= w[k];
      r[6] += t % 2 && k % 2 ? w[k] : 0, r[7] = std::min<int>(r[7], w[k]);
    }
    for (int k = 0; k < kRows; ++k) Same("redux", t * 100 + k, got[t * kRows + k], r[k]);
  }
  return Verdict();
}
