// Barriers with reductions, named and partial barriers, arrive without waiting, warps that leave early.
#include "app.h"

__global__ void Reductions(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int v = i < n ? in[i] : 0;
  const int count = __syncthreads_count(v > 50), all = __syncthreads_and(v < 90), any = __syncthreads_or(v == 13);
  out[i] = count * 4 + (all ? 2 : 0) + (any ? 1 : 0);
}
// Producers (warps 0 and 1) and consumers (warps 2 and 3) with two named barriers and a ring of two buffers.
__global__ void ProducerConsumer(int* out, int rounds) {
  __shared__ int buffer[2][64];
  const int t = threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    const int slot = r & 1;
    if (t < 64) {
      if (r >= 2) asm volatile("barrier.sync %0, 128;" ::"r"(3 + slot) : "memory");  // empty
      buffer[slot][t] = r * 100 + t;
      __threadfence_block();
      asm volatile("barrier.arrive %0, 128;" ::"r"(1 + slot) : "memory");  // full
    } else {
      asm volatile("barrier.sync %0, 128;" ::"r"(1 + slot) : "memory");
      out[r * 64 + (t - 64)] = buffer[slot][127 - t];
      if (r + 2 < rounds) asm volatile("barrier.arrive %0, 128;" ::"r"(3 + slot) : "memory");
    }
  }
}
// Half of the block synchronises on its own; a predicate is reduced over a partial barrier.
__global__ void Partial(int* out) {
  __shared__ int s[128];
  const int t = threadIdx.x, half = t / 64;
  s[t] = t;
  asm volatile("bar.sync %0, 64;" ::"r"(half + 1) : "memory");
  const int other = s[half * 64 + 63 - t % 64];
  int votes;
  asm volatile("{.reg .pred p; setp.gt.s32 p, %1, 70; barrier.red.popc.u32 %0, %2, 64, p;}"
               : "=r"(votes)
               : "r"(t), "r"(half + 5)
               : "memory");
  out[t] = other * 1000 + votes;
}
__global__ void EarlyExit(int* out) {
  __shared__ int s[96];
  if (threadIdx.x >= 64) return;  // a whole warp leaves; the barrier counts the others
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}

int main() {
  const int n = 330, block = 96;
  std::vector<int> in(n);
  for (int i = 0; i < n; ++i) in[i] = i * 37 % (i < 96 ? 89 : 101);
  Buffer<int> din(in), out(4 * block), ring(7 * 64), partial(128), early(64);
  Reductions<<<4, block>>>(din, out, n);
  ProducerConsumer<<<1, 128>>>(ring, 7);
  Partial<<<1, 128>>>(partial);
  EarlyExit<<<1, 96>>>(early);
  CU_LAUNCHED();
  const auto o = out.Read(), r = ring.Read(), p = partial.Read(), e = early.Read();
  for (int i = 0; i < 4 * block; ++i) {
    int count = 0, all = 1, any = 0;
    for (int k = i / block * block; k < (i / block + 1) * block; ++k) {
      const int v = k < n ? in[k] : 0;
      count += v > 50, all &= v < 90, any |= v == 13;
    }
    Same("reduction", i, o[i], count * 4 + all * 2 + any);
  }
  for (int i = 0; i < 7 * 64; ++i) Same("ring", i, r[i], i / 64 * 100 + 63 - i % 64);
  for (int t = 0; t < 128; ++t) Same("partial", t, p[t], (t / 64 * 64 + 63 - t % 64) * 1000 + (t < 64 ? 0 : 57));
  for (int t = 0; t < 64; ++t) Same("early", t, e[t], 63 - t);
  return Verdict();
}
