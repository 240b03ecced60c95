// Launches by kernels: who waits for which call, what goes to the kernel management unit, and thread blocks that become
// part of kernels.
#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "sim/timing/dispatch/dispatcher.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {

namespace {

/// CTAs are checked against the code that they come with, and run by the kernel's: programs may give two kernels one
/// name.
bool IsSame(const DecodedCode& a, const DecodedCode& b) {
  constexpr auto alike = [](const trace::BasicBlock& x, const trace::BasicBlock& y) {
    return x.first == y.first && x.count == y.count;
  };
  return &a == &b ||
         (a.register_count == b.register_count && a.operands == b.operands && a.access_number == b.access_number &&
          a.ops == b.ops && std::ranges::equal(a.blocks, b.blocks, alike));
}

/// Copies to the device that come before a kernel and have not ended, if nothing else holds it back: engines do copies
/// in their order, so software can tell the device of a kernel by a copy behind them.
std::optional<std::vector<WorkId>> InputsOf(const StreamOrder& works, WorkId id) {
  std::vector<WorkId> inputs;
  for (auto before = works.Blocker(id); before; before = works.Blocker(*before)) {
    const WorkState& work = works.at(*before);
    if (work.kind != WorkKind::kCopyToDevice || !works.at(id).order.after.empty()) return std::nullopt;
    inputs.push_back(*before);
  }
  return inputs;
}

}  // namespace

/// Whether a group of CTAs may become part of a kernel. `code`: of the group.
Status Dispatcher::CheckLike(WorkId id, const trace::CtaSource& group, const DecodedCode& code) const {
  if (works_.done(id)) return Error{"a group of CTAs was given to kernel " + std::to_string(id) + ", which has ended"};
  const WorkState& work = works_.at(id);
  const std::string& name = group.code().name;
  if (work.kind != WorkKind::kKernel || name != work.result.name || !IsSame(code, *work.kernel.code->decoded)) {
    return Error{"a group of CTAs of " + name + " was given to " + work.result.name + ", which has other code"};
  }
  GL_TRY(needs, NeedsOf(group.shape(), parameters_.device));
  if (needs.warps != work.kernel.needs.warps || needs.registers != work.kernel.needs.registers ||
      needs.shared_bytes != work.kernel.needs.shared_bytes) {
    return Error{"a group of CTAs was given to " + work.result.name + " that need something else than its own"};
  }
  return {};
}

void Dispatcher::Append(WorkId id, KernelState::Group group) {
  WorkState& work = works_.at(id);
  const std::uint64_t ctas = group.source->shape().ctas;
  if (group.work == kNoWork) work.result.ctas += ctas;
  group.first_cta = work.kernel.ctas;
  work.kernel.groups.push_back(std::move(group));
  work.kernel.ctas += ctas;
  const auto kernel = std::ranges::find(kernels_, std::uint64_t{id}, &policy::KernelView::id);
  if (kernel != kernels_.end()) kernel->ctas = work.kernel.ctas;
}

Status Dispatcher::Extend(WorkId id, std::shared_ptr<trace::CtaSource> group) {
  GL_TRY(code, DecodedOf(group->code()));
  GL_TRY_STATUS(CheckLike(id, *group, *code->decoded));
  Append(id, {.source = std::move(group)});
  return {};
}

Status Dispatcher::Join(WorkId id, WorkId launch) {
  WorkState& joins = works_.at(launch);
  if (joins.kernel.source == nullptr || joins.stage != WorkState::Stage::kWaiting)
    return Error{"a launch joins a kernel that has begun"};
  GL_TRY_STATUS(CheckLike(id, *joins.kernel.source, *joins.kernel.code->decoded));
  joins.stage = WorkState::Stage::kRunning;
  const auto kernel = std::ranges::find(kernels_, std::uint64_t{id}, &policy::KernelView::id);
  const bool unmarked = kernel != kernels_.end() && kernel->all_started();
  Append(id, {.source = joins.kernel.source, .work = launch, .left = joins.result.ctas});
  if (unmarked) std::rotate(kernel, std::next(kernel), kernels_.end());  // it is scheduled anew, behind all others
  return {};
}

