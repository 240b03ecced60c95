#include "sim/timing/dispatch/dispatcher.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <ranges>

#include "rewriter/support/check.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {
namespace {

/// policy::KernelView::code. It follows from the program alone.
std::uint64_t IdentityOf(const trace::KernelCode& code, const trace::LaunchShape& shape) {
  const std::uint64_t name = XXH3_64bits(code.name.data(), code.name.size());
  const std::uint64_t block[] = {name, code.instructions.size(), shape.threads_per_cta, shape.registers_per_thread,
                                 shape.shared_bytes};
  return std::max<std::uint64_t>(XXH3_64bits(block, sizeof(block)), 1);
}

}  // namespace

Dispatcher::Dispatcher(const Parameters& parameters, policy::Policy& policy, const Ports& ports, Observer* observer,
                       std::uint64_t layout, bool keep_ended)
    : parameters_(parameters),
      policy_(policy),
      ports_(ports),
      observer_(observer),
      layout_(layout),
      works_(parameters, ports, keep_ended),
      engines_(parameters),
      placement_(parameters, ports),
      copies_(engines_.count()) {}

Result<std::shared_ptr<const CodeOfWorks>> Dispatcher::DecodedOf(const trace::KernelCode& code) {
  std::weak_ptr<const CodeOfWorks>& known = decoded_[&code];
  auto decoded = known.lock();
  if (decoded != nullptr) return decoded;
  GL_TRY(made, Decode(code, parameters_.timing()));
  decoded = std::make_shared<const CodeOfWorks>(CodeOfWorks{std::make_shared<const DecodedCode>(std::move(made))});
  known = decoded;
  if (decoded_.size() > most_decoded_) {
    std::erase_if(decoded_, [](const auto& entry) { return entry.second.expired(); });
    most_decoded_ = std::max<std::size_t>(64, 2 * decoded_.size());
  }
  return decoded;
}

Result<WorkId> Dispatcher::Add(KernelWork work) {
  const trace::KernelCode& code = work.source->code();
  const trace::LaunchShape& shape = work.source->shape();
  GL_TRY(decoded, DecodedOf(code));
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
  const auto before = works_.LastOf(copy.order.stream);
  copy.predecessor_elsewhere = before && Elsewhere(copy, works_.at(*before));
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
  const LaunchedBy& by = works_.at(id).launched_by;
  if (by.number != 0) launches_.Expect(id, works_.at(id).use.address_space, by);
  else if (works_.at(id).own_queue) LaunchPastQueues(id);
  else if (kind == WorkKind::kKernel && ports_.kernel_path != nullptr &&
           ports_.kernel_path->Wants(works_.at(id).View(id)))
    taken_.emplace(submitted, id);
  else if (kind == WorkKind::kKernel) PutIntoQueue(id);
  else AwaitStart(id);
  events_.insert({submitted, EventKind::kCheck, 0});
  if (kind == WorkKind::kKernel) {
    for (policy::KernelView& kernel : kernels_) kernel.followed |= kernel.stream == stream;
  }
  for (WorkEvents* const listener : ports_.work_events) listener->OnWorkGiven(works_.at(id).View(id));
  return id;
}

void Dispatcher::Signalled(std::vector<CtaSignal>& signals) {
  for (const CtaSignal& signal : signals) {
    // Within a cycle by SM, and those of one SM in the order in which they were issued.
    events_.insert({signal.at, EventKind::kCtaSignal, std::uint64_t{signal.place.sm} << 48 | signals_.size()});
    signals_.push_back(signal);
  }
  signals.clear();
}

void Dispatcher::Ended(std::vector<CtaEnd>& ended) {
  for (const CtaEnd& end : ended) {
    // Within a cycle by SM and slot.
    events_.insert(
        {end.at, EventKind::kCtaEnd, std::uint64_t{end.sm} << 48 | std::uint64_t{end.slot} << 32 | ended_.size()});
    ended_.push_back(end);
  }
  ended.clear();
}

Status Dispatcher::Run(Cycle end, const StartCta& start) {
  begun_.clear();
  finished_.clear();
  works_.Forget();
  while (next() < end) {
    const Cycle now = next();
    while (next() == now) {
      const Event event = *events_.begin();
      events_.erase(events_.begin());
      Handle(event);
    }
    Check(now);
    GL_TRY_STATUS(Place(now, start));
  }
  // All of them happened before `end`.
  signals_.clear();
  ended_.clear();
  return {};
}

