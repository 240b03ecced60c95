// Aggregated groups for CUDA programs: a kernel launches thread blocks of a kernel, in any order with all else and
// waited for by nobody, so that a device may let them join a kernel that runs instead of making a kernel of them (J.
// Wang, N. Rubin, A. Sidelnik, S. Yalamanchili, Dynamic Thread Block Launch, ISCA 2015, section 4.1 and Table 1).
// Programs are compiled with -rdc=true and linked with -lcudadevrt.
//
//   __global__ void Parent(int* data, int count) {
//     gridloom::LaunchAggGroup(Child, dim3(count / 32), dim3(32), 0, data, count);
//     // as Child<<<count / 32, 32>>>(data, count)
//   }
//
// Gridloom knows these functions by name. Every other driver runs what they are defined as here: a launch that is
// forgotten (cudaStreamFireAndForget), which means the same.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#ifdef __CUDACC__
#ifndef __CUDACC_RDC__
#error \
    "gridloom/agg_group.h: kernels that launch thread blocks are compiled with nvcc -rdc=true and linked with -lcudadevrt"
#endif

// CUDA dynamic parallelism 1 (before CUDA 12, or by wish) has no streams that are forgotten: each launch has one of its
// own there.
#if defined(cudaStreamFireAndForget) && !defined(CUDA_FORCE_CDP1_IF_SUPPORTED)
#define GRIDLOOM_FORGETS_LAUNCHES
#endif

extern "C" {

/// Launches the thread blocks of `child` that a group consists of: aggDim of them, of tbDim threads and sharedMem bytes
/// of dynamic shared memory each. `buffer` is what cudaGetParameterBuffer gave, with the parameters in it, each at a
/// multiple of its alignment; null where there are none. The result is that of cudaLaunchDevice.
inline __device__ __noinline__ cudaError_t cudaLaunchAggGroup(void* child, void* buffer, dim3 aggDim, dim3 tbDim,
                                                              unsigned int sharedMem) {
#ifdef GRIDLOOM_FORGETS_LAUNCHES
  return cudaLaunchDevice(child, buffer, aggDim, tbDim, sharedMem, cudaStreamFireAndForget);
#elif defined(__CUDA_ARCH__)
  cudaStream_t stream;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  error = cudaLaunchDevice(child, buffer, aggDim, tbDim, sharedMem, stream);
  cudaStreamDestroy(stream);
  return error;
#else
  return cudaErrorNotSupported;
#endif
}

/// The same launch with a buffer of cudaGetParameterBufferV2, which knows kernel, shape and shared memory.
inline __device__ __noinline__ cudaError_t cudaLaunchAggGroupV2(void* buffer) {
#ifdef GRIDLOOM_FORGETS_LAUNCHES
  return cudaLaunchDeviceV2(buffer, cudaStreamFireAndForget);
#elif defined(__CUDA_ARCH__)
  cudaStream_t stream;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  error = cudaLaunchDeviceV2(buffer, stream);
  cudaStreamDestroy(stream);
  return error;
#else
  return cudaErrorNotSupported;
#endif
}

}  // extern "C"

namespace gridloom {
namespace detail {

template <class T>
struct Exactly {
  using Type = T;
};

/// Puts a parameter behind those that are there.
template <class T>
__device__ inline void PutParameter(char* buffer, std::size_t& bytes, const T& value) {
  bytes = (bytes + alignof(T) - 1) / alignof(T) * alignof(T);
  *reinterpret_cast<T*>(buffer + bytes) = value;
  bytes += sizeof(T);
}

}  // namespace detail

/// Launches a group of `grid` thread blocks, as kernel<<<grid, block, shared_bytes>>>(arguments...) launches a kernel.
template <class... Parameters>
__device__ inline cudaError_t LaunchAggGroup(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                             unsigned int shared_bytes,
                                             typename detail::Exactly<Parameters>::Type... arguments) {
#ifdef __CUDA_ARCH__
  char* const buffer =
      static_cast<char*>(cudaGetParameterBufferV2(reinterpret_cast<void*>(kernel), grid, block, shared_bytes));
  if (buffer == nullptr) return cudaErrorLaunchOutOfResources;
  std::size_t bytes = 0;
  const int in_turn[] = {0, (detail::PutParameter<Parameters>(buffer, bytes, arguments), 0)...};
  static_cast<void>(in_turn);
  return cudaLaunchAggGroupV2(buffer);
#else
  return cudaErrorNotSupported;
#endif
}

}  // namespace gridloom

#undef GRIDLOOM_FORGETS_LAUNCHES
#endif  // __CUDACC__
