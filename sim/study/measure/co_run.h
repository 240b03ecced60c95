// Rates of kernels that share the SMs of a device, measured on the timing model: the lower level of two-level
// simulations. The upper level (arrivals.h) then moves whole launches at these rates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/device/device_spec.h"
#include "sim/study/measure/traced_kernel.h"
#include "sim/timing/counters.h"
#include "sim/timing/cycle.h"

namespace gridloom::study {

/// One of the kernels side by side: each SM holds up to `ctas_per_sm` of its blocks, and a block that ends is followed
/// by another.
struct CoRunPart {
  std::shared_ptr<const TracedKernel> kernel;
  std::uint32_t ctas_per_sm = 0;
};

/// What a measurement may simulate, and what measurements did.
struct Effort {
  std::uint64_t most = 0;              ///< warp instructions, about; 0: any number
  std::uint64_t* simulated = nullptr;  ///< if not null, warp instructions are added
};

/// A wave of a kernel is as many blocks as the device holds of it.
struct CoRunOptions {
  std::uint32_t warmup_waves = 1;    ///< of every kernel, before its rate is measured
  std::uint32_t measured_waves = 2;  ///< of the slowest kernel; the others do whole waves meanwhile
  std::uint64_t layout = 0;          ///< of pages (timing::EngineOptions)
  /// With `most`, which is for one kernel alone: what has not done its waves by then is measured from a third of them
  /// on.
  Effort effort{};
};

struct CoRunRates {
  struct Part {
    double ctas_per_cycle = 0;  ///< of the device
    double ipc = 0;             ///< warp instructions per cycle of one SM
  };
  std::vector<Part> parts;    ///< in the order given
  timing::Cycle cycles = 0;   ///< that `counters` cover, in steady state
  timing::Counters counters;  ///< of all kernels together
};

/// Simulates until every kernel has done its waves. All kernels run all the time that is measured. Fails when an SM has
/// no room for the blocks asked for.
Result<CoRunRates> MeasureCoRun(const sim::DeviceSpec& device, std::span<const CoRunPart> parts,
                                const CoRunOptions& options = {});

/// Cycles for `ctas` blocks launched in slices of `slice` blocks (0: in one launch). The host launches a slice every
/// `launch_interval` cycles into one of kSliceStreams streams in turn, so that slices overlap as far as the device lets
/// them. Counted from when the first `skip` blocks have ended: with as many as the device holds a few times over, what
/// a long kernel pays for its slices and not how the device fills at the beginning.
struct SlicedRun {
  std::uint64_t ctas = 0, slice = 0;
  timing::Cycle launch_interval = 0;
  std::uint64_t skip = 0;
  std::uint64_t layout = 0;            ///< of pages (timing::EngineOptions)
  std::uint64_t* simulated = nullptr;  ///< as Effort::simulated
};
inline constexpr std::uint32_t kSliceStreams = 16;
Result<timing::Cycle> MeasureSliced(const sim::DeviceSpec& device, const std::shared_ptr<const TracedKernel>& kernel,
                                    const SlicedRun& run);

/// The run that says what slices of `ctas_per_sm` blocks (0: one launch) for each SM cost a kernel of which an SM holds
/// `full` blocks.
SlicedRun SlicingRun(const sim::DeviceSpec& device, std::uint64_t full, std::uint64_t ctas_per_sm,
                     timing::Cycle launch_interval, std::uint64_t* simulated = nullptr);

/// Cycles for all blocks of all kernels, launched at once into a stream each, under a policy that knows kernel i as
/// profile i + 1.
Result<timing::Cycle> MeasureTogether(const sim::DeviceSpec& device,
                                      std::span<const std::shared_ptr<const TracedKernel>> kernels,
                                      policy::Policy& policy, std::uint64_t layout = 0);

}  // namespace gridloom::study
