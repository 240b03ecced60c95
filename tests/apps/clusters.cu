// Thread-block clusters (sm_90): distributed shared memory, cluster barriers, ranks, launch attribute and
// __cluster_dims__.
#include <cooperative_groups.h>

#include "app.h"

namespace cg = cooperative_groups;

// Each block reads its right neighbour's shared memory.
__global__ void __cluster_dims__(4, 1, 1) Neighbours(int* out) {
  __shared__ int s[64];
  cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  s[threadIdx.x] = blockIdx.x * 1000 + threadIdx.x;
  cluster.sync();
  const int* other = cluster.map_shared_rank(s, (rank + 1) % cluster.num_blocks());
  out[blockIdx.x * 64 + threadIdx.x] = other[63 - threadIdx.x];
  cluster.sync();  // no block leaves while another reads it
}
// A histogram whose bins are spread over the blocks of a cluster.
__global__ void Histogram(const unsigned* in, unsigned* out, int n, int bins_per_block) {
  extern __shared__ unsigned bins[];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) bins[i] = 0;
  cluster.sync();
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    const unsigned bin = in[i] % (bins_per_block * cluster.num_blocks());
    atomicAdd(cluster.map_shared_rank(bins, bin / bins_per_block) + bin % bins_per_block, 1u);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
    atomicAdd(&out[cluster.block_rank() * bins_per_block + i], bins[i]);
}
__global__ void __cluster_dims__(2, 2, 1) Registers(uint4* out) {
  uint4 r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r.x));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r.y));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(r.z));
  asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(r.w));
  if (threadIdx.x == 0) out[blockIdx.y * gridDim.x + blockIdx.x] = r;
}

int main() {
  Buffer<int> out(8 * 64);
  Neighbours<<<8, 64>>>(out);
  Buffer<uint4> registers(24);
  Registers<<<dim3(6, 4), 32>>>(registers);
  CU_LAUNCHED();
  const auto o = out.Read();
  for (int i = 0; i < 512; ++i) {
    const int block = i / 64, other = block / 4 * 4 + (block + 1) % 4;
    Same("neighbour", i, o[i], other * 1000 + 63 - i % 64);
  }
  const auto r = registers.Read();
  for (unsigned y = 0; y < 4; ++y)
    for (unsigned x = 0; x < 6; ++x) {
      const uint4 v = r[y * 6 + x];
      Same("rank", y * 6 + x, v.x, x % 2 + y % 2 * 2), Same("count", y * 6 + x, v.y, 4u);
      Same("cluster", y * 6 + x, v.z, x / 2), Same("ctaid.y", y * 6 + x, v.w, y % 2);
    }

  const int n = 5000, bins = 128, size = 2;
  std::vector<unsigned> in(n), want(bins * size);
  Random random(43);
  for (auto& v : in) v = random.Next() >> 5, ++want[v % (bins * size)];
  Buffer<unsigned> din(in), counts(bins * size);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(6), config.blockDim = dim3(96), config.dynamicSmemBytes = bins * sizeof(unsigned);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {size, 1, 1};
  config.attrs = &attribute, config.numAttrs = 1;
  CU(cudaLaunchKernelEx(&config, Histogram, static_cast<const unsigned*>(din), static_cast<unsigned*>(counts), n,
                        bins));
  CU_LAUNCHED();
  const auto c = counts.Read();
  for (int i = 0; i < bins * size; ++i) Same("histogram", i, c[i], want[i]);
  int clusters = 0;
  CU(cudaOccupancyMaxActiveClusters(&clusters, Histogram, &config));
  True("active clusters", clusters > 0);
  return Verdict();
}
