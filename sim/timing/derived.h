// Figures that follow from counters: rates, shares, and what bounds the work. Reports, tables and docs take name, unit and meaning
// from here.
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
  std::string_view counter;  ///< in CounterTable()
  std::string_view label;    ///< in a word or two: what bounds work that spends most of its time there
  std::uint64_t SmCounters::*value;
};
std::span<const SchedulerState> SchedulerStates();

/// "DRAM bandwidth" where its buses were busy most of the time, else the label of what the schedulers did most often.
std::string_view BoundBy(const Activity& activity);

}  // namespace gridloom::timing
