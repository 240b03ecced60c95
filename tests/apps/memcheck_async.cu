// Asynchronous copies to shared memory that are read or written before their end, and right ones.
// memcheck_async_test.py knows what has to be told. The line of a defect is marked with its name.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <string>

#include "app.h"

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void NoWait(const int* in, int* out) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(tile + threadIdx.x, in + threadIdx.x, 4);
  __pipeline_commit();
  out[threadIdx.x] = tile[threadIdx.x];  // no-wait
  __pipeline_wait_prior(0);
}
__global__ void WrongGroup(const int* in, int* out) {
  __shared__ int tile[2][64];
  for (int i = 0; i < 2; ++i) {
    __pipeline_memcpy_async(tile[i] + threadIdx.x, in + i * 64 + threadIdx.x, 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  out[threadIdx.x] = tile[0][threadIdx.x];
  out[threadIdx.x] += tile[1][threadIdx.x];  // wrong-group
  __pipeline_wait_prior(0);
}
__global__ void BarrierBeforeWait(const int* in, int* out) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(tile + threadIdx.x, in + threadIdx.x, 4);
  __pipeline_commit();
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // barrier-before-wait
  __pipeline_wait_prior(0);
}
__global__ void NoBarrier(const int* in, int* out) {
  __shared__ int tile[128];
  __pipeline_memcpy_async(tile + threadIdx.x, in + threadIdx.x, 4);
  __pipeline_commit();
  __syncthreads();
  __pipeline_wait_prior(0);
  out[threadIdx.x] = tile[127 - threadIdx.x];  // no-barrier
}
__global__ void WrittenTooEarly(const int* in, int* out) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(tile + threadIdx.x, in + threadIdx.x, 4);
  tile[threadIdx.x] = 3;  // written-too-early
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[threadIdx.x] = tile[threadIdx.x];
}
__global__ void NoWaitGroup(const int* in, int* out) {
  __shared__ alignas(16) int tile[64];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof(tile));
  out[threadIdx.x] = tile[threadIdx.x];  // no-wait-of-group
  cg::wait(block);
}
__global__ void NoWaitMbarrier(const int* in, int* out) {
  __shared__ alignas(16) int tile[64];
  __shared__ alignas(Barrier) char memory[sizeof(Barrier)];
  Barrier* const barrier = reinterpret_cast<Barrier*>(memory);
  const auto block = cg::this_thread_block();
  if (threadIdx.x == 0) init(barrier, blockDim.x);
  block.sync();
  cuda::memcpy_async(block, tile, in, cuda::aligned_size_t<16>(sizeof(tile)), *barrier);
  out[threadIdx.x] = tile[threadIdx.x];  // no-wait-at-mbarrier
  barrier->arrive_and_wait();
}
/// What a warp that has ended wrote is not ordered by a barrier of other warps.
__global__ void EndedWriter(const int* in, int* out) {
  __shared__ int tile[32];
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = in[threadIdx.x];  // ended-writer
    return;
  }
  asm volatile("bar.sync 1, 64;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x % 32];  // ended-writer
}

__global__ void Right(const int* in, int* out) {
  __shared__ alignas(16) int tile[4][128];
  __shared__ alignas(Barrier) char memory[sizeof(Barrier)];
  Barrier* const barrier = reinterpret_cast<Barrier*>(memory);
  const auto block = cg::this_thread_block();
  const int t = threadIdx.x;
  if (t == 0) init(barrier, blockDim.x);
  int sum = 0;
  // Own bytes behind the wait, those of others behind a barrier; a newer group under way.
  for (int i = 0; i < 3; ++i) {
    __pipeline_memcpy_async(tile[i] + t, in + i * 128 + t, 4);
    __pipeline_commit();
  }
  for (int i = 0; i < 9; ++i) {
    __pipeline_wait_prior(2);
    sum += tile[i % 4][t];
    __syncthreads();
    sum += tile[i % 4][127 - t];
    if (i < 6) __pipeline_memcpy_async(tile[(i + 3) % 4] + t, in + t, 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(0);
  block.sync();
  cg::memcpy_async(block, tile[0], in, sizeof(tile[0]));
  cg::wait(block);
  sum += tile[0][127 - t];
  block.sync();
  for (int i = 0; i < 2; ++i) {
    cuda::memcpy_async(block, tile[1], in, cuda::aligned_size_t<16>(sizeof(tile[1])), *barrier);
    barrier->arrive_and_wait();
    sum += tile[1][127 - t];
    block.sync();
  }
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipeline = cuda::make_pipeline(block, &state);
  for (int i = 0; i < 6; ++i) {
    if (i < 5) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, tile[2 + i % 2], in + 8 * i, sizeof(tile[2]), pipeline);
      pipeline.producer_commit();
    }
    if (i > 0) {
      pipeline.consumer_wait();
      sum += tile[2 + (i - 1) % 2][127 - t];
      pipeline.consumer_release();
    }
  }
  out[t] = sum;
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "none";
  int *in = nullptr, *out = nullptr;
  CU(cudaMalloc(&in, 4096));
  CU(cudaMalloc(&out, 4096));
  CU(cudaMemset(in, 0x11, 4096));
  struct Case {
    const char* name;
    void (*kernel)(const int*, int*);
    int threads;
  };
  const Case cases[] = {
      {"no-wait", NoWait, 64},
      {"wrong-group", WrongGroup, 64},
      {"barrier-before-wait", BarrierBeforeWait, 64},
      {"no-barrier", NoBarrier, 128},
      {"written-too-early", WrittenTooEarly, 64},
      {"no-wait-of-group", NoWaitGroup, 64},
      {"no-wait-at-mbarrier", NoWaitMbarrier, 64},
      {"ended-writer", EndedWriter, 96},
      {"none", Right, 128},
  };
  for (const Case& one : cases)
    if (name == one.name) one.kernel<<<1, one.threads>>>(in, out);
  std::printf("%s: %s\n", name.c_str(), cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