void Dispatcher::Handle(const Event& event) {
  const auto [now, kind, detail] = event;
  switch (kind) {
    case EventKind::kCtaSignal: OnSignal(signals_[detail & 0xffffffffffffu]); break;
    case EventKind::kLaunch: OnLaunch(static_cast<WorkId>(detail), now); break;
    case EventKind::kCtaEnd: OnCtaEnd(ended_[detail & 0xffffffffu]); break;
    case EventKind::kEngineFree: engines_.Free(detail); break;
    case EventKind::kCopyEnd:
      if (detail >> kEngineAt != 0) TellTransfer(static_cast<WorkId>(detail), now);
      Finish(static_cast<WorkId>(detail), now);
      break;
    case EventKind::kKernelEnd: Finish(static_cast<WorkId>(detail), now); break;
    case EventKind::kCheck: break;
  }
}

void Dispatcher::OnCtaEnd(const CtaEnd& end) {
  WorkState& work = works_.at(end.launch);
  --work.kernel.resident[end.sm];
  placement_.Release(end.sm, end.slot, work.kernel.needs);
  const KernelState::Group* const of = work.kernel.GroupOf(end.cta);
  const WorkId joined = of != nullptr ? of->work : kNoWork;
  WorkResult& result = joined != kNoWork ? works_.at(joined).result : work.result;
  result.warp_instructions += end.warp_instructions;
  result.thread_instructions += end.thread_instructions;
  ++std::ranges::find(kernels_, std::uint64_t{end.launch}, &policy::KernelView::id)->finished;
  // They may have more CTAs for this kernel.
  for (CtaEvents* const listener : ports_.cta_events) listener->OnCtaEnd(end);
  if (observer_ != nullptr) observer_->OnCtaEnd(end.at, end.place());
  if (KernelState::Group* const group = work.kernel.GroupOf(end.cta); joined != kNoWork && --group->left == 0) {
    group->source.reset();
    Finish(joined, end.at);
  }
  const auto kernel = std::ranges::find(kernels_, std::uint64_t{end.launch}, &policy::KernelView::id);
  if (kernel->finished == kernel->ctas) EndKernel(kernel, end.at);
}

void Dispatcher::EndKernel(KernelIterator kernel, Cycle now) {
  const auto id = static_cast<WorkId>(kernel->id);
  const auto ready = ready_of_.find(kernel->tenant);
  if (--ready->second == 0) ready_of_.erase(ready);
  kernels_.erase(kernel);
  Finish(id, now);
  for (CtaEvents* const listener : ports_.cta_events) listener->OnKernelEnd(now, id);
  if (observer_ != nullptr) observer_->OnKernelEnd(now, id);
}

/// The launch ended before it had run all of its grid: what has not started is not there.
void Dispatcher::Cut(KernelIterator kernel, Cycle now) {
  WorkState& work = works_.at(static_cast<WorkId>(kernel->id));
  const std::uint64_t started = kernel->started;
  kernel->ctas = work.kernel.ctas = started;
  work.result.ctas = std::min(work.result.ctas, started);
  if (work.result.started == kNever) work.result.started = now;
  std::vector<WorkId> over;  // launches that joined it and have nothing left
  for (KernelState::Group& group : std::views::reverse(work.kernel.groups)) {
    if (group.work == kNoWork || group.left == 0) continue;
    const std::uint64_t ctas = works_.at(group.work).result.ctas;
    const std::uint64_t there = std::min(started > group.first_cta ? started - group.first_cta : 0, ctas);
    group.left -= ctas - there;
    works_.at(group.work).result.ctas = there;
    if (group.left == 0) over.push_back(group.work);
  }
  for (const WorkId launch : over) Finish(launch, now);
  if (kernel->finished == kernel->ctas) EndKernel(kernel, now);
}

void Dispatcher::Cancel(WorkId id) {
  if (!works_.Has(id)) return;
  WorkState& work = works_.at(id);
  work.kernel.cancelled = true;
  if (work.kind != WorkKind::kKernel && work.stage == WorkState::Stage::kWaiting) work.result.bytes = 0;
}

/// A copy or a marker.
void Dispatcher::AwaitStart(WorkId id) {
  const WorkState& work = works_.at(id);
  if (work.kind == WorkKind::kMarker) markers_.emplace(work.order.submitted, id);
  else copies_[engines_.EngineOf(work.kind)].emplace(work.order.submitted, id);
}

void Dispatcher::PutIntoQueue(WorkId id) {
  WorkState& work = works_.at(id);
  work.queued = true;
  const std::uint32_t queue = QueueOf(work);
  if (queues_[queue].empty()) open_queues_.insert(queue);
  queues_[queue].push_back(id);
}

