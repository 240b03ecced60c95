#include "sim/timing/dispatch/dispatcher.h"

#include <iterator>
#include <memory>
#include <utility>

#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {

Dispatcher::Dispatcher(const Parameters& parameters, policy::Policy& policy, const Ports& ports, Observer* observer,
                       std::uint64_t layout, bool keep_ended)
    : parameters_(parameters),
      ports_(ports),
      observer_(observer),
      layout_(layout),
      codes_(parameters.device),
      works_(parameters, ports, keep_ended),
      lot_(works_, ports, events_),
      reports_(works_, launches_),
      placement_(parameters, ports),
      ready_(parameters, policy, ports, works_, placement_),
      groups_(parameters, works_, ready_, codes_),
      starts_(works_, ports, observer, placement_, reports_),
      queues_(parameters.timing().launch.queues, works_, lot_, ready_),
      management_unit_(parameters, works_, lot_, ready_, events_),
      path_kernels_(works_, ports, lot_, reports_),
      copies_(parameters, works_, ports, lot_, events_) {}

Result<WorkId> Dispatcher::Add(KernelWork work) {
  const trace::KernelCode& code = work.source->code();
  const trace::LaunchShape& shape = work.source->shape();
  GL_TRY(decoded, codes_.DecodedOf(code));
  auto needs = NeedsOf(shape, parameters_.device);
  if (!needs.ok()) return Error{"kernel " + code.name + ": " + needs.error().message};
  WorkState state;
  state.result.name = code.name;
  state.result.ctas = state.kernel.ctas = shape.ctas;
  state.order = std::move(work.order);
  state.kernel.source = std::move(work.source);
  state.kernel.code = std::move(decoded);
  state.kernel.needs = *needs;
  state.kernel.memory =
      std::make_unique<const AddressSpace>(work.address_space, layout_, parameters_.device.memory.page_bytes);
  state.kernel.profile = work.profile;
  state.kernel.identity = IdentityOf(code, shape);
  state.kernel.owner = work.owner;
  state.use = std::move(work.use);
  state.use.address_space = work.address_space;
  state.launched_by = work.launched_by;
  state.own_queue = work.own_queue;
  return Append(std::move(state));
}

Result<WorkId> Dispatcher::Add(CopyWork work) {
  WorkState copy;
  copy.kind = kCopyKinds[static_cast<std::size_t>(work.direction)];
  copy.use = std::move(work.use);
  copy.result.bytes = work.bytes;
  copy.order = std::move(work.order);
  copy.predecessor_elsewhere = copies_.FollowsElsewhere(copy);
  return Append(std::move(copy));
}

Result<WorkId> Dispatcher::Add(MarkerWork work) {
  WorkState marker;
  marker.kind = WorkKind::kMarker;
  marker.order = std::move(work.order);
  return Append(std::move(marker));
}

Result<WorkId> Dispatcher::Append(WorkState work) {
  work.result.kind = work.kind;
  work.result.stream = work.order.stream;
  work.result.submitted = work.order.submitted;
  const WorkKind kind = work.kind;
  const std::uint32_t stream = work.order.stream;
  const Cycle submitted = work.order.submitted;
  GL_TRY(id, works_.Append(std::move(work)));
  PutInLine(id);
  events_.Check(submitted);
  if (kind == WorkKind::kKernel) ready_.SetFollowed(stream);
  for (WorkEvents* const listener : ports_.work_events) listener->OnWorkGiven(works_.at(id).View(id));
  return id;
}

/// The work waits where its kind does until it may begin.
void Dispatcher::PutInLine(WorkId id) {
  const WorkState& work = works_.at(id);
  if (work.launched_by.number != 0) launches_.Expect(id, work.use.address_space, work.launched_by);
  else if (work.own_queue) management_unit_.LaunchPastQueues(id);
  else if (work.kind == WorkKind::kMarker) markers_.emplace(work.order.submitted, id);
  else if (work.kind != WorkKind::kKernel) copies_.Add(id);
  else if (path_kernels_.Wants(id)) path_kernels_.Add(id);
  else queues_.Add(id);
}