void Dispatcher::Launch(WorkId launch, Cycle at) {
  const sim::TimingSpec::DeviceLaunch& costs = parameters_.timing().device_launch;
  WorkState& work = works_.at(launch);
  work.order.submitted = at + costs.dispatch_cycles;
  if (const auto blocker = works_.Blocker(launch)) {
    parked_[*blocker].push_back(launch);
    return;
  }
  if (costs.dispatch_interval > 0) {
    const Cycle begin = std::max(at, next_dispatch_);
    next_dispatch_ = begin + costs.dispatch_interval;
    work.order.submitted = begin + costs.dispatch_cycles;
  }
  launched_[work.kernel.owner.tenant].emplace(work.order.submitted, launch);
  events_.insert({work.order.submitted, EventKind::kCheck, 0});
}

/// A call of a warp's: a kernel that waited for it is on its way.
void Dispatcher::OnSignal(const CtaSignal& signal) {
  for (CtaEvents* const listener : ports_.cta_events) listener->OnCtaEvent(signal);
  if (signal.event.kind != trace::EventKind::kDeviceLaunch) return;
  const auto launch = launches_.Call(works_.at(signal.place.launch).use.address_space, signal.event.data[0]);
  if (!launch) return;
  works_.at(*launch).result.submitted = signal.at;
  launches_.SetPending(*launch, signal.at, signal.event.data[3] + parameters_.timing().device_launch.record_bytes);
  calls_[*launch] = signal;
  events_.insert({signal.done, EventKind::kLaunch, *launch});
}

/// The call is over.
void Dispatcher::OnLaunch(WorkId launch, Cycle now) {
  const auto call = calls_.extract(launch);
  const WorkView work = works_.at(launch).View(launch);
  const LaunchView view{.call = call.mapped(), .work = work, .free = !works_.Blocker(launch)};
  for (LaunchPath* const path : ports_.launch_paths) {
    if (path->Takes(now, view)) return;
  }
  Launch(launch, now);
}

/// A kernel that waits for no other.
void Dispatcher::LaunchPastQueues(WorkId id) {
  const Cycle at = works_.at(id).order.submitted + parameters_.timing().launch.kernel_cycles;
  launched_[works_.at(id).kernel.owner.tenant].emplace(at, id);
  events_.insert({at, EventKind::kCheck, 0});
}

/// Kernels of the host's that software takes up.
void Dispatcher::CheckTaken(Cycle now) {
  for (auto next = taken_.begin(); next != taken_.end() && next->first <= now;) {
    const WorkId id = next->second;
    const bool begins = MayBegin(id, now, false);
    const bool given = ports_.start_rules.empty();
    const auto inputs = begins || !given ? std::nullopt : InputsOf(works_, id);
    if (!begins && !inputs) {
      next = Park(id) ? taken_.erase(next) : std::next(next);
      continue;
    }
    next = taken_.erase(next);
    WorkState& work = works_.at(id);
    work.stage = WorkState::Stage::kRunning;
    NoteStart(id, now);
    WorkView view = work.View(id);
    view.after = inputs ? std::span<const WorkId>(*inputs) : std::span<const WorkId>();
    ports_.kernel_path->Take(now, view);
  }
}

void Dispatcher::EndKernel(const KernelEnd& end) {
  WorkResult& result = works_.at(end.kernel).result;
  result.started = end.started;
  result.warp_instructions = end.warp_instructions;
  result.thread_instructions = end.thread_instructions;
  events_.insert({end.at, EventKind::kKernelEnd, end.kernel});
}

/// What kernels launched goes on in the order in which it came to the kernel management unit, as far as its tenant has
/// room.
void Dispatcher::CheckLaunches(Cycle now) {
  while (true) {
    ByTime* first = nullptr;
    for (auto& [tenant, launches] : launched_) {
      if (launches.empty() || launches.begin()->first > now || !HasRoomForKernelOf(tenant)) continue;
      if (first == nullptr || *launches.begin() < *first->begin()) first = &launches;
    }
    if (first == nullptr) return;
    const WorkId id = first->extract(first->begin()).value().second;
    MakeReady(id, now);
  }
}

}  // namespace gridloom::timing
