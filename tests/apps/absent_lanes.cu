// Lanes that a mask names and that never come, a mistake that programs make. On a GPU the others wait for ever, so this
// is for the virtual GPU alone: it goes on without them.
#include "app.h"

constexpr unsigned kAll = 0xFFFFFFFFu;

/// The lanes from 16 on are at the barrier.
__global__ void Sloppy(int* out) {
  const int lane = threadIdx.x % 32;
  int value = lane;
  if (lane < 16) {
    for (int step = 8; step > 0; step /= 2) value += __shfl_down_sync(kAll, value, step);
  }
  __syncthreads();
  if (lane == 0) out[threadIdx.x] = value;
}

int main() {
  Buffer<int> out(64);
  Sloppy<<<1, 64>>>(out);
  CU_LAUNCHED();
  Same("sum of lanes named with others", 0, out.Read()[0], 15 * 16 / 2);
  return Verdict();
}
