// How many CTAs of a kernel fit on one SM: the calculation NVIDIA's occupancy calculator does.
#pragma once

#include <cstdint>

#include "sim/device/device_spec.h"
#include "sim/exec/program.h"

namespace gridloom::exec {

std::uint32_t CtasPerSm(const sim::DeviceSpec& device, const KernelInfo& kernel, std::uint32_t block_threads,
                        std::uint32_t dynamic_shared_bytes);

}  // namespace gridloom::exec
