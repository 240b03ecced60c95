// __syncwarp from different places of the code: the lanes of a diverged warp wait for each other (Volta and later).
#include "app.h"

/// Three exchanges with the lane that has the other bit 16. In line: every place it is called from has its own
/// __syncwarp.
__device__ __forceinline__ int ExchangeFrom(volatile int* s, int lane, int base, int more) {
  s[lane] = base + lane;
  __syncwarp();
  int got = s[lane ^ 16];
  __syncwarp();
  s[lane] = got + more;
  __syncwarp();
  return s[lane ^ 16];
}
__global__ void Exchange(int* out) {
  __shared__ volatile int s[64];
  const int lane = threadIdx.x;
  out[lane] = lane & 16 ? ExchangeFrom(s, lane, 100, 1) : ExchangeFrom(s, lane, 200, 2);
}
// Groups of eight lanes go round different numbers of times, each with a mask of its own.
__global__ void Groups(int* out) {
  __shared__ volatile int s[64];
  const int lane = threadIdx.x, group = (lane & 31) / 8;
  const unsigned mask = 0xffu << (8 * group);
  int value = lane;
  for (int round = 0; round <= group; ++round) {
    s[lane] = value;
    __syncwarp(mask);
    value += s[(lane & ~7) | ((lane + 1) & 7)];
    __syncwarp(mask);
  }
  out[lane] = value;
}

int main() {
  Buffer<int> out(64);
  Exchange<<<1, 64>>>(out);
  CU_LAUNCHED();
  auto got = out.Read();
  // Lane l without bit 16 writes 200 + l and later (100 + (l ^ 16)) + 2; what a lane gets last is what its partner
  // wrote last.
  for (int l = 0; l < 64; ++l) Same("exchange", l, got[l], l & 16 ? 100 + l + 2 : 200 + l + 1);
  Groups<<<1, 64>>>(out);
  CU_LAUNCHED();
  got = out.Read();
  int want[64], next[64];
  for (int l = 0; l < 64; ++l) want[l] = l;
  for (int round = 0; round < 4; ++round) {
    for (int l = 0; l < 64; ++l) next[l] = want[l] + want[(l & ~7) | ((l + 1) & 7)];
    for (int l = 0; l < 64; ++l)
      if (round <= (l & 31) / 8) want[l] = next[l];
  }
  for (int l = 0; l < 64; ++l) Same("groups", l, got[l], want[l]);
  return Verdict();
}
