// Random kernels and devices for comparing the two modes of the timing model.
#pragma once

#include <random>

#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {

/// Small grids of warps that diverge, share lines, conflict in banks, meet at barriers, use every kind of instruction.
std::shared_ptr<trace::CtaSource> RandomLaunch(std::mt19937_64& random);

/// A device of configs/devices with random changes: schedulers, issue, latencies, queues, caches, DRAM. Valid.
sim::DeviceSpec RandomDevice(std::mt19937_64& random);

}  // namespace gridloom::timing