Status Dispatcher::Run(Cycle end, const StartCta& start) {
  reports_.Clear();
  works_.Forget();
  while (events_.next() < end) {
    const Cycle now = events_.next();
    while (events_.next() == now) Handle(events_.Take());
    CheckMarkers(now);
    path_kernels_.Check(now);
    copies_.Check(now);
    queues_.Check(now);
    management_unit_.Check(now);
    GL_TRY_STATUS(Place(now, start));
  }
  events_.ForgetWindow();  // all of it happened before `end`
  return {};
}

void Dispatcher::Handle(const Event& event) {
  using enum DispatchEvents::Kind;
  switch (event.kind) {
    case kCtaSignal: OnSignal(events_.SignalOf(event)); break;
    case kLaunch: OnLaunch(event.work(), event.at); break;
    case kCtaEnd: OnCtaEnd(events_.EndOf(event)); break;
    case kEngineFree: copies_.FreeEngine(event.detail); break;
    case kCopyEnd:
      if (event.of_engine()) copies_.TellTransfer(event.work(), event.at);
      copies_.NoteEnd(event.work(), event.at);
      Finish(event.work(), event.at);
      break;
    case kKernelEnd: Finish(event.work(), event.at); break;
    case kCheck: break;
  }
}

/// A call of a warp's: a kernel that waited for it is on its way.
void Dispatcher::OnSignal(const CtaSignal& signal) {
  for (CtaEvents* const listener : ports_.cta_events) listener->OnCtaEvent(signal);
  if (signal.event.kind != trace::EventKind::kDeviceLaunch) return;
  const auto launch = launches_.Call(works_.at(signal.place.launch).use.address_space, signal);
  if (!launch) return;
  works_.at(*launch).result.submitted = signal.at;
  launches_.SetPending(*launch, signal.at, signal.event.data[3] + parameters_.timing().device_launch.record_bytes);
  events_.Add(signal.done, DispatchEvents::Kind::kLaunch, *launch);
}

/// The call is over.
void Dispatcher::OnLaunch(WorkId launch, Cycle now) {
  const CtaSignal call = launches_.EndCall(launch);
  const WorkView work = works_.at(launch).View(launch);
  const LaunchView view{.call = call, .work = work, .free = !works_.Blocker(launch)};
  for (LaunchPath* const path : ports_.launch_paths) {
    if (path->Takes(now, view)) return;
  }
  management_unit_.Launch(launch, now);
}

void Dispatcher::OnCtaEnd(const CtaEnd& end) {
  starts_.Release(end);
  WorkState& work = works_.at(end.launch);
  const KernelState::Group* const of = work.kernel.GroupOf(end.cta);
  const WorkId joined = of != nullptr ? of->work : kNoWork;
  WorkResult& result = joined != kNoWork ? works_.at(joined).result : work.result;
  result.warp_instructions += end.warp_instructions;
  result.thread_instructions += end.thread_instructions;
  ++ready_.Find(end.launch)->finished;
  // They may have more CTAs for this kernel.
  for (CtaEvents* const listener : ports_.cta_events) listener->OnCtaEnd(end);
  if (observer_ != nullptr) observer_->OnCtaEnd(end.at, end.place());
  if (KernelState::Group* const group = work.kernel.GroupOf(end.cta); joined != kNoWork && --group->left == 0) {
    group->source.reset();
    Finish(joined, end.at);
  }
  const auto kernel = ready_.Find(end.launch);
  if (kernel->finished == kernel->ctas) EndKernel(kernel, end.at);
}

/// All CTAs of the kernel have ended.
void Dispatcher::EndKernel(ReadyKernels::Iterator kernel, Cycle now) {
  const auto id = static_cast<WorkId>(kernel->id);
  ready_.Remove(kernel);
  Finish(id, now);
  for (CtaEvents* const listener : ports_.cta_events) listener->OnKernelEnd(now, id);
  if (observer_ != nullptr) observer_->OnKernelEnd(now, id);
}

void Dispatcher::EndKernel(const KernelEnd& end) {
  WorkResult& result = works_.at(end.kernel).result;
  result.started = end.started;
  result.warp_instructions = end.warp_instructions;
  result.thread_instructions = end.thread_instructions;
  events_.Add(end.at, DispatchEvents::Kind::kKernelEnd, end.kernel);
}

