// Numbers that the model derives from a device file, once per run.
#pragma once

#include <cstdint>

#include "rewriter/support/result.h"
#include "sim/device/device_spec.h"
#include "sim/timing/cycle.h"
#include "sim/timing/memory/port.h"

namespace gridloom::timing {

/// Device files give latencies end to end, as micro-benchmarks measure them; the model adds up stages. What the stages
/// leave is spread over the links: Derive() does that, and fails where the stages alone are longer than the latency of
/// the file.
struct Parameters {
  sim::DeviceSpec device;

  ClockRatio sm_to_l2, sm_to_dram, l2_to_dram;
  Cycle request_latency = 0;   ///< SM's port to L2 slice, SM cycles
  Cycle response_latency = 0;  ///< L2 slice's port to SM, SM cycles
  Cycle dram_delay = 0;        ///< added after the data of a DRAM read, L2 cycles
  Cycle window = 0;            ///< longest window of cycles that components may be simulated alone

  const sim::TimingSpec& timing() const { return device.timing; }
  std::uint32_t slices_per_partition() const { return timing().l2.slices / timing().dram.channels; }
  std::uint32_t l2_sets() const {
    const sim::TimingSpec::L2& l2 = timing().l2;
    return device.l2.size_bytes / (l2.slices * l2.ways * l2.halves * sim::TimingSpec::kLineBytes);
  }
  Port SmOutPort() const;
  Port SmInPort() const;
  Port SliceOutPort() const;
  /// L2 cycles that a slice takes to receive a request: its packet on the port, its data in the array.
  Cycle SliceOccupancy(std::uint32_t packet_sectors, std::uint32_t data_sectors) const;
};

Result<Parameters> Derive(const sim::DeviceSpec& device);

}  // namespace gridloom::timing
