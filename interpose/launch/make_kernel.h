// A launch that is asked for becomes an operation: checked as a driver checks it, its parameters copied, and planned by
// the stages (launch/stages.def).
#pragma once

#include <cstdint>

#include "interpose/api/cuda_types.h"
#include "interpose/objects/launch_request.h"
#include "interpose/objects/operation.h"

namespace gridloom::session {

/// Checks the request as a driver does and copies the parameters. The kernel is compiled when it was not before.
cuda::CUresult MakeKernelOp(Context& context, const LaunchRequest& request, KernelOp* op);

/// Largest number of CTAs of a cooperative launch, on the SMs of `green` or, if that is null, of the device.
std::uint64_t MaxResidentBlocks(Context& context, const GreenContext* green, const exec::KernelInfo& info,
                                exec::Dim3 block, std::uint32_t dynamic_shared_bytes);
/// Dynamic shared memory a block of this kernel may use now.
std::uint32_t DynamicSharedLimit(const Device& device, const Kernel& kernel, const exec::KernelInfo& info);
/// Largest block of this kernel.
std::uint32_t MaxThreads(const Device& device, const exec::KernelInfo& info);

}  // namespace gridloom::session
