// Warp functions with one mask from different places of the code: from Volta on the lanes that the mask names wait for
// each other wherever they are, and exchange values.
#include "app.h"

constexpr unsigned kAll = 0xFFFFFFFFu;

/// Both arms of an if.
__global__ void Arms(int* out) {
  const int lane = threadIdx.x % 32;
  int got, votes;
  if (lane & 1) {
    got = __shfl_sync(kAll, lane * 10, (lane + 1) & 31);
    votes = __popc(__ballot_sync(kAll, lane < 9)) + 100;
  } else {
    got = __shfl_sync(kAll, lane * 10 + 7, (lane + 1) & 31) * 3;
    votes = __popc(__ballot_sync(kAll, lane > 20));
  }
  got += __shfl_xor_sync(kAll, votes, 16);
  out[threadIdx.x] = got * 1000 + votes;
}

/// An unrolled loop and its rest: each lane goes round as often as it likes, then lets its own count be known.
__global__ void Unrolled(const int* trips, int* out) {
  const int lane = threadIdx.x % 32, mine = trips[threadIdx.x];
  int sum = 0;
#pragma unroll 4
  for (int i = 0; i < mine; ++i) sum = sum * 3 + __shfl_sync(kAll, lane + i * 100, (lane + 5) & 31);
  for (int i = mine; i < 16; ++i) sum += __shfl_sync(kAll, -lane - i, (lane + 5) & 31);
  out[threadIdx.x] = sum;
}

/// Masks of those that are still in the loop, which the compiler unrolls. Lanes that have left are not named any more.
__global__ void Shrinking(unsigned* out) {
  const int lane = threadIdx.x % 32;
  unsigned sum = 0;
  for (int i = 0; i <= lane; ++i) {
    const unsigned left = kAll << i;
    sum = sum * 3 + __shfl_xor_sync(left, lane * 2, 0) + __any_sync(left, lane == i) +
          __popc(__ballot_sync(left, (lane ^ i) & 1));
  }
  out[threadIdx.x] = sum;
}

/// A loop that lanes leave at different times, all named to the end: those that are through end, and do not hold the
/// others back.
__global__ void Leaving(const int* trips, unsigned* out) {
  const int lane = threadIdx.x % 32, mine = trips[threadIdx.x];
  unsigned sum = 0;
  for (int i = 0; i < mine; ++i) sum += __reduce_add_sync(kAll, lane + i) + __match_any_sync(kAll, lane % 3);
  out[threadIdx.x] = sum;
}

/// Some lanes wait for a flag that another warp sets, the others for them, named by a mask that is no constant.
__global__ void Spinning(volatile int* flags, unsigned mask, int* out) {
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    int value = 1;
    if (lane % 4 == 0 && (mask >> lane & 1)) {
      while (flags[lane] == 0) {
      }
      value = flags[lane];
    }
    if (mask >> lane & 1) {
      value += __shfl_xor_sync(mask, value, 1);
      if (lane & 2) {
        value += __shfl_xor_sync(mask, value, 2);
      } else {
        value += 2 * __shfl_xor_sync(mask, value, 2);
      }
      out[lane] = value;
    }
  } else {
    for (int i = 31; i >= 0; --i) {
      if (threadIdx.x == 32) flags[i] = i + 10;
      __nanosleep(10);
    }
  }
}

void CheckLoops() {
  std::vector<int> t(64);
  for (int i = 0; i < 64; ++i) t[i] = i * 7 % 17;
  const Buffer<int> trips(t);
  Buffer<int> sums(64);
  Unrolled<<<1, 64>>>(trips, sums);
  CU_LAUNCHED();
  const auto got = sums.Read();
  for (int i = 0; i < 64; ++i) {
    const int source = i / 32 * 32 + (i + 5) % 32;
    int want = 0;
    for (int k = 0; k < 16; ++k) {
      const int value = k < t[source] ? source % 32 + k * 100 : -(source % 32) - k;
      want = k < t[i] ? want * 3 + value : want + value;
    }
    Same("unrolled", i, got[i], want);
  }
  Buffer<unsigned> left(64);
  Leaving<<<1, 64>>>(trips, left);
  CU_LAUNCHED();
  const auto sum = left.Read();
  for (int i = 0; i < 64; ++i) {
    unsigned want = 0;
    for (int k = 0; k < t[i]; ++k) {
      unsigned same = 0;
      for (int j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) {
        if (t[j] <= k) continue;
        want += j % 32 + k;
        if (j % 32 % 3 == i % 32 % 3) same |= 1u << j % 32;
      }
      want += same;
    }
    Same("leaving", i, sum[i], want);
  }
}

void CheckShrinking() {
  Buffer<unsigned> out(64);
  Shrinking<<<1, 64>>>(out);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int t = 0; t < 64; ++t) {
    unsigned want = 0;
    for (int i = 0; i <= t % 32; ++i) {
      int votes = 0;
      for (int j = i; j < 32; ++j) votes += (j ^ i) & 1;
      want = want * 3 + t % 32 * 2 + 1 + votes;
    }
    Same("shrinking", t, got[t], want);
  }
}

void CheckSpinning(unsigned mask) {
  Buffer<int> flags(32), out(32);
  Spinning<<<1, 64>>>(flags, mask, out);
  CU_LAUNCHED();
  int value[32], next[32];
  for (int l = 0; l < 32; ++l) value[l] = l % 4 == 0 && (mask >> l & 1) ? l + 10 : 1;
  for (int l = 0; l < 32; ++l) next[l] = value[l] + value[l ^ 1];
  const auto got = out.Read();
  for (int l = 0; l < 32; ++l) {
    if (mask >> l & 1) Same("spinning", l, got[l], next[l] + next[l ^ 2] * (l & 2 ? 1 : 2));
  }
}

int main() {
  Buffer<int> out(64);
  Arms<<<1, 64>>>(out);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < 64; ++i) {
    const int lane = i % 32, from = (lane + 1) & 31;
    const int votes[2] = {5 + 4, 5 + 4 + 100};  // five even lanes are above 20, four odd ones below 9
    int value = lane & 1 ? from * 10 + 7 : from * 10 * 3;
    value += votes[lane & 1];
    Same("arms", i, got[i], value * 1000 + votes[lane & 1]);
  }
  CheckLoops();
  CheckShrinking();
  CheckSpinning(0xFFFFFFFFu);
  CheckSpinning(0x0FF00FF0u);
  return Verdict();
}
