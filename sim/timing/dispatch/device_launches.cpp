#include "sim/timing/dispatch/device_launches.h"

#include <algorithm>

namespace gridloom::timing {

void DeviceLaunches::Expect(WorkId work, std::uint32_t address_space, const LaunchedBy& by) {
  const Key call{address_space, by.number};
  expected_[call] = {work, by.parent};
  by_parent_[by.parent].push_back(call);
}

std::optional<WorkId> DeviceLaunches::Call(std::uint32_t address_space, const CtaSignal& call) {
  const auto found = expected_.find({address_space, call.event.data[0]});
  if (found == expected_.end()) return std::nullopt;
  const WorkId work = found->second.first;
  expected_.erase(found);
  calls_[work] = call;
  return work;
}

CtaSignal DeviceLaunches::EndCall(WorkId work) { return calls_.extract(work).mapped(); }

std::vector<WorkId> DeviceLaunches::NeverCalled(WorkId parent) {
  std::vector<WorkId> works;
  const auto calls = by_parent_.extract(parent);
  if (calls.empty()) return works;
  for (const Key& call : calls.mapped()) {
    const auto found = expected_.find(call);
    if (found == expected_.end() || found->second.second != parent) continue;
    works.push_back(found->second.first);
    expected_.erase(found);
  }
  std::ranges::sort(works);
  return works;
}

void DeviceLaunches::SetPending(WorkId work, Cycle called, std::uint64_t bytes) {
  pending_[work] = {.called = called, .bytes = bytes};
  bytes_ += bytes;
  ++counters_.device_launches;
  counters_.device_launch_most_bytes = std::max(counters_.device_launch_most_bytes, bytes_);
  counters_.device_launch_most_pending = std::max<std::uint64_t>(counters_.device_launch_most_pending, pending_.size());
}

void DeviceLaunches::SetStarted(WorkId work, Cycle at) {
  const auto pending = pending_.extract(work);
  if (pending.empty()) return;
  const auto [called, bytes] = pending.mapped();
  const Cycle waited = at > called ? at - called : 0;
  counters_.device_launch_wait_cycles += waited;
  counters_.device_launch_byte_cycles += bytes * waited;
  bytes_ -= bytes;
}

}  // namespace gridloom::timing
