// cuda::barrier and cuda::pipeline: phases, split arrive and wait, a barrier in shared memory fed by memcpy_async,
// mbarrier by hand.
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/pipeline>

#include "app.h"

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init  // cuda::barrier is made by init(), not by its constructor

__global__ void Phases(int* out, int rounds) {
  __shared__ Barrier barrier;
  __shared__ int s[2][96];
  const int t = threadIdx.x;
  if (t == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int v = t;
  for (int r = 0; r < rounds; ++r) {
    s[r & 1][t] = v;
    auto token = barrier.arrive();
    v = v * 3 % 1009;  // work that needs no one
    barrier.wait(std::move(token));
    v += s[r & 1][(t + 33) % 96];
  }
  out[t] = v;
}
__global__ void Fetch(const int* in, int* out) {
  __shared__ Barrier barrier;
  __shared__ __align__(16) int s[256];
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(block, s, in, sizeof s, barrier);
  barrier.arrive_and_wait();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) out[i] = s[255 - i];
}
__global__ void Pipeline(const int* in, int* out, int batches) {
  constexpr int kStages = 2;
  __shared__ __align__(16) int s[kStages][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int compute = 0, fetch = 0; compute < batches; ++compute) {
    for (; fetch < batches && fetch < compute + kStages; ++fetch) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, s[fetch % kStages], in + fetch * 64, sizeof s[0], pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += s[compute % kStages][63 - threadIdx.x] * (compute + 1);
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}
__global__ void ByHand(int* out) {
  __shared__ __align__(8) unsigned long long barrier;
  __shared__ int value;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address), "r"(2) : "memory");
  __syncthreads();
  if (threadIdx.x == 5 || threadIdx.x == 40) {
    if (threadIdx.x == 5) value = 99;
    asm volatile("{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}" ::"r"(address) : "memory");
  }
  unsigned done = 0;
  while (!done)
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(address)
                 : "memory");
  out[threadIdx.x] = value + threadIdx.x;
}

int main() {
  Buffer<int> phases(96), fetched(256), piped(64), hand(64);
  std::vector<int> in(64 * 7);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = i * i % 997;
  Buffer<int> din(in);
  Phases<<<1, 96>>>(phases, 5);
  Fetch<<<1, 70>>>(din, fetched);
  Pipeline<<<1, 64>>>(din, piped, 7);
  ByHand<<<1, 64>>>(hand);
  CU_LAUNCHED();
  std::vector<int> v(96), s;
  for (int t = 0; t < 96; ++t) v[t] = t;
  for (int r = 0; r < 5; ++r) {
    s = v;
    for (int t = 0; t < 96; ++t) v[t] = s[t] * 3 % 1009 + s[(t + 33) % 96];
  }
  const auto p = phases.Read(), f = fetched.Read(), q = piped.Read(), h = hand.Read();
  for (int t = 0; t < 96; ++t) Same("phases", t, p[t], v[t]);
  for (int i = 0; i < 256; ++i) Same("fetched", i, f[i], in[255 - i]);
  for (int t = 0; t < 64; ++t) {
    int want = 0;
    for (int b = 0; b < 7; ++b) want += in[b * 64 + 63 - t] * (b + 1);
    Same("pipeline", t, q[t], want), Same("by hand", t, h[t], 99 + t);
  }
  return Verdict();
}
