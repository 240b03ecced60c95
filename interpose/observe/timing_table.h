// What simulated kernels took, for people and for programs.
#pragma once

#include <cstdint>
#include <string>

#include "sim/study/measure/policy_supply.h"
#include "sim/timing/kernel_table.h"

namespace gridloom::session {

struct TimingTable {
  sim::DeviceSpec device;
  std::string policy;
  std::uint64_t cycles = 0;  ///< until the program and the last work had ended
  timing::KernelTable kernels;
  timing::Counters counters;
  study::PolicySupply::Cost profiled{};  ///< for the policy, besides
  std::string problem;                   ///< empty, or why the simulation ended early
};

std::string TimingText(const TimingTable& table);

/// To a file, or where the log goes for `-`. Logs what goes wrong.
void WriteTimingJson(const TimingTable& table, const std::string& path);

}  // namespace gridloom::session
