// Launches of an empty kernel through the driver library, with or without a broker: the two ends of a launch's way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gridloom::bench {

struct LaunchCosts {
  std::vector<double> hook_us;   ///< until cuLaunchKernel returns
  std::vector<double> whole_us;  ///< until the program knows that the kernel has run
};

/// In a process of its own, since a process has one driver. `socket`: of the broker to join; empty: none. Empty when it
/// cannot run.
LaunchCosts MeasureLaunches(const std::string& socket, int count);

}  // namespace gridloom::bench
