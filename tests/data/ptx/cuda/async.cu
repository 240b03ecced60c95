// Asynchronous copies, barriers, pipelines.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;

__global__ void Async(float* out, const float* in, int n) {
  __shared__ float tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&barrier, block.size());
  block.sync();
  cuda::memcpy_async(tile + threadIdx.x, in + threadIdx.x, sizeof(float), barrier);
  barrier.arrive_and_wait();
  out[threadIdx.x] = tile[255 - threadIdx.x];
  cg::memcpy_async(block, tile, in, 256 * sizeof(float));
  cg::wait(block);
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(&tile[threadIdx.x], &in[n], sizeof(float), pipe);
  pipe.producer_commit();
  pipe.consumer_wait();
  out[n] = tile[n];
  pipe.consumer_release();
}
