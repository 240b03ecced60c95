// Programs that leave out a barrier and yet are right on a GPU, whose warps go on from a barrier side by side: what a warp does first
// after it, all warps have done before any of them is far ahead. Block sums whose smem[0] the next sum writes again, a flag that the
// first thread resets, a tree reduction without a barrier between its steps, and a counter set before it is used.
#include "app.h"

namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

__device__ float WarpSum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(~0u, value, offset);
  return value;
}

/// No barrier between the read of smem[0] and the next call's write.
__device__ float BlockSum(float value, float* smem) {
  value = WarpSum(value);
  if (threadIdx.x % 32 == 0) smem[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    const float sum = WarpSum(threadIdx.x < kWarps ? smem[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) smem[0] = sum;
  }
  __syncthreads();
  return smem[0];
}

__global__ void Sums(float* out) {
  __shared__ float smem[kWarps];
  for (int i = 0; i < 8; ++i) out[(blockIdx.x * 8 + i) * kThreads + threadIdx.x] = BlockSum(static_cast<float>(i + 1), smem);
}

/// The same where a spinning thread makes the barriers more than full ones of the CTA.
__global__ void SumsUnderLock(float* out, int* lock) {
  __shared__ float smem[kWarps];
  for (int i = 0; i < 8; ++i) {
    const float sum = BlockSum(static_cast<float>(i + 1), smem);
    if (threadIdx.x == 0) {
      while (atomicCAS(lock, 0, 1) != 0) {
      }
      __threadfence();
      atomicExch(lock, 0);
    }
    out[(blockIdx.x * 8 + i) * kThreads + threadIdx.x] = sum;
  }
}

/// The first thread resets the flag in the next round while others may still have to read it.
__global__ void Rounds(int* rounds) {
  __shared__ int again;
  int count = 0;
  do {
    if (threadIdx.x == 0) again = 0;
    __syncthreads();
    if (threadIdx.x == kThreads - 1 && count < 9) again = 1;
    __syncthreads();
    ++count;
  } while (again);
  rounds[blockIdx.x * kThreads + threadIdx.x] = count;
}

/// One barrier between the load and the steps, none between the steps.
__global__ void Tree(int* out) {
  __shared__ volatile int values[kThreads];
  values[threadIdx.x] = threadIdx.x + 1;
  __syncthreads();
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) values[threadIdx.x] += values[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = values[0];
}

/// No barrier after the first thread has set the counter: it starts first.
__global__ void Count(int* out) {
  __shared__ int counter;
  if (threadIdx.x == 0) counter = 1000;
  atomicAdd(&counter, 1);
  __syncthreads();
  out[blockIdx.x * kThreads + threadIdx.x] = counter;
}

}  // namespace

int main() {
  constexpr int kBlocks = 3;
  Buffer<float> sums(kBlocks * 8 * kThreads);
  Buffer<int> lock(1), ints(kBlocks * kThreads);
  const auto check_sums = [&](const char* what) {
    CU_LAUNCHED();
    const auto got = sums.Read();
    for (int i = 0; i < kBlocks * 8 * kThreads; ++i) Same(what, i, got[i], static_cast<float>((i / kThreads % 8 + 1) * kThreads));
  };
  Sums<<<kBlocks, kThreads>>>(sums);
  check_sums("sum");
  SumsUnderLock<<<kBlocks, kThreads>>>(sums, lock);
  check_sums("sum under lock");

  const auto check = [&](const char* what, int count, auto want) {
    CU_LAUNCHED();
    const auto got = ints.Read();
    for (int i = 0; i < count; ++i) Same(what, i, got[i], want(i % kThreads));
  };
  Rounds<<<kBlocks, kThreads>>>(ints);
  check("rounds", kBlocks * kThreads, [](int) { return 10; });
  Tree<<<kBlocks, kThreads>>>(ints);
  check("tree", kBlocks, [](int) { return kThreads * (kThreads + 1) / 2; });
  Count<<<kBlocks, kThreads>>>(ints);
  check("count", kBlocks * kThreads, [](int) { return 1000 + kThreads; });
  return Verdict();
}
