// Steps of the Collatz sequence: every lane of a warp leaves its loop at another time. Also counts, per warp, the lanes
// whose sequence is long.
#include "device.h"

extern "C" __global__ void Collatz(unsigned first, unsigned* steps, unsigned* long_lanes, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned count = 0;
  if (i < n) {
    unsigned long long v = first + i;
    while (v != 1) v = v & 1 ? 3 * v + 1 : v / 2, ++count;
    steps[i] = count;
  }
  const unsigned lanes = Ballot(count > 100);
  if (threadIdx.x % 32 == 0) long_lanes[i / 32] = lanes;
}