/// Puts a work aside until what it waits for has ended. False when nothing is known to hold it back so long.
bool Dispatcher::Park(WorkId id) {
  if (!ports_.start_rules.empty()) return false;
  const auto blocker = works_.Blocker(id);
  if (!blocker) return false;
  parked_[*blocker].push_back(id);
  return true;
}

void Dispatcher::Unpark(WorkId blocker, Cycle now) {
  auto parked = parked_.extract(blocker);
  if (parked.empty()) return;
  for (const WorkId id : parked.mapped()) {
    const WorkState& work = works_.at(id);
    if (work.queued) open_queues_.insert(QueueOf(work));
    else if (work.kind == WorkKind::kKernel && work.launched_by.number == 0) taken_.emplace(work.order.submitted, id);
    else if (work.kind == WorkKind::kKernel)
      Launch(id, std::max(now, work.order.submitted - parameters_.timing().device_launch.dispatch_cycles));
    else AwaitStart(id);
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
    for (const WorkId launch : launches_.NeverCalled(id)) Launch(launch, now);
  }
  for (WorkEvents* const listener : ports_.work_events) listener->OnWorkEnd(now, id);
  Unpark(id, now);
  finished_.push_back(id);
  events_.insert({now + parameters_.timing().launch.dependent_cycles, EventKind::kCheck, 0});
}

/// Lets markers end, copies start, and kernels at the heads of the hardware queues become ready.
void Dispatcher::Check(Cycle now) {
  CheckMarkers(now);
  if (!taken_.empty()) CheckTaken(now);
  CheckCopies(now);
  CheckKernels(now);
}

Cycle Dispatcher::BeginOf(WorkId id, Cycle now, bool launched) {
  const Cycle submitted = works_.at(id).order.submitted;
  if (submitted > now) return submitted;  // Append has seen to it that it is looked at then
  const Cycle start = launched ? works_.MayLaunch(id, now) : works_.MayStart(id, now);
  if (start > now && start < kNever) events_.insert({start, EventKind::kCheck, 0});
  return start;
}

void Dispatcher::CheckKernels(Cycle now) {
  while (!waking_queues_.empty() && waking_queues_.begin()->first <= now) {
    open_queues_.insert(waking_queues_.begin()->second);
    waking_queues_.erase(waking_queues_.begin());
  }
  // Each queue once, in the order of their numbers.
  for (auto queue = TakeQueue(0); queue; queue = TakeQueue(*queue + 1)) CheckQueue(*queue, now);
  CheckLaunches(now);
}

bool Dispatcher::HasRoomForKernelOf(std::uint32_t tenant) const {
  const auto ready = ready_of_.find(tenant);
  return ready == ready_of_.end() || ready->second < parameters_.device.grid.max_resident;
}

/// The next queue to look at, from a number on: it is taken from those that are to be.
std::optional<std::uint32_t> Dispatcher::TakeQueue(std::uint32_t from) {
  std::optional<std::uint32_t> first;
  std::set<std::uint32_t>* with = nullptr;
  const auto look = [&](std::set<std::uint32_t>& queues) {
    const auto at = queues.lower_bound(from);
    if (at == queues.end() || (first && *first <= *at)) return;
    first = *at;
    with = &queues;
  };
  look(open_queues_);
  for (auto& [tenant, queues] : full_queues_) {
    if (HasRoomForKernelOf(tenant)) look(queues);
  }
  if (first) with->erase(*first);
  return first;
}

/// Makes the queue's first kernels ready that may begin. The next one wakes the queue when its time is known, what
/// holds it back has ended, or its tenant has room.
void Dispatcher::CheckQueue(std::uint32_t number, Cycle now) {
  const auto found = queues_.find(number);
  if (found == queues_.end()) return;
  std::deque<WorkId>& queue = found->second;
  while (!queue.empty()) {
    const WorkId id = queue.front();
    const std::uint32_t tenant = works_.at(id).kernel.owner.tenant;
    if (!HasRoomForKernelOf(tenant)) {
      full_queues_[tenant].insert(number);
      return;
    }
    if (const Cycle begin = BeginOf(id, now, true); begin > now) {
      if (Park(id)) return;
      // With rules a kernel may become ready although nothing has ended.
      if (ports_.start_rules.empty()) waking_queues_.emplace(begin, number);
      else open_queues_.insert(number);
      return;
    }
    queue.pop_front();
    MakeReady(id, now);
  }
  queues_.erase(found);
}

