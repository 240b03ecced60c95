// Shuffles of every mode, width, type and partial masks; out-of-range sources keep the caller's value; the in-range
// predicate.
#include "app.h"

constexpr int kRows = 10;

__global__ void Kernel(const int* in, long long* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  const int v = in[t];
  long long* o = out + t * kRows;
  o[0] = __shfl_sync(~0u, v, (lane * 5 + 3) & 31);
  o[1] = __shfl_up_sync(~0u, v, 3);
  o[2] = __shfl_down_sync(~0u, v, 7, 16);
  o[3] = __shfl_xor_sync(~0u, v, 9);
  o[4] = __shfl_sync(~0u, v, lane + 1, 8);
  o[5] = __shfl_xor_sync(~0u, static_cast<long long>(v) << 20, 16);
  o[6] = static_cast<long long>(__shfl_down_sync(~0u, v * 0.5, lane % 4));
  o[7] = -1;
  if (lane % 3 == 0) o[7] = __shfl_sync(0x49249249u, v, 27);  // lanes 0, 3, … only
  int shifted, valid;
  asm volatile("{.reg .pred p; shfl.sync.up.b32 %0|p, %2, 5, 0, 0xffffffff; selp.s32 %1, 1, 0, p;}"
               : "=r"(shifted), "=r"(valid)
               : "r"(v));
  o[8] = shifted * 2LL + valid;
  int sum = v;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
  o[9] = lane == 0 ? sum : 0;
}

int main() {
  const int n = 32 * 6;
  std::vector<int> in(n);
  Random random(13);
  for (auto& v : in) v = static_cast<int>(random.Next() & 0xfffff) - 500'000;
  Buffer<int> din(in);
  Buffer<long long> out(n * kRows);
  Kernel<<<2, 96>>>(din, out);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int t = 0; t < n; ++t) {
    const int lane = t % 32;
    const int* w = &in[t - lane];
    long long sum = 0;
    for (int k = 0; k < 32; ++k) sum += w[k];
    const long long want[kRows] = {w[(lane * 5 + 3) & 31],
                                   w[lane < 3 ? lane : lane - 3],
                                   w[lane % 16 + 7 < 16 ? lane + 7 : lane],
                                   w[lane ^ 9],
                                   w[lane / 8 * 8 + (lane + 1) % 8],
                                   static_cast<long long>(w[lane ^ 16]) * (1 << 20),
                                   static_cast<long long>(w[lane + lane % 4 < 32 ? lane + lane % 4 : lane] * 0.5),
                                   lane % 3 ? -1 : w[27],
                                   (lane < 5 ? w[lane] : w[lane - 5]) * 2LL + (lane >= 5),
                                   lane ? 0 : static_cast<int>(sum)};
    for (int k = 0; k < kRows; ++k) Same("shuffle", t * 100 + k, got[t * kRows + k], want[k]);
  }
  return Verdict();
}
