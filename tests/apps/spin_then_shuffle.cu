// Lanes that leave a spin loop at different times come together again at the next .sync instruction of all lanes.
#include "app.h"

__global__ void Chain(volatile int* flags, int* out, int rounds) {
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    int sum = 0;
    for (int round = 0; round < rounds; ++round) {
      while (flags[round * 32 + lane] == 0) {
      }
      int value = flags[round * 32 + lane];
      for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
      sum += value;
    }
    out[lane] = sum;
  } else {
    // One lane's flag after the other, the last lane first in odd rounds.
    for (int i = 0; i < rounds * 32; ++i) {
      if (threadIdx.x == 32) flags[i / 64 % 2 == 0 ? i : i / 32 * 32 + 31 - i % 32] = i % 32 + 1;
      for (int wait = 0; wait < 20; ++wait) __nanosleep(1);
    }
  }
}

int main() {
  for (const int rounds : {1, 2, 7}) {
    Buffer<int> flags(rounds * 32), out(32);
    Chain<<<1, 64>>>(flags, out, rounds);
    CU_LAUNCHED();
    const auto f = flags.Read();
    int sum = 0;
    for (const int flag : f) sum += flag;
    const auto sums = out.Read();
    for (int lane = 0; lane < 32; ++lane) Same("sum of a lane", lane, sums[lane], sum);
  }
  return Verdict();
}