void Dispatcher::MakeReady(WorkId id, Cycle now) {
  WorkState& work = works_.at(id);
  work.stage = WorkState::Stage::kRunning;
  work.kernel.resident.assign(placement_.sms().size(), 0);
  ++ready_of_[work.kernel.owner.tenant];
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

void Dispatcher::ShowPages(policy::KernelView& kernel) const {
  const auto launch = static_cast<std::uint32_t>(kernel.id);
  kernel.pages = ports_.page_shares->OwnedBy(launch);
  const auto ready = ports_.page_shares->ReadyOf(launch);
  kernel.announced = ready.has_value();
  if (!ready) return;
  kernel.ready = ready->ready;
  kernel.begun = ready->begun;
}

/// What the policy wants next, of the kernels that limits do not hold back everywhere.
std::optional<policy::Slice> Dispatcher::NextSlice(Cycle now) {
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

Status Dispatcher::Place(Cycle now, const StartCta& start) {
  limited_.clear();
  while (true) {
    const auto slice = NextSlice(now);
    if (!slice) break;
    const auto kernel = std::ranges::find(kernels_, slice->kernel, &policy::KernelView::id);
    if (kernel == kernels_.end()) return {};
    std::uint64_t placed = 0;
    Placed last = Placed::kYes;
    while (placed < slice->ctas && !kernel->all_started() && last == Placed::kYes) {
      GL_TRY(done, PlaceOne(now, *kernel, *slice, start));
      last = done;
      if (last == Placed::kYes) ++placed;
    }
    if (last == Placed::kNoMore) Cut(kernel, now);
    else if (last == Placed::kLimited) limited_.push_back(kernel->id);
    else if (placed == 0) return {};
  }
  if (const auto again = policy_.Again(); again && *again > now) events_.insert({*again, EventKind::kCheck, 0});
  return {};
}

Result<trace::LoadedCta> Dispatcher::Load(KernelState& kernel, std::uint64_t cta) {
  if (kernel.cancelled) return trace::LoadedCta{};
  const KernelState::Group* const group = kernel.GroupOf(cta);
  trace::CtaSource* const source = group != nullptr ? group->source.get() : kernel.source.get();
  const std::uint64_t first = group != nullptr ? group->first_cta : 0;
  GL_TRY(loaded, source->Load(cta - first));
  if (loaded.trace == nullptr) return loaded;
  GL_TRY_STATUS(kernel.checks.Check(source->code(), source->shape(), loaded));
  return loaded;
}

/// A CTA of the kernel starts.
void Dispatcher::NoteStart(WorkId id, Cycle at) {
  WorkResult& result = works_.at(id).result;
  if (result.started == kNever) {
    begun_.push_back(id);
    launches_.SetStarted(id, at);
  }
  result.started = std::min(result.started, at);
}

Result<Dispatcher::Placed> Dispatcher::PlaceOne(Cycle now, policy::KernelView& kernel, const policy::Slice& slice,
                                                const StartCta& start) {
  bool limited = false;
  const auto chosen = placement_.Choose(now, kernel, slice, limited);
  if (!chosen) return limited ? Placed::kLimited : Placed::kNoRoom;
  const auto launch = static_cast<std::uint32_t>(kernel.id);
  WorkState& work = works_.at(launch);
  GL_TRY(cta, Load(work.kernel, chosen->cta));
  if (cta.trace == nullptr) return Placed::kNoMore;
  const CtaPlacement::Taken taken = placement_.Take(now, chosen->sm, kernel.needs);
  const CtaPlace place{.launch = launch, .sm = chosen->sm, .slot = taken.slot, .cta = chosen->cta};
  NoteStart(launch, taken.at);
  const KernelState::Group* const group = work.kernel.GroupOf(chosen->cta);
  if (group != nullptr && group->work != kNoWork) NoteStart(group->work, taken.at);
  ++work.kernel.resident[chosen->sm];
  for (CtaEvents* const listener : ports_.cta_events) listener->OnCtaStart(taken.at, place);
  if (observer_ != nullptr) observer_->OnCtaStart(taken.at, place);
  start(chosen->sm, {.at = taken.at,
                     .cta = chosen->cta,
                     .launch = launch,
                     .slot = taken.slot,
                     .trace = std::move(cta.trace),
                     .shifts = std::move(cta.shifts),
                     .code = work.kernel.code->decoded.get(),
                     .memory = work.kernel.memory.get()});
  ++kernel.started;
  return Placed::kYes;
}

}  // namespace gridloom::timing
