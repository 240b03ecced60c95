// Function attributes, occupancy, dynamic shared memory above 48 KB, device properties and limits, cache preferences.
#include "app.h"

__constant__ char kPad[100];
__global__ void __launch_bounds__(256, 1) Bounded(float* out) {
  __shared__ float s[300];
  s[threadIdx.x] = kPad[threadIdx.x % 100];
  __syncthreads();
  out[threadIdx.x] = s[255 - threadIdx.x];
}
__global__ void Dynamic(int* out, int words) {
  extern __shared__ int pool[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) pool[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *out = pool[words - 1];
}

int main() {
  cudaFuncAttributes attributes;
  CU(cudaFuncGetAttributes(&attributes, Bounded));
  Same("shared size", 0, attributes.sharedSizeBytes, std::size_t{1200});
  Same("max threads", 0, attributes.maxThreadsPerBlock, 256);
  True("registers", attributes.numRegs > 0 && attributes.numRegs <= 255);
  True("versions", attributes.ptxVersion == 75 && attributes.binaryVersion >= 75);

  cudaDeviceProp prop;
  CU(cudaGetDeviceProperties(&prop, 0));
  True("properties", prop.warpSize == 32 && prop.maxThreadsPerBlock >= 1024 && prop.multiProcessorCount > 0 &&
                         prop.totalGlobalMem > (1u << 20) && prop.sharedMemPerBlock == 48 * 1024 &&
                         prop.regsPerBlock > 0 && std::strlen(prop.name) > 0 && prop.major >= 7);
  std::printf("%s, %d.%d, %d multiprocessors\n", prop.name, prop.major, prop.minor, prop.multiProcessorCount);
  int major = 0;
  CU(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  Same("major", 0, major, prop.major);

  int blocks = 0, min_grid = 0, best = 0;
  CU(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Bounded, 256, 0));
  True("occupancy", blocks >= 1 && blocks * 256 <= prop.maxThreadsPerMultiProcessor);
  CU(cudaOccupancyMaxPotentialBlockSize(&min_grid, &best, Bounded));
  True("block size", best >= 32 && best <= 256 && min_grid >= prop.multiProcessorCount);
  std::size_t available = 0;
  CU(cudaOccupancyAvailableDynamicSMemPerBlock(&available, Dynamic, 1, 256));
  True("available", available > 0 && available <= prop.sharedMemPerMultiprocessor);

  Buffer<int> out(1);
  const int large = static_cast<int>(prop.sharedMemPerBlockOptin);
  Dynamic<<<1, 64, large>>>(out, large / 4);
  Error("not opted in", cudaGetLastError(), cudaErrorInvalidValue);
  CU(cudaFuncSetAttribute(Dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, large));
  Dynamic<<<1, 64, large>>>(out, large / 4);
  CU_LAUNCHED();
  Same("opted in", 0, out.Read()[0], large / 4 - 1);
  Error("beyond opt-in", cudaFuncSetAttribute(Dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, large + 1024),
        cudaErrorInvalidValue);
  cudaGetLastError();
  CU(cudaFuncSetCacheConfig(Dynamic, cudaFuncCachePreferShared));
  CU(cudaFuncSetAttribute(Dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, 50));

  std::size_t limit = 0, free_bytes = 0, total = 0;
  CU(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
  CU(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  True("stack limit", limit >= 8192);
  CU(cudaMemGetInfo(&free_bytes, &total));
  True("memory", free_bytes <= total && total > 0);
  void* block = nullptr;
  CU(cudaMalloc(&block, 64 << 20));
  std::size_t less = 0;
  CU(cudaMemGetInfo(&less, &total));
  True("less free", less + (60u << 20) <= free_bytes);
  Error("too much", cudaMalloc(&block, total * 4), cudaErrorMemoryAllocation);
  return Verdict();
}
