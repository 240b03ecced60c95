// Runs launches on the timing model and hands out what a test asks about.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/device/device_files.h"
#include "sim/timing/engine.h"
#include "tests/sim/timing/synthetic.h"

namespace gridloom::timing {

/// What two runs must agree in.
struct Outcome {
  std::vector<WorkResult> works;
  Counters counters;
  std::vector<SmCounters> sms;
  std::vector<MemoryCounters> partitions;
  Cycle passed = 0;  ///< Engine::passed; runs need not agree in it
};

struct RunOptions {
  std::string policy = "leftover";
  unsigned threads = 1;
  bool plain = false;
  bool each_turn = false;
  Cycle window = 0;
  Cycle step = 0;  ///< simulate so many cycles at a time; 0: all at once
  Parts parts = {};
  Observer* observer = nullptr;
  bool reports = false;  ///< somebody is told of each work that ends
};

/// A device of configs/devices; stops the test if it cannot be read.
sim::DeviceSpec TestDevice(const std::string& name);

/// Launches in stream order of their index, all submitted at cycle 0; stream i % streams.
Outcome RunLaunches(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::CtaSource>>& launches,
                    const RunOptions& options = {}, std::uint32_t streams = 1);

/// One launch.
Outcome RunLaunch(const sim::DeviceSpec& device, std::shared_ptr<trace::CtaSource> launch,
                  const RunOptions& options = {});

/// Cycles of the first launch from its first CTA's first cycle to its end.
Cycle KernelCycles(const Outcome& outcome);

/// The first way in which two outcomes differ, or an empty text.
std::string Difference(const Outcome& a, const Outcome& b);

/// The first conservation law that does not hold, or an empty text: requests are answered, sectors asked for come,
/// everything is counted on both sides of the crossbar, scheduler cycles add up.
std::string BrokenLaw(const sim::DeviceSpec& device, const Outcome& outcome);

}  // namespace gridloom::timing
