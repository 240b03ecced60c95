// Runs launches on the timing model and takes the time, for the benchmarks of its speed.
#pragma once

#include <memory>
#include <vector>

#include "sim/timing/engine.h"

namespace gridloom::timing {

struct Measurement {
  double seconds = 1e30;  ///< the best of several runs: CPU time of one thread, time that passes of several
  Cycle cycles = 0;       ///< from the first start to the last end
  Counters counters;
};

/// All CTAs of a launch in memory, so that only the model is measured.
std::shared_ptr<trace::CtaSource> Loaded(trace::CtaSource& source);

/// Launches in a stream each, under `leftover`, again and again until so many seconds have passed. Ends the program on
/// errors.
Measurement Measure(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::CtaSource>>& sources,
                    const EngineOptions& options, double seconds);

/// How many times as fast the threads would be that never wait for a processor: the CPU time of all of them by that of
/// the one that takes longest, phase by phase, with what is done between phases by one of them.
double WorkShared(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::CtaSource>>& sources,
                  EngineOptions options);

}  // namespace gridloom::timing
