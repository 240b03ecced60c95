// Warp and block collectives, cooperative groups, clocks, special registers.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void Warp(int* out, int v, unsigned mask) {
  out[0] = __shfl_sync(mask, v, 3) + __shfl_up_sync(mask, v, 1, 8) + __shfl_down_sync(mask, v, 2) +
           __shfl_xor_sync(mask, v, 16);
  out[1] =
      __all_sync(mask, v) + __any_sync(mask, v) + __ballot_sync(mask, v) + __activemask() + __match_any_sync(mask, v);
  int all;
  out[2] = __match_all_sync(mask, v, &all) + all;
#if __CUDA_ARCH__ >= 800
  out[3] = __reduce_add_sync(mask, v) + __reduce_max_sync(mask, v) + __reduce_xor_sync(mask, static_cast<unsigned>(v));
#endif
  __syncwarp(mask);
  out[4] = __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
  out[5] = clock() + static_cast<int>(clock64()) + warpSize + static_cast<int>(__fns(mask, 0, 2));
  __nanosleep(100);
}

__global__ void Groups(int* out, int v) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  out[0] = cg::reduce(tile, v, cg::plus<int>()) + tile.shfl_down(v, 1) + tile.ballot(v);
  cg::coalesced_group active = cg::coalesced_threads();
  out[1] = active.size() + active.thread_rank();
  cg::this_grid().sync();
  out[2] = gridDim.x * blockDim.y + threadIdx.z + blockIdx.y;
}

__global__ void __launch_bounds__(256, 2) Bounded(int* out) { out[threadIdx.x] = blockIdx.x; }
