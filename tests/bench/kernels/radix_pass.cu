#include "tests/bench/kernels/block_scan.cuh"

// One pass of a radix sort by 8 bits: digits of each block's 2,048 keys are counted, the counts become places (all of
// digit 0 first, by block), and each block puts its keys there, in their order.
KERNEL RadixCount(const unsigned* keys, unsigned* counts, int shift) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < 2048; i += 256) atomicAdd(&bins[keys[blockIdx.x * 2048 + i] >> shift & 255], 1u);
  __syncthreads();
  counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}
KERNEL RadixPlaces(unsigned* counts, int n) { SumsBefore(counts, n); }

// A warp has 256 keys in a row, 32 at a time: lanes that have the same digit find each other.
KERNEL RadixScatter(const unsigned* keys, const unsigned* places, unsigned* out, int shift) {
  __shared__ unsigned counts[8][256];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  for (int w = 0; w < 8; ++w) counts[w][t] = 0;
  __syncthreads();
  unsigned key[8], rank[8];
#pragma unroll
  for (int round = 0; round < 8; ++round) {
    key[round] = keys[blockIdx.x * 2048 + warp * 256 + round * 32 + lane];
    const unsigned digit = key[round] >> shift & 255;
    const unsigned same = __match_any_sync(0xffffffffu, digit), before = __popc(same & ((1u << lane) - 1));
    const unsigned start = counts[warp][digit];
    __syncwarp();
    if (before == 0) counts[warp][digit] = start + __popc(same);
    __syncwarp();
    rank[round] = start + before;
  }
  __syncthreads();
  unsigned place = places[t * gridDim.x + blockIdx.x];
  for (int w = 0; w < 8; ++w) {
    const unsigned count = counts[w][t];
    counts[w][t] = place;
    place += count;
  }
  __syncthreads();
#pragma unroll
  for (int round = 0; round < 8; ++round) out[counts[warp][key[round] >> shift & 255] + rank[round]] = key[round];
}
