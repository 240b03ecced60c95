#include "sim/timing/dispatch/management_unit.h"

#include <algorithm>

namespace gridloom::timing {

void ManagementUnit::Launch(WorkId launch, Cycle at) {
  const sim::TimingSpec::DeviceLaunch& costs = parameters_.timing().device_launch;
  WorkState& work = works_.at(launch);
  work.order.submitted = at + costs.dispatch_cycles;
  if (lot_.ParkBehindBlocker(launch)) return;
  if (costs.dispatch_interval > 0) {
    const Cycle begin = std::max(at, next_dispatch_);
    next_dispatch_ = begin + costs.dispatch_interval;
    work.order.submitted = begin + costs.dispatch_cycles;
  }
  launched_[work.kernel.owner.tenant].emplace(work.order.submitted, launch);
  events_.Check(work.order.submitted);
}

void ManagementUnit::LaunchParked(WorkId launch, Cycle now) {
  const Cycle came = works_.at(launch).order.submitted - parameters_.timing().device_launch.dispatch_cycles;
  Launch(launch, std::max(now, came));
}

void ManagementUnit::LaunchPastQueues(WorkId id) {
  const WorkState& work = works_.at(id);
  const Cycle at = work.order.submitted + parameters_.timing().launch.kernel_cycles;
  launched_[work.kernel.owner.tenant].emplace(at, id);
  events_.Check(at);
}

void ManagementUnit::Check(Cycle now) {
  while (true) {
    WorksByTime* first = nullptr;
    for (auto& [tenant, launches] : launched_) {
      if (launches.empty() || launches.begin()->first > now || !ready_.HasRoomFor(tenant)) continue;
      if (first == nullptr || *launches.begin() < *first->begin()) first = &launches;
    }
    if (first == nullptr) return;
    ready_.Add(first->extract(first->begin()).value().second, now);
  }
}

}  // namespace gridloom::timing
