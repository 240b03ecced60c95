// The one way to start a kernel: every launching entry point, stream capture and explicit graph nodes come through
// MakeKernelOp and Submit. tests/interpose/funnel_test.cpp enumerates the entry points.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "interpose/api/cuda_types.h"
#include "interpose/session/operation.h"

namespace gridloom::session {

struct LaunchRequest {
  cuda::CUfunction function = nullptr;
  exec::Dim3 grid, block, cluster{0, 0, 0};  ///< cluster 0,0,0: what the kernel requires, else none
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  int priority = 0;
  const GreenContext* green = nullptr;  ///< on whose SMs it runs; null: on the device's
  bool may_be_task = false;             ///< it goes into a stream, and may run as a task of a MasterKernel's
  bool from_device = false;        ///< launched by a grid: compiled when it runs, not on the launching warp's stack
  void** kernel_params = nullptr;  ///< a pointer to each parameter's value, or
  void** extra = nullptr;          ///< a list of keys and values with a ready parameter block, or
  std::span<const std::byte> block_of_params;  ///< the block itself (legacy interface)
};

/// Checks the request as a driver does and copies the parameters. The kernel is compiled when it was not before.
cuda::CUresult MakeKernelOp(Context& context, const LaunchRequest& request, KernelOp* op);

/// MakeKernelOp, then Submit.
cuda::CUresult Launch(Stream& stream, const LaunchRequest& asked);

/// Largest number of CTAs of a cooperative launch, on the SMs of `green` or, if that is null, of the device.
std::uint64_t MaxResidentBlocks(Context& context, const GreenContext* green, const exec::KernelInfo& info,
                                exec::Dim3 block, std::uint32_t dynamic_shared_bytes);
/// Dynamic shared memory a block of this kernel may use now.
std::uint32_t DynamicSharedLimit(const Device& device, const Kernel& kernel, const exec::KernelInfo& info);
/// Largest block of this kernel.
std::uint32_t MaxThreads(const Device& device, const exec::KernelInfo& info);

}  // namespace gridloom::session
