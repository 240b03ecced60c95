#include "sim/timing/parameters.h"

#include <algorithm>

namespace gridloom::timing {
namespace {

/// Windows longer than this bring no more speed, and CTAs could wait longer for their start than devices make them.
constexpr Cycle kLongestWindow = 64;

/// A load that misses L1 waits a cycle for the load/store unit, and a cycle in the L2 slice.
constexpr Cycle kStageCycles = 2;

std::string TooShort(const std::string& key, Cycle value, Cycle least) {
  return key + " is " + std::to_string(value) + "; the stages that the model adds up take at least " +
         std::to_string(least);
}

}  // namespace

Port Parameters::SmOutPort() const {
  return {timing().crossbar.sm_out_bytes, timing().clock.crossbar_mhz, timing().clock.sm_mhz,
          timing().crossbar.header_bytes};
}
Port Parameters::SmInPort() const {
  return {timing().crossbar.sm_in_bytes, timing().clock.crossbar_mhz, timing().clock.sm_mhz,
          timing().crossbar.header_bytes};
}
Port Parameters::SliceOutPort() const {
  return {timing().crossbar.slice_out_bytes, timing().clock.crossbar_mhz, timing().clock.sm_mhz,
          timing().crossbar.header_bytes};
}

Cycle Parameters::SliceOccupancy(std::uint32_t packet_sectors, std::uint32_t data_sectors) const {
  const sim::TimingSpec& spec = timing();
  const std::uint64_t packet_bytes = spec.crossbar.header_bytes + packet_sectors * sim::TimingSpec::kSectorBytes;
  const std::uint64_t rate = std::uint64_t{spec.crossbar.slice_in_bytes} * spec.clock.crossbar_mhz;
  const Cycle packet = (packet_bytes * spec.clock.l2_mhz + rate - 1) / rate;
  const Cycle data =
      (data_sectors * sim::TimingSpec::kSectorBytes + spec.l2.bytes_per_cycle - 1) / spec.l2.bytes_per_cycle;
  return std::max<Cycle>({packet, data, 1});
}

Result<Parameters> Derive(const sim::DeviceSpec& device) {
  Parameters result;
  result.device = device;
  const sim::TimingSpec& timing = device.timing;
  const auto [slowest, fastest] = std::minmax({timing.clock.sm_mhz, timing.clock.l2_mhz, timing.clock.dram_mhz});
  if (fastest / slowest >= ClockRatio::kMaxRatio)
    return Error{"the clocks of timing.clock differ by a factor of 16 or more"};
  result.sm_to_l2 = ClockRatio(timing.clock.sm_mhz, timing.clock.l2_mhz);
  result.sm_to_dram = ClockRatio(timing.clock.sm_mhz, timing.clock.dram_mhz);
  result.l2_to_dram = ClockRatio(timing.clock.l2_mhz, timing.clock.dram_mhz);

  sim::TimingSpec::DeviceLaunch& launch = result.device.timing.device_launch;
  for (std::uint32_t* const cycles :
       {&launch.stream_cycles, &launch.buffer_cycles, &launch.buffer_thread_cycles, &launch.call_cycles,
        &launch.call_thread_cycles, &launch.dispatch_cycles, &launch.dispatch_interval}) {
    *cycles = static_cast<std::uint32_t>(std::uint64_t{*cycles} * launch.percent / 100);
  }

  result.request_latency = timing.crossbar.latency;
  const Cycle stages =
      kStageCycles + result.SmOutPort().Duration(0) + result.request_latency + result.SliceOutPort().Duration(1);
  if (timing.l2.latency <= stages) return Error{TooShort("timing.l2.latency", timing.l2.latency, stages + 1)};
  result.response_latency = timing.l2.latency - stages;

  // The command cycle after the request, activation, read, one burst; in SM cycles.
  const Cycle commands = result.sm_to_dram.Back(1 + timing.dram.tRCD + timing.dram.tCL + timing.dram.tCCD);
  if (timing.dram.latency < timing.l2.latency + commands) {
    return Error{TooShort("timing.dram.latency", timing.dram.latency, timing.l2.latency + commands)};
  }
  result.dram_delay = result.sm_to_l2.Forward(timing.dram.latency - timing.l2.latency - commands);
  result.window =
      std::min<Cycle>({kLongestWindow, result.request_latency + result.response_latency, timing.launch.cta_cycles});

  const std::uint64_t sets = std::uint64_t{result.l2_sets()} * timing.l2.slices;
  if (sets < 256) return Error{"L2 has " + std::to_string(sets) + " sets in all; the model needs at least 256"};
  return result;
}

}  // namespace gridloom::timing