void Dispatcher::Cancel(WorkId id) {
  if (!works_.Has(id)) return;
  WorkState& work = works_.at(id);
  work.kernel.cancelled = true;
  if (work.kind != WorkKind::kKernel && work.stage == WorkState::Stage::kWaiting) work.result.bytes = 0;
}

/// What was parked behind a work goes back to where its kind waits.
void Dispatcher::Unpark(WorkId blocker, Cycle now) {
  for (const WorkId id : lot_.Leave(blocker)) {
    const WorkState& work = works_.at(id);
    if (work.queued) queues_.Open(id);
    else if (work.kind == WorkKind::kMarker) markers_.emplace(work.order.submitted, id);
    else if (work.kind != WorkKind::kKernel) copies_.Add(id);
    else if (work.launched_by.number == 0) path_kernels_.Add(id);
    else management_unit_.LaunchParked(id, now);
  }
}

/// The work has done all it had to. What comes behind it waits for what comes before it, too.
void Dispatcher::Finish(WorkId id, Cycle now) {
  if (!works_.MayEnd(id)) {
    done_early_.insert(id);
    return;
  }
  End(id, now);
  // In their order, since one that ends may let a later one end.
  for (auto next = done_early_.begin(); next != done_early_.end();) {
    if (!works_.MayEnd(*next)) {
      ++next;
      continue;
    }
    End(*next, now);
    next = done_early_.erase(next);
  }
}

void Dispatcher::End(WorkId id, Cycle now) {
  const bool kernel = works_.at(id).kind == WorkKind::kKernel;
  works_.Finish(id, now);
  if (kernel) {
    launches_.SetStarted(id, now);
    for (const WorkId launch : launches_.NeverCalled(id)) management_unit_.Launch(launch, now);
  }
  for (WorkEvents* const listener : ports_.work_events) listener->OnWorkEnd(now, id);
  Unpark(id, now);
  reports_.Ended(id);
  events_.Check(now + parameters_.timing().launch.dependent_cycles);
}

/// Lets markers end. One that ends may let others end.
void Dispatcher::CheckMarkers(Cycle now) {
  for (bool again = true; again;) {
    again = false;
    for (auto next = markers_.begin(); next != markers_.end() && next->first <= now;) {
      const WorkId id = next->second;
      if (!lot_.MayBegin(id, now, false)) {
        next = lot_.Park(id) ? markers_.erase(next) : std::next(next);
        continue;
      }
      works_.at(id).result.started = now;
      Finish(id, now);  // those that waited for it alone come behind it
      next = markers_.erase(next);
      again = true;
    }
  }
}

/// Starts what the policy wants, as far as there is room for it.
Status Dispatcher::Place(Cycle now, const StartCta& start) {
  using Placed = CtaStarts::Placed;
  ready_.BeginDecision();
  while (true) {
    const auto slice = ready_.NextSlice(now);
    if (!slice) break;
    const auto kernel = ready_.Find(slice->kernel);
    if (kernel == ready_.end()) return {};
    std::uint64_t placed = 0;
    Placed last = Placed::kYes;
    while (placed < slice->ctas && !kernel->all_started() && last == Placed::kYes) {
      GL_TRY(done, starts_.Place(now, *kernel, *slice, start));
      last = done;
      if (last == Placed::kYes) ++placed;
    }
    if (last == Placed::kNoMore) Cut(kernel, now);
    else if (last == Placed::kLimited) ready_.HoldBack(kernel->id);
    else if (placed == 0) return {};
  }
  if (const auto again = ready_.Again(); again && *again > now) events_.Check(*again);
  return {};
}

/// The kernel has no CTAs behind those that have started.
void Dispatcher::Cut(ReadyKernels::Iterator kernel, Cycle now) {
  for (const WorkId launch : groups_.Cut(*kernel, now)) Finish(launch, now);
  if (kernel->finished == kernel->ctas) EndKernel(kernel, now);
}

}  // namespace gridloom::timing
