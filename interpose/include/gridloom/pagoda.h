// Narrow tasks for CUDA programs that ask for them (T. T. Yeh, A. Sabne, P. Sakdhnagool, R. Eigenmann and T. G. Rogers,
// Pagoda: Fine-Grained GPU Resource Virtualization for Narrow Tasks, PPoPP 2017, Table 1). Tasks are in no order with
// each other, nor with anything in streams; the host waits for them. A task's kernel is a kernel as any other.
//
//   namespace pagoda = gridloom::pagoda;
//   __global__ void Scale(float* data, float by) { data[pagoda::getTid()] *= by; }
//
//   // as Scale<<<1, 64>>>(data, 2.0f)
//   const pagoda::TaskId task = pagoda::taskSpawn(64, 1, 0, false, Scale, data, 2.0f);
//   pagoda::wait(task);
//
// Under `gridloom run --policy pagoda` the shim answers (docs/narrow-tasks.md). Everywhere else, without Gridloom too,
// tasks are launches into 32 streams. Nothing has to be linked but the CUDA runtime and, with old C libraries, -ldl.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <mutex>
#include <unordered_map>

namespace gridloom {
namespace pagoda {

using TaskId = unsigned long long;  ///< 0: none

namespace detail {

template <class T>
struct Exactly {
  using Type = T;
};

constexpr int kNotReady = 600, kNotSupported = 801;  // of CUresult

/// What the shim exports; all null without it.
struct Shim {
  int (*spawn)(void* function, const unsigned* grid, const unsigned* block, unsigned shared_bytes, void** params,
               TaskId* task);
  int (*wait)(TaskId task);
  int (*check)(TaskId task);
  int (*wait_all)();
};

/// One for the process: who answers, and the streams that tasks go into where the shim does not answer.
class Host {
 public:
  static Host& Get() {
    static Host* const host = new Host;  // tasks may be there until the very end
    return *host;
  }

  cudaError_t Spawn(const void* kernel, dim3 grid, dim3 block, unsigned shared_bytes, void** params, TaskId* task) {
#if CUDART_VERSION >= 11000
    if (shim_.spawn != nullptr) {
      cudaFunction_t function;
      const cudaError_t found = cudaGetFuncBySymbol(&function, kernel);
      if (found != cudaSuccess) return found;
      const unsigned grids[] = {grid.x, grid.y, grid.z}, blocks[] = {block.x, block.y, block.z};
      const int status = shim_.spawn(function, grids, blocks, shared_bytes, params, task);
      if (status != kNotSupported) return static_cast<cudaError_t>(status);
    }
#endif
    const std::lock_guard<std::mutex> lock(mutex_);
    cudaStream_t& stream = streams_[next_ % kStreams];
    cudaError_t error = stream != nullptr ? cudaSuccess : cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEvent_t event = nullptr;
    if (error == cudaSuccess) error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaLaunchKernel(kernel, grid, block, params, shared_bytes, stream);
    if (error == cudaSuccess) error = cudaEventRecord(event, stream);
    if (error != cudaSuccess) return error;
    *task = kOwn | ++next_;
    events_[*task] = event;
    return cudaSuccess;
  }

  cudaError_t Wait(TaskId task) {
    if ((task & kOwn) == 0)
      return shim_.wait != nullptr ? static_cast<cudaError_t>(shim_.wait(task)) : cudaErrorInvalidValue;
    const cudaEvent_t event = Take(task);
    if (event == nullptr) return cudaSuccess;
    const cudaError_t error = cudaEventSynchronize(event);
    cudaEventDestroy(event);
    return error;
  }

  cudaError_t Check(TaskId task) {
    if ((task & kOwn) == 0)
      return shim_.check != nullptr ? static_cast<cudaError_t>(shim_.check(task)) : cudaErrorInvalidValue;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = events_.find(task);
    return found == events_.end() ? cudaSuccess : cudaEventQuery(found->second);
  }

  cudaError_t WaitAll() {
    if (shim_.wait_all != nullptr) {
      const int status = shim_.wait_all();
      if (status != kNotSupported && status != cudaSuccess) return static_cast<cudaError_t>(status);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    cudaError_t error = cudaSuccess;
    for (cudaStream_t stream : streams_) {
      if (stream != nullptr && error == cudaSuccess) error = cudaStreamSynchronize(stream);
    }
    for (const auto& one : events_) cudaEventDestroy(one.second);
    events_.clear();
    return error;
  }

 private:
  static constexpr unsigned kStreams = 32;
  static constexpr TaskId kOwn = TaskId{1} << 63;  ///< of tasks that are launches here

  Host() {
    shim_.spawn = reinterpret_cast<decltype(shim_.spawn)>(dlsym(RTLD_DEFAULT, "gridloomTaskSpawn"));
    shim_.wait = reinterpret_cast<decltype(shim_.wait)>(dlsym(RTLD_DEFAULT, "gridloomTaskWait"));
    shim_.check = reinterpret_cast<decltype(shim_.check)>(dlsym(RTLD_DEFAULT, "gridloomTaskCheck"));
    shim_.wait_all = reinterpret_cast<decltype(shim_.wait_all)>(dlsym(RTLD_DEFAULT, "gridloomTaskWaitAll"));
  }

  cudaEvent_t Take(TaskId task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = events_.find(task);
    if (found == events_.end()) return nullptr;
    const cudaEvent_t event = found->second;
    events_.erase(found);
    return event;
  }

  Shim shim_{};
  std::mutex mutex_;
  cudaStream_t streams_[kStreams] = {};
  TaskId next_ = 0;
  std::unordered_map<TaskId, cudaEvent_t> events_;
};

inline cudaError_t& Error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

}  // namespace detail

/// Spawns `kernel` with `threads` threads in each of `blocks` blocks, and does not wait. 0 when that failed: lastError
/// tells why. `sync`, whether the threads of a block wait for each other, is there as in the paper; Gridloom sees it
/// from the code.
template <class... Parameters>
TaskId taskSpawn(dim3 threads, dim3 blocks, unsigned shared_bytes, bool sync, void (*kernel)(Parameters...),
                 typename detail::Exactly<Parameters>::Type... arguments) {
  static_cast<void>(sync);
  void* params[sizeof...(Parameters) + 1] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  TaskId task = 0;
  detail::Error() =
      detail::Host::Get().Spawn(reinterpret_cast<const void*>(kernel), blocks, threads, shared_bytes, params, &task);
  return detail::Error() == cudaSuccess ? task : 0;
}

/// Returns when the task is over; the error is that of the device, if there is one.
inline cudaError_t wait(TaskId task) { return detail::Host::Get().Wait(task); }

/// Whether the task is over.
inline bool check(TaskId task) {
  detail::Error() = detail::Host::Get().Check(task);
  return detail::Error() != cudaErrorNotReady;
}

/// Returns when all tasks are over.
inline cudaError_t waitAll() { return detail::Host::Get().WaitAll(); }

/// The error of the last taskSpawn or check of this thread.
inline cudaError_t lastError() { return detail::Error(); }

#ifdef __CUDACC__

/// Number of this thread in its block.
__device__ inline unsigned getTid() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }

/// Waits for all threads of the block.
__device__ inline void syncBlock() { __syncthreads(); }

/// The block's shared memory, of the size that taskSpawn was told; 32-byte aligned.
__device__ inline char* getSMPtr() {
  extern __shared__ __align__(32) char gridloom_pagoda_shared[];
  return gridloom_pagoda_shared;
}

#endif  // __CUDACC__

}  // namespace pagoda
}  // namespace gridloom
