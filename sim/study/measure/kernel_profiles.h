// What the policy `kernelet` wants to know before a replay: a profile of each kernel, and the parameters
// (docs/kernelet.md).
#pragma once

#include <memory>
#include <vector>

#include "scheduler/model/kernelet_setup.h"
#include "sim/device/device_spec.h"
#include "sim/study/measure/co_run.h"
#include "sim/trace/trace_file.h"

namespace gridloom::study {

/// Measures a kernel with as many blocks as it has, three times over, alone on the timing model; and where the host's
/// launches could cost more than config.overhead_percent, in slices. `effort`: of each of these measurements; there are
/// at most two and one for each halving of a load.
Result<model::KernelProfile> MeasureProfile(const std::shared_ptr<const TracedKernel>& kernel,
                                            const sim::DeviceSpec& device, const model::KerneletConfig& config,
                                            const Effort& effort = {});

/// A profile of each kernel that has a complete launch, and each number of warps in its blocks, from the launch with
/// most thread blocks: MeasureProfile of as many of its blocks as fit on the device.
Result<model::ProfileFile> ProfileTraces(const sim::DeviceSpec& device,
                                         const std::vector<std::shared_ptr<trace::TraceFile>>& traces,
                                         const model::KerneletConfig& config);

/// The profile that describes a launch of the kernel with such blocks; 0: none does.
std::uint64_t ProfileOf(const model::ProfileTable& profiles, const trace::KernelCode& code,
                        const trace::LaunchShape& shape);

/// configs/policies/kernelet.yaml, beside the folder of devices; the built-in values where there is no such file.
Result<model::KerneletConfig> LoadKerneletConfig();

}  // namespace gridloom::study
