#include "sim/exec/runtime/occupancy.h"

#include <algorithm>

#include "sim/exec/runtime/address_space.h"

namespace gridloom::exec {

std::uint32_t CtasPerSm(const sim::DeviceSpec& device, const KernelInfo& kernel, std::uint32_t block_threads,
                        std::uint32_t dynamic_shared_bytes, std::uint32_t stack_bytes) {
  if (block_threads == 0 || block_threads > kernel.max_threads || block_threads > device.block.max_threads) return 0;
  const std::uint64_t warps = (block_threads + sim::DeviceSpec::kWarpSize - 1) / sim::DeviceSpec::kWarpSize;
  std::uint64_t fit = std::min<std::uint64_t>(device.sm.max_blocks, device.max_warps_per_sm() / warps);

  // Registers are given to warps within an SM's partitions: warps go to the partitions in turn.
  const std::uint64_t partitions = std::max(device.allocation.warps, 1u);
  const std::uint64_t registers = RoundUp(std::max(kernel.registers, 1u) * std::uint64_t{sim::DeviceSpec::kWarpSize},
                                          std::max(device.allocation.registers_per_warp, 1u));
  if (device.block.registers != 0 && registers * RoundUp(warps, partitions) > device.block.registers) return 0;
  fit = std::min(fit, device.sm.registers / partitions / registers * partitions / warps);

  const std::uint64_t asked = std::uint64_t{kernel.static_shared_bytes} + dynamic_shared_bytes;
  if (asked > device.block.shared_optin_bytes) return 0;
  const std::uint64_t shared =
      RoundUp(asked + device.block.shared_reserved_bytes, std::max(device.allocation.shared_bytes, 1u));
  if (shared != 0) fit = std::min<std::uint64_t>(fit, device.sm.shared_bytes / shared);
  const std::uint64_t local = kernel.LocalBytes(stack_bytes) * warps * sim::DeviceSpec::kWarpSize;
  if (local != 0 && device.memory.size_bytes != 0)
    fit = std::min<std::uint64_t>(fit, device.memory.size_bytes / std::max(device.sm.count, 1u) / local);
  return static_cast<std::uint32_t>(fit);
}

}  // namespace gridloom::exec
