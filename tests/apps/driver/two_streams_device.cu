// A kernel that waits for memory nearly all the time, and two that compute: what a multiprocessor has left of the one,
// the others can use.
#include "device.h"

/// Every thread follows indices; no two lanes share a sector.
extern "C" __global__ void __launch_bounds__(256)
    Chase(const unsigned* next, unsigned* last, unsigned entries, int hops) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = thread * 2654435761u % entries;
#pragma unroll 1
  for (int hop = 0; hop < hops; ++hop) at = next[at];
  last[thread] = at;
}

/// Steps of a generator of random numbers, which nothing but arithmetic takes part in.
extern "C" __global__ void __launch_bounds__(128) Mix(unsigned* values, int rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = thread;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
  }
  values[thread] = value;
}

/// The same with another generator: as a pair the two have nothing to gain.
extern "C" __global__ void __launch_bounds__(128) Turn(unsigned* values, int rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value = thread;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    value ^= value << 7;
    value ^= value >> 9;
    value ^= value << 11;
  }
  values[thread] = value;
}
