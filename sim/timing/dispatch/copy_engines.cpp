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
    const std::uint64_t rate =
        std::uint64_t{timing.dram.channels} * timing.dram.bytes_per_cycle * timing.clock.dram_mhz * 7;
    return std::max<Cycle>((bytes * mhz * 8 + rate - 1) / rate, 1);
  }
  if (copy.kind == WorkKind::kStorageRead || copy.kind == WorkKind::kStorageWrite) {
    const std::uint64_t storage = timing.host.storage_mb_s;
    return storage == 0 ? 1 : std::max<Cycle>((copy.bytes * mhz + storage - 1) / storage, 1);
  }
  return std::max<Cycle>(PcieCycles(copy, timing.pcie.latency_ns), 1);
}

Cycle CopyEngines::BusyCycles(const WorkResult& copy) const {
  const sim::TimingSpec::Pcie& pcie = parameters_.timing().pcie;
  const bool to_host = copy.kind == WorkKind::kCopyToHost && pcie.to_host_engine_ns != 0;
  const std::uint32_t busy_ns = to_host ? pcie.to_host_engine_ns : pcie.engine_ns;
  return OverPcie(copy.kind) && busy_ns != 0 ? std::min(std::max<Cycle>(PcieCycles(copy, busy_ns), 1), Cycles(copy))
                                             : Cycles(copy);
}

Cycle CopyEngines::HandoverCycles() const {
  return (Cycle{parameters_.timing().pcie.handover_ns} * parameters_.timing().clock.sm_mhz + 999) / 1000;
}

/// Its bytes, and what it takes besides.
Cycle CopyEngines::PcieCycles(const WorkResult& copy, std::uint64_t ns) const {
  const sim::TimingSpec::Pcie& pcie = parameters_.timing().pcie;
  const std::uint64_t mhz = parameters_.timing().clock.sm_mhz;
  const std::uint64_t rate = copy.kind == WorkKind::kCopyToDevice ? pcie.to_device_mb_s : pcie.to_host_mb_s;
  return (ns * mhz + 999) / 1000 + (copy.bytes * mhz + rate - 1) / rate;
}

}  // namespace gridloom::timing
