// Grids and blocks of many shapes: 3D, odd, partial warps, large x; index registers, launch bounds, an empty range of
// work.
#include "app.h"

__global__ void Mark(unsigned* hits, uint4* ids, unsigned count) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  if (i >= count) return;
  atomicAdd(&hits[i], 1u);
  unsigned lane, warp;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("mov.u32 %0, %%nctaid.z;" : "=r"(warp));
  ids[i] = make_uint4(lane, warp, threadIdx.z, blockIdx.y);
}
__global__ void __launch_bounds__(64, 2) Bounded(int* out) { out[blockIdx.x * 64 + threadIdx.x] = threadIdx.x; }
__global__ void Sum(unsigned long long* out) {
  if (threadIdx.x == 0) atomicAdd(out, static_cast<unsigned long long>(blockIdx.x));
}

int main() {
  const dim3 shapes[][2] = {{dim3(1), dim3(1)},
                            {dim3(1), dim3(31)},
                            {dim3(7), dim3(33)},
                            {dim3(3, 5), dim3(8, 9)},
                            {dim3(2, 3, 4), dim3(3, 5, 7)},
                            {dim3(1, 1, 6), dim3(1, 1, 64)},
                            {dim3(5), dim3(1024)},
                            {dim3(1, 9), dim3(2, 512)},
                            {dim3(2, 2, 2), dim3(32, 32)},
                            {dim3(1, 1, 1), dim3(1, 1024)},
                            {dim3(300), dim3(1)}};
  for (const auto& shape : shapes) {
    const dim3 grid = shape[0], block = shape[1];
    const unsigned per_block = block.x * block.y * block.z, count = grid.x * grid.y * grid.z * per_block;
    Buffer<unsigned> hits(count);
    Buffer<uint4> ids(count);
    Mark<<<grid, block>>>(hits, ids, count);
    CU_LAUNCHED();
    const auto h = hits.Read();
    const auto d = ids.Read();
    for (unsigned i = 0; i < count; ++i) {
      const unsigned t = i % per_block, b = i / per_block;
      Same("hits", i, h[i], 1u), Same("lane", i, d[i].x, t % 32), Same("nctaid.z", i, d[i].y, grid.z);
      Same("tid.z", i, d[i].z, t / (block.x * block.y)), Same("ctaid.y", i, d[i].w, b / grid.x % grid.y);
    }
  }
  Buffer<int> bounded(640);
  Bounded<<<10, 64>>>(bounded);
  Buffer<unsigned long long> sum(1);
  const unsigned blocks = 100'003;
  Sum<<<blocks, 32>>>(sum);
  CU_LAUNCHED();
  const auto b = bounded.Read();
  for (int i = 0; i < 640; ++i) Same("bounded", i, b[i], i % 64);
  Same("large grid", 0, sum.Read()[0], static_cast<unsigned long long>(blocks) * (blocks - 1) / 2);
  return Verdict();
}
