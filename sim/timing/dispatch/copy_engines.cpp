#include "sim/timing/dispatch/copy_engines.h"

#include <algorithm>

namespace gridloom::timing {

CopyEngines::CopyEngines(const Parameters& parameters)
    : parameters_(parameters), on_device_(std::clamp(parameters.device.copy_engines, 1u, 2u)), busy_(on_device_ + 3) {}

std::size_t CopyEngines::EngineOf(WorkKind kind) const {
  switch (kind) {
    case WorkKind::kCopyToDevice: return 0;
    case WorkKind::kCopyToHost: return on_device_ - 1;
    case WorkKind::kStorageRead: return on_device_ + 1;
    case WorkKind::kStorageWrite: return on_device_ + 2;
    default: return on_device_;
  }
}

Cycle CopyEngines::Cycles(const WorkResult& copy) const {
  const sim::TimingSpec& timing = parameters_.timing();
  const std::uint64_t mhz = timing.clock.sm_mhz;
  if (on_device(EngineOf(copy.kind))) {
    const std::uint64_t bytes = copy.kind == WorkKind::kFill ? copy.bytes : 2 * copy.bytes;
    const std::uint64_t rate = std::uint64_t{timing.dram.channels} * timing.dram.bytes_per_cycle * timing.clock.dram_mhz * 7;
    return std::max<Cycle>((bytes * mhz * 8 + rate - 1) / rate, 1);
  }
  if (copy.kind == WorkKind::kStorageRead || copy.kind == WorkKind::kStorageWrite) {
    const std::uint64_t storage = timing.host.storage_mb_s;
    return storage == 0 ? 1 : std::max<Cycle>((copy.bytes * mhz + storage - 1) / storage, 1);
  }
  const sim::TimingSpec::Pcie& pcie = timing.pcie;
  const std::uint64_t rate = copy.kind == WorkKind::kCopyToDevice ? pcie.to_device_mb_s : pcie.to_host_mb_s;
  const Cycle cycles = (pcie.latency_ns * mhz + 999) / 1000 + (copy.bytes * mhz + rate - 1) / rate;
  return std::max<Cycle>(cycles, 1);
}

}  // namespace gridloom::timing
