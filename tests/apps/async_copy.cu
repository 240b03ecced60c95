// cp.async of 4, 8 and 16 bytes with zero fill, commit and wait groups, the pipeline primitives, a double-buffered
// loop.
#include <cuda_pipeline.h>

#include "app.h"

constexpr int kTile = 64;

__global__ void DoubleBuffer(const float* in, float* out, int tiles) {
  __shared__ __align__(16) float stage[2][kTile];
  const int t = threadIdx.x;
  const auto fetch = [&](int tile) {
    if (t < kTile / 4) __pipeline_memcpy_async(&stage[tile & 1][t * 4], in + tile * kTile + t * 4, 16);
    __pipeline_commit();
  };
  fetch(0);
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fetch(tile + 1);
    __pipeline_wait_prior(tile + 1 < tiles ? 1 : 0);
    __syncthreads();
    sum += stage[tile & 1][kTile - 1 - t];
    __syncthreads();
  }
  out[t] = sum;
}
__global__ void Sizes(const unsigned* in, unsigned* out, int n) {
  __shared__ __align__(16) unsigned s[3][128];
  const int t = threadIdx.x;
  for (int k = 0; k < 3; ++k) s[k][t] = 0xdead;
  __syncthreads();
  const unsigned a = static_cast<unsigned>(__cvta_generic_to_shared(&s[0][t]));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(a), "l"(in + t), "r"(t < n ? 4 : 0) : "memory");
  if (t % 2 == 0) {
    const unsigned b = static_cast<unsigned>(__cvta_generic_to_shared(&s[1][t]));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(b), "l"(in + t) : "memory");
  }
  if (t % 4 == 0) {
    const unsigned c = static_cast<unsigned>(__cvta_generic_to_shared(&s[2][t]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 12;" ::"r"(c), "l"(in + t)
                 : "memory");  // the last word becomes 0
  }
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  for (int k = 0; k < 3; ++k) out[k * 128 + t] = s[k][127 - t];
}

int main() {
  const int tiles = 9;
  std::vector<float> in(tiles * kTile);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = i % 37 * 0.5f;
  Buffer<float> din(in), out(kTile);
  DoubleBuffer<<<1, kTile>>>(din, out, tiles);
  std::vector<unsigned> words(128);
  for (int i = 0; i < 128; ++i) words[i] = i * 3 + 1;
  Buffer<unsigned> dw(words), sizes(3 * 128);
  Sizes<<<1, 128>>>(dw, sizes, 100);
  CU_LAUNCHED();
  const auto o = out.Read();
  for (int t = 0; t < kTile; ++t) {
    float want = 0;
    for (int k = 0; k < tiles; ++k) want += in[k * kTile + kTile - 1 - t];
    Same("double buffer", t, o[t], want);
  }
  const auto s = sizes.Read();
  for (int t = 0; t < 128; ++t) {
    const int i = 127 - t;
    Same("4 bytes", t, s[t], i < 100 ? words[i] : 0u), Same("8 bytes", t, s[128 + t], words[i]);
    Same("16 bytes", t, s[256 + t], i % 4 == 3 ? 0u : words[i]);
  }
  return Verdict();
}
