// A launch as the program asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "interpose/api/cuda_types.h"
#include "sim/exec/engine.h"

namespace gridloom::session {

class GreenContext;

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

}  // namespace gridloom::session
