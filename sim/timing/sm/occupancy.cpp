#include "sim/timing/sm/occupancy.h"

#include <algorithm>

namespace gridloom::timing {
namespace {

std::uint64_t RoundUp(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

policy::SmView EmptySm(const sim::DeviceSpec& device) {
  return {.free_ctas = device.sm.max_blocks,
          .free_warps = device.max_warps_per_sm(),
          .free_registers = device.sm.registers,
          .free_shared_bytes = device.sm.shared_bytes};
}

Result<policy::CtaNeeds> NeedsOf(const trace::LaunchShape& shape, const sim::DeviceSpec& device) {
  if (shape.ctas == 0 || shape.threads_per_cta == 0) return Error{"a launch without threads"};
  const std::uint64_t warps = shape.warps_per_cta();
  const std::uint64_t warp_registers =
      RoundUp(std::uint64_t{shape.registers_per_thread} * trace::kWarpSize, device.allocation.registers_per_warp);
  const std::uint64_t registers = RoundUp(warps, device.allocation.warps) * warp_registers;
  const std::uint64_t shared =
      RoundUp(std::uint64_t{shape.shared_bytes} + device.block.shared_reserved_bytes, device.allocation.shared_bytes);
  const auto too_much = [&](const char* what, std::uint64_t value, std::uint64_t limit) {
    return Error{"a CTA takes " + std::to_string(value) + " " + what + "; an SM of " + device.id + " has " +
                 std::to_string(limit)};
  };
  if (warps > device.max_warps_per_sm()) return too_much("warps", warps, device.max_warps_per_sm());
  if (registers > device.sm.registers) return too_much("registers", registers, device.sm.registers);
  if (shared > device.sm.shared_bytes) return too_much("bytes of shared memory", shared, device.sm.shared_bytes);
  return policy::CtaNeeds{.warps = static_cast<std::uint32_t>(warps),
                          .registers = static_cast<std::uint32_t>(registers),
                          .shared_bytes = static_cast<std::uint32_t>(shared)};
}

std::uint32_t CtasPerSm(const policy::CtaNeeds& needs, const sim::DeviceSpec& device) {
  const policy::SmView sm = EmptySm(device);
  std::uint32_t count = std::min(sm.free_ctas, sm.free_warps / needs.warps);
  if (needs.registers > 0) count = std::min(count, sm.free_registers / needs.registers);
  if (needs.shared_bytes > 0) count = std::min(count, sm.free_shared_bytes / needs.shared_bytes);
  return count;
}

}  // namespace gridloom::timing
