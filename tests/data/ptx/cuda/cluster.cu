// Clusters, distributed shared memory, bulk copies, mbarriers (compute 9.0 and later).
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__global__ void __cluster_dims__(2, 1, 1) Cluster(int* out) {
  __shared__ int value;
  cg::cluster_group cluster = cg::this_cluster();
  value = threadIdx.x;
  cluster.sync();
  int* other = cluster.map_shared_rank(&value, cluster.block_rank() ^ 1);
  out[threadIdx.x] = *other + cluster.num_blocks() + cluster.block_rank();
  cluster.barrier_arrive();
  cluster.barrier_wait();
}

__global__ void Bulk(int* out, const int* in) {
  __shared__ alignas(128) int tile[256];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::experimental::cp_async_bulk_global_to_shared(tile, in, sizeof(tile), barrier);
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(tile));
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  tile[threadIdx.x] += 1;
  cuda::device::experimental::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::device::experimental::cp_async_bulk_shared_to_global(out, tile, sizeof(tile));
    cuda::device::experimental::cp_async_bulk_commit_group();
    cuda::device::experimental::cp_async_bulk_wait_group_read<0>();
  }
}

__global__ void Primitives(uint64_t* bar, int* p) {
  ptx::fence(ptx::sem_acq_rel, ptx::scope_cluster);
  while (!ptx::mbarrier_try_wait_parity(bar, 0)) {
  }
  ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, 16);
  ptx::red_async(ptx::op_add, p, 3, bar);
  asm volatile("griddepcontrol.wait; griddepcontrol.launch_dependents;");
}
#endif
