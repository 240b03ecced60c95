// Tiles of several warps keep their barriers and values in shared memory that the toolkit reserves for itself: it is
// apart from the kernel's own static and dynamic memory, zero when a block begins, and counted as a GPU counts it.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "app.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kBlock = 256, kBlocks = 5;

/// Whether `words` are numbered from `first` on.
__device__ bool Numbered(const int* words, int count, int first) {
  bool good = true;
  for (int i = threadIdx.x; i < count; i += blockDim.x) good &= words[i] == first + i;
  return good;
}

/// The sum over each tile in `out`, or -1 where the kernel's own memory has changed.
template <int size, int fixed_words>
__global__ void Tiles(int* out, int dynamic_words) {
  extern __shared__ int dynamic[];
  __shared__ int fixed[fixed_words == 0 ? 1 : fixed_words];
  __shared__ cg::block_tile_memory<kBlock> scratch;
  for (int i = threadIdx.x; i < fixed_words; i += blockDim.x) fixed[i] = 1000 + i;
  for (int i = threadIdx.x; i < dynamic_words; i += blockDim.x) dynamic[i] = 5000 + i;
  const cg::thread_block block = cg::this_thread_block(scratch);
  const auto tile = cg::tiled_partition<size>(block);
  int result = 0;
#pragma unroll 1
  for (int round = 0; round < 3; ++round) {
    tile.sync();
    result = cg::reduce(tile, static_cast<int>(threadIdx.x) + round, cg::plus<int>());
  }
  block.sync();
  const bool kept = Numbered(fixed, fixed_words, 1000) & Numbered(dynamic, dynamic_words, 5000);
  out[blockIdx.x * blockDim.x + threadIdx.x] = kept ? result : -1;
}

template <int size, int fixed_words>
void Run(int dynamic_words) {
  Buffer<int> out(kBlock * kBlocks);
  Tiles<size, fixed_words><<<kBlocks, kBlock, dynamic_words * sizeof(int)>>>(out, dynamic_words);
  CU_LAUNCHED();
  const std::vector<int> got = out.Read();
  for (int i = 0; i < kBlock * kBlocks; ++i) {
    const int first = i % kBlock / size * size;
    Same("tile", i, got[i], size * (first + 2) + size * (size - 1) / 2);
  }
}

__global__ void Places(unsigned* out) {
  extern __shared__ int dynamic[];
  __shared__ int fixed[16];
  asm volatile("mov.u32 %0, %%reserved_smem_offset_begin;" : "=r"(out[0]));
  asm volatile("mov.u32 %0, %%reserved_smem_offset_end;" : "=r"(out[1]));
  asm volatile("mov.u32 %0, %%reserved_smem_offset_cap;" : "=r"(out[2]));
  asm volatile("mov.u32 %0, %%reserved_smem_offset_0;" : "=r"(out[3]));
  asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(out[4]));
  asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(out[5]));
  out[6] = static_cast<unsigned>(__cvta_generic_to_shared(fixed));
  out[7] = static_cast<unsigned>(__cvta_generic_to_shared(dynamic));
  fixed[threadIdx.x % 16] = dynamic[threadIdx.x % 4] = 1;
}

void CheckPlaces() {
  Buffer<unsigned> out(8);
  Places<<<1, 1, 16>>>(out);
  CU_LAUNCHED();
  const std::vector<unsigned> at = out.Read();
  const unsigned begin = at[0], end = at[1], reserved = 1024;
  Same("cap", 0, at[2], reserved);
  Same("end", 0, end, begin + reserved);
  True("offset 0 is inside", at[3] >= begin && at[3] < end);
  True("offset 1 has room for a block's tiles", at[4] >= begin && at[4] + 288 <= end);
  Same("total", 0, at[5], 64u + 16u);
  True("static memory is apart", at[6] >= end || at[6] + 64 <= begin);
  True("dynamic memory is apart", at[7] >= end || at[7] + 16 <= begin);
}

void CheckCounts() {
  cudaDeviceProp device;
  CU(cudaGetDeviceProperties(&device, 0));
  Same<std::size_t>("reservedSharedMemPerBlock", 0, device.reservedSharedMemPerBlock, 1024);
  cudaFuncAttributes attributes;
  CU(cudaFuncGetAttributes(&attributes, Places));
  Same<std::size_t>("static memory of the program alone", 0, attributes.sharedSizeBytes, 64);
  // One block more would fit if nothing were reserved for each.
  const std::size_t each = 8 * 1024;
  int blocks = 0;
  CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Places, 32, each - 64));
  Same<std::size_t>("resident blocks", 0, blocks, device.sharedMemPerMultiprocessor / (each + 1024));
}

}  // namespace

int main() {
  Run<64, 33>(0);
  Run<64, 33>(300);
  Run<128, 0>(0);
  Run<128, 0>(77);
  CheckPlaces();
  CheckCounts();
  return Verdict();
}
