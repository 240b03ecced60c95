// Prefix sums over a block: what the prefix sum and the radix sort share.
#pragma once

/// The sum of `value` over this thread and those before it, in a block of 256 threads: shuffles within a warp, shared
/// memory between warps.
template <typename T>
static __device__ T SumUpToThread(T value) {
  __shared__ T sums[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 1; step < 32; step *= 2) {
    const T other = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value += other;
  }
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  T before = 0;
  for (int w = 0; w < 8; ++w)
    if (w < warp) before += sums[w];
  __syncthreads();
  return before + value;
}

/// Replaces each of `n` values by the sum of those before it; one block of 256 threads, n a multiple of 1,024.
template <typename T>
static __device__ void SumsBefore(T* values, int n) {
  __shared__ T carry;
  if (threadIdx.x == 0) carry = 0;
  __syncthreads();
  for (int first = 4 * threadIdx.x; first < n; first += 1024) {
    const T a = values[first], b = values[first + 1], c = values[first + 2], d = values[first + 3];
    const T last = SumUpToThread(a + b + c + d) + carry;
    __syncthreads();
    values[first] = last - d - c - b - a;
    values[first + 1] = last - d - c - b;
    values[first + 2] = last - d - c;
    values[first + 3] = last - d;
    if (threadIdx.x == 255) carry = last;
    __syncthreads();
  }
}
