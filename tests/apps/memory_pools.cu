// Stream-ordered allocation: reuse in order, pools with attributes, trimming, use from another stream.
#include "app.h"
#include "driver.h"

__global__ void Fill(int* v, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) v[i] = value + i;
}
__global__ void AddTo(int* out, const int* v, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += v[i];
}

/// The pool that memory of the stream-ordered allocator is from, as the pointer tells it: the host has no access to it.
void FindPoolOfPointer() {
  int* p = nullptr;
  CU(cudaMallocAsync(&p, 64, nullptr));
  CUmemoryPool pool = nullptr;
  DRV(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, reinterpret_cast<CUdeviceptr>(p)));
  CUmemAccess_flags flags{};
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  DRV(cuMemPoolGetAccess(&flags, pool, &place));
  True("access of the device", flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
#if CUDA_VERSION >= 12020
  place.type = CU_MEM_LOCATION_TYPE_HOST;
  flags = {};
  DRV(cuMemPoolGetAccess(&flags, pool, &place));
  True("access of the host to a device's pool", flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
#endif
  CU(cudaFreeAsync(p, nullptr));
}

#if CUDART_VERSION >= 13000
/// Pools of managed and of host memory: the host reads what a kernel wrote, the pointer tells what it is.
void UsePool(const char* name, cudaMemAllocationType type, cudaMemLocationType place, cudaMemoryType want) {
  const int n = 1000;
  cudaMemPoolProps properties = {};
  properties.allocType = type;
  properties.location.type = place;
  cudaMemPool_t pool = nullptr, current = nullptr, standard = nullptr;
  CU(cudaMemPoolCreate(&pool, &properties));
  CU(cudaMemSetMemPool(&properties.location, type, pool));
  CU(cudaMemGetMemPool(&current, &properties.location, type));
  True("current", current == pool);
  int* p = nullptr;
  CU(cudaMallocFromPoolAsync(&p, n * sizeof(int), pool, nullptr));
  void* seen = nullptr;
  const CUresult found =
      cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, reinterpret_cast<CUdeviceptr>(p));
  True("a device pointer", want == cudaMemoryTypeHost ? found == CUDA_ERROR_INVALID_VALUE : seen == p);
  cudaMemAccessDesc device = {};
  device.location.type = cudaMemLocationTypeDevice;
  device.flags = cudaMemAccessFlagsProtReadWrite;
  CU(cudaMemPoolSetAccess(pool, &device, 1));
  DRV(cuPointerGetAttribute(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, reinterpret_cast<CUdeviceptr>(p)));
  True("its device pointer", seen == p);
  Fill<<<(n + 255) / 256, 256>>>(p, 3, n);
  CU(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i) Same(name, i, p[i], 3 + i);
  cudaPointerAttributes attributes;
  CU(cudaPointerGetAttributes(&attributes, p));
  Same("type", 0, attributes.type, want);
  cudaMemAccessFlags flags{};
  cudaMemLocation host = {};
  host.type = cudaMemLocationTypeHost;
  CU(cudaMemPoolGetAccess(&flags, pool, &host));
  // Of managed memory that is nowhere in particular the manual does not say whom the pool lists.
  const bool listed = type == cudaMemAllocationTypePinned;
  if (place != cudaMemLocationTypeNone)
    True("access of the host to another pool",
         flags == (listed ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtNone));
  CU(cudaFreeAsync(p, nullptr));
  // A device's current pool is the default one again when it is destroyed; of others the manual does not say so, and it
  // is not so.
  CU(cudaMemGetDefaultMemPool(&standard, &properties.location, type));
  CU(cudaMemSetMemPool(&properties.location, type, standard));
  CU(cudaMemPoolDestroy(pool));
  CU(cudaMemGetMemPool(&current, &properties.location, type));
  True("the default again", current == standard);
}
void UsePools() {
  UsePool("managed", cudaMemAllocationTypeManaged, cudaMemLocationTypeNone, cudaMemoryTypeManaged);
  UsePool("managed by the device", cudaMemAllocationTypeManaged, cudaMemLocationTypeDevice, cudaMemoryTypeManaged);
  UsePool("host", cudaMemAllocationTypePinned, cudaMemLocationTypeHost, cudaMemoryTypeHost);
  cudaMemPoolProps nowhere = {};
  nowhere.allocType = cudaMemAllocationTypePinned;
  cudaMemPool_t pool = nullptr;
  True("device memory is somewhere", cudaMemPoolCreate(&pool, &nowhere) == cudaErrorInvalidValue);
}
#else
void UsePools() {}
#endif

int main() {
  FindPoolOfPointer();
  UsePools();
  int supported = 0;
  CU(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  True("supported", supported == 1);
  const int n = 10'000;
  cudaStream_t stream, other;
  CU(cudaStreamCreate(&stream));
  CU(cudaStreamCreate(&other));
  Buffer<int> sum(n);
  for (int round = 0; round < 20; ++round) {
    int* temporary = nullptr;
    CU(cudaMallocAsync(&temporary, n * sizeof(int), stream));
    Fill<<<(n + 255) / 256, 256, 0, stream>>>(temporary, round, n);
    AddTo<<<(n + 255) / 256, 256, 0, stream>>>(sum, temporary, n);
    CU(cudaFreeAsync(temporary, stream));
  }
  CU(cudaStreamSynchronize(stream));
  const auto got = sum.Read();
  for (int i = 0; i < n; ++i) Same("rounds", i, got[i], 190 + 20 * i);

  cudaMemPool_t pool = nullptr, standard = nullptr;
  CU(cudaDeviceGetDefaultMemPool(&standard, 0));
  std::uint64_t threshold = 1 << 20, value = 0;
  CU(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &threshold));
  CU(cudaMemPoolGetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &value));
  Same("threshold", 0, value, threshold);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  CU(cudaMemPoolCreate(&pool, &properties));
  int* from_pool = nullptr;
  CU(cudaMallocFromPoolAsync(&from_pool, n * sizeof(int), pool, stream));
  CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  True("used", value >= n * sizeof(int));
  Fill<<<(n + 255) / 256, 256, 0, stream>>>(from_pool, 5, n);
  cudaEvent_t ready;
  CU(cudaEventCreate(&ready));
  CU(cudaEventRecord(ready, stream));
  CU(cudaStreamWaitEvent(other, ready, 0));
  CU(cudaMemsetAsync(sum, 0, n * sizeof(int), other));
  AddTo<<<(n + 255) / 256, 256, 0, other>>>(sum, from_pool, n);
  CU(cudaFreeAsync(from_pool, other));
  CU(cudaStreamSynchronize(other));
  const auto again = sum.Read();
  for (int i = 0; i < n; ++i) Same("pool", i, again[i], 5 + i);
  CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  Same("all freed", 0, value, std::uint64_t{0});
  CU(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
  True("high water", value >= n * sizeof(int));
  CU(cudaMemPoolTrimTo(pool, 0));
  CU(cudaMemPoolDestroy(pool));

  // cudaFree takes stream-ordered memory too.
  int* p = nullptr;
  CU(cudaMallocAsync(&p, 64, nullptr));
  CU(cudaDeviceSynchronize());
  CU(cudaFree(p));
  return Verdict();
}
