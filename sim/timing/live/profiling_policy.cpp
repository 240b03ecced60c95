#include "sim/timing/live/profiling_policy.h"

namespace gridloom::timing {

void ProfilingPolicy::Forget(WorkId launch) {
  expected_.erase(launch);
  profiles_.erase(launch);
}

std::uint64_t ProfilingPolicy::ProfileOf(const policy::KernelView& kernel) {
  const auto launch = static_cast<WorkId>(kernel.id);
  const auto expected = expected_.find(launch);
  if (expected == expected_.end()) {
    const auto known = profiles_.find(launch);
    return known != profiles_.end() ? known->second : kernel.profile;
  }
  const std::shared_ptr<Source> source = std::move(expected->second);
  expected_.erase(expected);
  return profiles_[launch] = profiler_(kernel.tenant, source->source_);
}

std::optional<policy::Slice> ProfilingPolicy::Next(const policy::Snapshot& snapshot) {
  kernels_.assign(snapshot.kernels.begin(), snapshot.kernels.end());
  for (policy::KernelView& kernel : kernels_) kernel.profile = ProfileOf(kernel);
  policy::Snapshot profiled = snapshot;
  profiled.kernels = kernels_;
  return policy_->Next(profiled);
}

}  // namespace gridloom::timing
