#include "sim/timing/dispatch/ready_kernels.h"

#include <algorithm>
#include <iterator>

#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {

bool ReadyKernels::HasRoomFor(std::uint32_t tenant) const {
  const auto count = count_of_.find(tenant);
  return count == count_of_.end() || count->second < parameters_.device.grid.max_resident;
}

void ReadyKernels::Add(WorkId id, Cycle now) {
  WorkState& work = works_.at(id);
  work.stage = WorkState::Stage::kRunning;
  work.kernel.resident.assign(placement_.sms().size(), 0);
  ++count_of_[work.kernel.owner.tenant];
  kernels_.push_back({.id = id,
                      .stream = work.order.stream,
                      .ctas = work.kernel.ctas,
                      .needs = work.kernel.needs,
                      .tenant = work.kernel.owner.tenant,
                      .weight = work.kernel.owner.weight,
                      .priority = work.kernel.owner.priority,
                      .profile = work.kernel.profile,
                      .code = work.kernel.identity,
                      .followed = works_.Followed(id),
                      .resident = work.kernel.resident});
  if (ports_.cta_events.empty()) return;
  const KernelReady ready{.launch = id,
                          .code = work.kernel.identity,
                          .address_space = work.use.address_space,
                          .stream = work.order.stream,
                          .source = *work.kernel.source,
                          .needs = work.kernel.needs,
                          .fits_per_sm = CtasPerSm(work.kernel.needs, parameters_.device)};
  for (CtaEvents* const listener : ports_.cta_events) listener->OnKernelReady(now, ready);
}

void ReadyKernels::Remove(Iterator kernel) {
  const auto count = count_of_.find(kernel->tenant);
  if (--count->second == 0) count_of_.erase(count);
  kernels_.erase(kernel);
}

ReadyKernels::Iterator ReadyKernels::Find(std::uint64_t id) {
  return std::ranges::find(kernels_, id, &policy::KernelView::id);
}

void ReadyKernels::MoveBehindOthers(Iterator kernel) { std::rotate(kernel, std::next(kernel), kernels_.end()); }

void ReadyKernels::SetFollowed(std::uint32_t stream) {
  for (policy::KernelView& kernel : kernels_) kernel.followed |= kernel.stream == stream;
}

std::optional<policy::Slice> ReadyKernels::NextSlice(Cycle now) {
  policy::Snapshot snapshot{.cycle = now, .kernels = kernels_, .sms = placement_.sms()};
  if (ports_.page_shares != nullptr) {
    const PageShares::Pages pages = ports_.page_shares->At(now);
    snapshot.pages = pages.available;
    snapshot.loading = pages.loading;
    for (policy::KernelView& kernel : kernels_) ShowPages(kernel);
  }
  if (limited_.empty()) return policy_.Next(snapshot);
  unlimited_.clear();
  std::ranges::copy_if(kernels_, std::back_inserter(unlimited_), [&](const policy::KernelView& kernel) {
    return std::ranges::find(limited_, kernel.id) == limited_.end();
  });
  snapshot.kernels = unlimited_;
  return policy_.Next(snapshot);
}

void ReadyKernels::ShowPages(policy::KernelView& kernel) const {
  const auto launch = static_cast<std::uint32_t>(kernel.id);
  kernel.pages = ports_.page_shares->OwnedBy(launch);
  const auto ready = ports_.page_shares->ReadyOf(launch);
  kernel.announced = ready.has_value();
  if (!ready) return;
  kernel.ready = ready->ready;
  kernel.begun = ready->begun;
}

}  // namespace gridloom::timing
