// What a CTA takes of an SM, and how many fit.
#pragma once

#include "rewriter/support/result.h"
#include "scheduler/policy/policy.h"
#include "sim/device/device_spec.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

/// An SM without CTAs.
policy::SmView EmptySm(const sim::DeviceSpec& device);

/// Rounded up as the device allocates (cuda_occupancy.h of the CUDA Toolkit). Fails if an SM can never hold such a CTA.
Result<policy::CtaNeeds> NeedsOf(const trace::LaunchShape& shape, const sim::DeviceSpec& device);

/// CTAs of that kind that an SM holds at a time.
std::uint32_t CtasPerSm(const policy::CtaNeeds& needs, const sim::DeviceSpec& device);

}  // namespace gridloom::timing
