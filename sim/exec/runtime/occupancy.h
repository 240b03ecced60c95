// How many CTAs of a kernel fit on one SM: the calculation NVIDIA's occupancy calculator does, and what the device has
// of memory for their threads' stacks.
#pragma once

#include <cstdint>

#include "sim/device/device_spec.h"
#include "sim/exec/program.h"

namespace gridloom::exec {

std::uint32_t CtasPerSm(const sim::DeviceSpec& device, const KernelInfo& kernel, std::uint32_t block_threads,
                        std::uint32_t dynamic_shared_bytes, std::uint32_t stack_bytes);

}  // namespace gridloom::exec
