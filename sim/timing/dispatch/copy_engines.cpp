#include "sim/timing/dispatch/copy_engines.h"

#include <algorithm>

namespace gridloom::timing {

CopyEngines::CopyEngines(const Parameters& parameters)
    : parameters_(parameters), busy_(std::clamp(parameters.device.copy_engines, 1u, 2u) + 1) {}

std::size_t CopyEngines::EngineOf(WorkKind kind) const {
  const std::size_t on_device = busy_.size() - 1;
  if (kind == WorkKind::kCopyToDevice) return 0;
  return kind == WorkKind::kCopyToHost ? on_device - 1 : on_device;
}

Cycle CopyEngines::Cycles(const WorkResult& copy) const {
  const sim::TimingSpec& timing = parameters_.timing();
  const std::uint64_t mhz = timing.clock.sm_mhz;
  if (on_device(EngineOf(copy.kind))) {
    const std::uint64_t bytes = copy.kind == WorkKind::kFill ? copy.bytes : 2 * copy.bytes;
    const std::uint64_t rate = std::uint64_t{timing.dram.channels} * timing.dram.bytes_per_cycle * timing.clock.dram_mhz * 7;
    return std::max<Cycle>((bytes * mhz * 8 + rate - 1) / rate, 1);
  }
  const sim::TimingSpec::Pcie& pcie = timing.pcie;
  const std::uint64_t rate = copy.kind == WorkKind::kCopyToDevice ? pcie.to_device_mb_s : pcie.to_host_mb_s;
  const Cycle cycles = (pcie.latency_ns * mhz + 999) / 1000 + (copy.bytes * mhz + rate - 1) / rate;
  return std::max<Cycle>(cycles, 1);
}

}  // namespace gridloom::timing
