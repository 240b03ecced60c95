// Figures that follow from counters: rates, shares, and what bounds the work. Reports, tables and docs take name, unit
// and meaning from here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/device/device_spec.h"
#include "sim/timing/counters.h"
#include "sim/timing/cycle.h"

namespace gridloom::timing {

/// What happened on a device in some cycles of its SMs' clock.
struct Activity {
  const sim::DeviceSpec& device;
  Cycle cycles = 0;
  const Counters& counters;

  double seconds() const { return static_cast<double>(cycles) / (device.timing.clock.sm_mhz * 1e6); }
};

struct DerivedInfo {
  std::string_view name, unit, meaning;
  double (*value)(const Activity&);  ///< 0 where there is nothing to divide by
};

/// All of them, in the order of reports.
std::span<const DerivedInfo> DerivedTable();

/// The value of one of them; the name must exist.
double Derived(std::string_view name, const Activity& activity);

/// What a scheduler of an SM with a CTA does in a cycle: one of these.
struct SchedulerState {
  std::string_view counter;  ///< its name
  std::string_view label;    ///< in a word or two: what bounds work that spends most of its time there
  std::uint64_t (*read)(const SmCounters&, std::size_t index);
  std::size_t index = 0;  ///< of a list of counters
  std::uint64_t value(const SmCounters& counters) const { return read(counters, index); }
};
/// All of them but waiting for gates of proposed parts. sim/hardware has those of a device with its parts.
std::span<const SchedulerState> SchedulerStates();

/// "DRAM bandwidth" where its buses were busy most of the time, else the label of what the schedulers did most often.
/// `states`: all of the device.
std::string_view BoundBy(const Activity& activity, std::span<const SchedulerState> states = SchedulerStates());

}  // namespace gridloom::timing
