// What the performance model wants to know of a kernel and a device (scheduler/model/kernel_profile.h), from the timing
// model: the counters of a few waves of thread blocks alone on the device, and a walk along the paths of a few blocks.
#pragma once

#include <array>
#include <vector>

#include "scheduler/model/kernel_profile.h"
#include "sim/study/measure/co_run.h"

namespace gridloom::study {

/// The device as the performance model sees it. A request is one burst of DRAM.
model::SmModel SmModelOf(const sim::DeviceSpec& device);

/// What the paths of some blocks of a kernel say, whatever runs beside them.
struct PathFacts {
  double memory_ratio = 0;         ///< global and local accesses of all instructions
  double uncoalesced_share = 0;    ///< of those accesses: touch more than kCoalescedLines lines
  double uncoalesced_sectors = 0;  ///< of all sectors that accesses touch, those of uncoalesced ones
  double loads_per_stall = 1;      ///< accesses per wait for the result of one
  /// Accesses that stay in the SM's core (shared memory, constants, textures) of all instructions.
  double core_ratio = 0;
  double coalesced_lines = 0, uncoalesced_lines = 0;  ///< that such an access touches, mean
  double dependency_cycles = 1;  ///< from one issue of a lone warp to its next, if global memory answered at once
  double sectors_per_access = 0;
  std::array<double, sim::kPipeCount> pipe_cycles{};  ///< unit cycles of each pipe that an instruction takes, mean
};
inline constexpr unsigned kCoalescedLines = 4;  ///< 32 lanes of 16 bytes in line fill so many

/// What the paths of `blocks` thread blocks say, evenly spread over the grid.
PathFacts WalkPaths(const TracedKernel& kernel, const sim::TimingSpec& timing, std::size_t blocks = 8);

/// The profile of a kernel; `alone` is MeasureCoRun of it alone with CtasPerSm blocks on each SM, `lone_ipc` its IPC
/// with one block on each SM (0: not measured; model::FitToLoneBlock). `smallest_slice` is left at 1.
Result<model::KernelProfile> ProfileFrom(const TracedKernel& kernel, const sim::DeviceSpec& device,
                                         const CoRunRates& alone, double lone_ipc);

/// Measures, and then ProfileFrom.
Result<model::KernelProfile> ProfileKernel(const std::shared_ptr<const TracedKernel>& kernel,
                                           const sim::DeviceSpec& device, const CoRunOptions& options = {});

/// What slices may cost (section 4.1), and how often the host launches one.
struct SliceLimit {
  double overhead = 0.02;  ///< part of the kernel's time
  timing::Cycle launch_interval = 0;
  Effort effort{};  ///< a measurement that would simulate more is not made; then only sizes count that need none
};
/// Thread blocks of the smallest slice within the limit, a multiple of the device's SMs; a full load of the device if
/// none is. Sizes are found by halving and measured, but where the host launches twice as fast as slices end and
/// streams hold two loads of the device: then slices overlap and cost nothing (kernelet-fig6).
Result<std::uint64_t> MeasureSmallestSlice(const std::shared_ptr<const TracedKernel>& kernel,
                                           const sim::DeviceSpec& device, const model::KernelProfile& profile,
                                           const SliceLimit& limit);

}  // namespace gridloom::study
