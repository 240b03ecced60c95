#include "sim/timing/dispatcher.h"

#include <algorithm>

#include "rewriter/support/check.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {

Dispatcher::Dispatcher(const Parameters& parameters, policy::Policy& policy, const Hooks& hooks, std::uint64_t layout, bool keep_ended)
    : parameters_(parameters),
      policy_(policy),
      hooks_(hooks),
      layout_(layout),
      keep_ended_(keep_ended),
      queues_(parameters.timing().launch.queues),
      // One engine serves both directions; with more, one serves each.
      engine_busy_(std::clamp(parameters.device.copy_engines, 1u, 2u) + 1),
      sms_(parameters.device.sm.count, EmptySm(parameters.device)),
      free_slots_(parameters.device.sm.count) {
  for (auto& slots : free_slots_) {
    for (std::uint32_t slot = parameters.device.sm.max_blocks; slot-- > 0;) slots.push_back(static_cast<std::uint16_t>(slot));
  }
}

Result<WorkId> Dispatcher::Add(KernelWork work) {
  const trace::KernelCode& code = work.source->code();
  const trace::LaunchShape& shape = work.source->shape();
  GL_TRY(decoded, Decode(code, parameters_.timing()));
  auto needs = NeedsOf(shape, parameters_.device);
  if (!needs.ok()) return Error{"kernel " + code.name + ": " + needs.error().message};
  WorkResult result;
  result.name = code.name;
  result.stream = work.order.stream;
  result.submitted = work.order.submitted;
  result.ctas = shape.ctas;
  Work kernel;
  kernel.order = std::move(work.order);
  kernel.source = std::move(work.source);
  kernel.code = std::make_unique<const DecodedCode>(std::move(decoded));
  kernel.needs = *needs;
  kernel.memory = std::make_unique<const AddressSpace>(work.address_space, layout_, parameters_.device.memory.page_bytes);
  kernel.profile = work.profile;
  kernel.owner = work.owner;
  kernel.result = std::move(result);
  return Append(std::move(kernel));
}

Result<WorkId> Dispatcher::Add(CopyWork work) {
  constexpr WorkKind kKinds[] = {WorkKind::kCopyToDevice, WorkKind::kCopyToHost, WorkKind::kCopyOnDevice, WorkKind::kFill};
  WorkResult result;
  result.kind = kKinds[static_cast<std::size_t>(work.direction)];
  result.stream = work.order.stream;
  result.submitted = work.order.submitted;
  result.bytes = work.bytes;
  Work copy;
  copy.kind = result.kind;
  copy.order = std::move(work.order);
  copy.result = std::move(result);
  return Append(std::move(copy));
}

Result<WorkId> Dispatcher::Add(MarkerWork work) {
  WorkResult result;
  result.kind = WorkKind::kMarker;
  result.stream = work.order.stream;
  result.submitted = work.order.submitted;
  Work marker;
  marker.kind = WorkKind::kMarker;
  marker.order = std::move(work.order);
  marker.result = std::move(result);
  return Append(std::move(marker));
}

Result<WorkId> Dispatcher::Append(Work work) {
  const auto id = static_cast<WorkId>(given_);
  for (const WorkId other : work.order.after) {
    if (other >= id) return Error{"a work waits for work " + std::to_string(other) + ", which has not been given before it"};
    if (!works_.contains(other)) return Error{"a work waits for work " + std::to_string(other) + ", which has ended and was not kept"};
  }
  for (const WorkId other : work.order.after) ++works_.at(other).waiters;
  std::deque<WorkId>& stream = streams_[work.order.stream];
  work.has_predecessor = !stream.empty();
  stream.push_back(id);
  if (work.kind == WorkKind::kKernel) queues_[work.order.stream % queues_.size()].push_back(id);
  else (work.kind == WorkKind::kMarker ? markers_ : copies_).push_back(id);
  events_.insert({work.order.submitted, EventKind::kCheck, 0});
  works_.emplace(id, std::move(work));
  ++given_;
  return id;
}

std::vector<WorkResult> Dispatcher::results() const {
  std::vector<WorkResult> results;
  results.reserve(works_.size());
  for (WorkId id = 0; id < given_; ++id) {
    if (const auto work = works_.find(id); work != works_.end()) results.push_back(work->second.result);
  }
  return results;
}

bool Dispatcher::done(WorkId id) const {
  const auto work = works_.find(id);
  return work == works_.end() ? id < given_ : work->second.result.done();
}

void Dispatcher::Ended(std::vector<CtaEnd>& ended) {
  for (const CtaEnd& end : ended) {
    // Within a cycle by SM and slot.
    events_.insert({end.at, EventKind::kCtaEnd, std::uint64_t{end.sm} << 48 | std::uint64_t{end.slot} << 32 | ended_.size()});
    ended_.push_back(end);
  }
  ended.clear();
}

Status Dispatcher::Run(Cycle end, const StartCta& start) {
  begun_.clear();
  finished_.clear();
  Forget();
  if (held_back_ && (events_.empty() || next() >= end)) events_.insert({end - 1, EventKind::kCheck, 0});
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
  ended_.clear();  // all of them ended before `end`
  return {};
}

void Dispatcher::Handle(const Event& event) {
  const auto [now, kind, detail] = event;
  switch (kind) {
    case EventKind::kCtaEnd: OnCtaEnd(ended_[detail & 0xffffffffu]); break;
    case EventKind::kCopyEnd:
      engine_busy_[detail >> 32] = false;
      Finish(static_cast<WorkId>(detail), now);
      break;
    case EventKind::kCheck: break;
  }
}

void Dispatcher::OnCtaEnd(const CtaEnd& end) {
  if (hooks_.cta != nullptr) hooks_.cta->OnEnd(end.at, end.launch, end.cta, end.sm);
  if (hooks_.observer != nullptr) hooks_.observer->OnCtaEnd(end.at, {.launch = end.launch, .sm = end.sm, .slot = end.slot, .cta = end.cta});
  Work& work = works_.at(end.launch);
  const policy::CtaNeeds& needs = work.needs;
  --work.resident[end.sm];
  policy::SmView& sm = sms_[end.sm];
  ++sm.free_ctas;
  sm.free_warps += needs.warps;
  sm.free_registers += needs.registers;
  sm.free_shared_bytes += needs.shared_bytes;
  free_slots_[end.sm].push_back(end.slot);
  work.result.warp_instructions += end.warp_instructions;
  work.result.thread_instructions += end.thread_instructions;
  const auto kernel = std::ranges::find(kernels_, std::uint64_t{end.launch}, &policy::KernelView::id);
  if (++kernel->finished == kernel->ctas) EndKernel(kernel, end.at);
}

void Dispatcher::EndKernel(std::vector<policy::KernelView>::iterator kernel, Cycle now) {
  const auto id = static_cast<WorkId>(kernel->id);
  kernels_.erase(kernel);
  if (hooks_.observer != nullptr) hooks_.observer->OnKernelEnd(now, id);
  Finish(id, now);
}

/// The launch ended before it had run all of its grid: what has not started is not there.
void Dispatcher::Cut(std::vector<policy::KernelView>::iterator kernel, Cycle now) {
  WorkResult& result = works_.at(static_cast<WorkId>(kernel->id)).result;
  kernel->ctas = result.ctas = kernel->started;
  if (result.started == kNever) result.started = now;
  if (kernel->finished == kernel->ctas) EndKernel(kernel, now);
}

void Dispatcher::Finish(WorkId id, Cycle now) {
  Work& work = works_.at(id);
  work.state = State::kDone;
  work.source.reset();
  work.resident = {};
  work.code.reset();
  work.memory.reset();
  forgettable_.push_back(id);
  for (const WorkId other : work.order.after) {
    if (--works_.at(other).waiters == 0) forgettable_.push_back(other);
  }
  std::vector<WorkId>().swap(work.order.after);
  work.result.ended = now;
  finished_.push_back(id);
  ++done_;
  const auto stream = streams_.find(work.order.stream);
  std::erase(stream->second, id);
  // Whoever waited can start now, or when the overhead of its launch has passed.
  if (stream->second.empty()) streams_.erase(stream);
  else works_.at(stream->second.front()).predecessor_ended = now;
  events_.insert({now + parameters_.timing().launch.dependent_cycles, EventKind::kCheck, 0});
}

/// Lets go of works that have ended and that nobody asks for any more. What ended since the last call of Run was reported by now.
void Dispatcher::Forget() {
  for (const WorkId id : forgettable_) {
    if (keep_ended_) break;
    const auto work = works_.find(id);
    if (work != works_.end() && work->second.state == State::kDone && work->second.waiters == 0) works_.erase(work);
  }
  forgettable_.clear();
}

bool Dispatcher::DependenciesDone(WorkId id) const {
  const Work& work = works_.at(id);
  if (streams_.at(work.order.stream).front() != id) return false;
  return std::ranges::all_of(work.order.after, [&](WorkId other) { return works_.at(other).state == State::kDone; });
}

/// When a kernel whose dependencies are done can start.
Cycle Dispatcher::EarliestStart(const Work& work) const {
  const sim::TimingSpec::Launch& launch = parameters_.timing().launch;
  Cycle start = work.order.submitted + launch.kernel_cycles;
  if (work.has_predecessor) start = std::max(start, work.predecessor_ended + launch.dependent_cycles);
  for (const WorkId other : work.order.after) start = std::max(start, works_.at(other).result.ended + launch.dependent_cycles);
  return start;
}

/// Lets kernels at the heads of the hardware queues become ready, and copies start.
void Dispatcher::Check(Cycle now) {
  CheckMarkers(now);
  CheckCopies(now);
  for (std::deque<WorkId>& queue : queues_) {
    while (!queue.empty() && kernels_.size() < parameters_.device.grid.max_resident) {
      const WorkId id = queue.front();
      Work& work = works_.at(id);
      if (work.order.submitted > now || !DependenciesDone(id)) break;
      const Cycle start = EarliestStart(work);
      if (start > now) {
        events_.insert({start, EventKind::kCheck, 0});
        break;
      }
      queue.pop_front();
      work.state = State::kRunning;
      work.resident.assign(sms_.size(), 0);
      kernels_.push_back({.id = id,
                          .stream = work.order.stream,
                          .ctas = work.source->shape().ctas,
                          .needs = work.needs,
                          .tenant = work.owner.tenant,
                          .weight = work.owner.weight,
                          .priority = work.owner.priority,
                          .profile = work.profile,
                          .resident = work.resident});
    }
  }
}

/// One that ends may let others end.
void Dispatcher::CheckMarkers(Cycle now) {
  for (bool again = true; again;) {
    again = false;
    for (auto next = markers_.begin(); next != markers_.end();) {
      const WorkId id = *next;
      if (works_.at(id).order.submitted > now || !DependenciesDone(id)) {
        ++next;
        continue;
      }
      next = markers_.erase(next);
      works_.at(id).result.started = now;
      Finish(id, now);
      again = true;
    }
  }
}

std::size_t Dispatcher::EngineOf(WorkKind kind) const {
  const std::size_t on_device = engine_busy_.size() - 1;
  if (kind == WorkKind::kCopyToDevice) return 0;
  return kind == WorkKind::kCopyToHost ? on_device - 1 : on_device;
}

void Dispatcher::CheckCopies(Cycle now) {
  for (auto next = copies_.begin(); next != copies_.end();) {
    const WorkId id = *next;
    Work& work = works_.at(id);
    const std::size_t engine = EngineOf(work.kind);
    if (engine_busy_[engine] || work.order.submitted > now || !DependenciesDone(id)) {
      ++next;
      continue;
    }
    // What copies or fills on the device is a kernel, and is launched like one.
    const Cycle start = engine + 1 == engine_busy_.size() ? EarliestStart(work) : now;
    if (start > now) {
      events_.insert({start, EventKind::kCheck, 0});
      ++next;
      continue;
    }
    next = copies_.erase(next);
    engine_busy_[engine] = true;
    work.state = State::kRunning;
    work.result.started = now;
    events_.insert({now + CopyCycles(work.result), EventKind::kCopyEnd, std::uint64_t{engine} << 32 | id});
  }
}

/// Copies over PCIe have a latency and their bytes; those on the device move at 7/8 of DRAM's peak, as copying kernels do.
Cycle Dispatcher::CopyCycles(const WorkResult& copy) const {
  const sim::TimingSpec& timing = parameters_.timing();
  const std::uint64_t mhz = timing.clock.sm_mhz;
  if (EngineOf(copy.kind) + 1 == engine_busy_.size()) {
    const std::uint64_t bytes = copy.kind == WorkKind::kFill ? copy.bytes : 2 * copy.bytes;
    const std::uint64_t rate = std::uint64_t{timing.dram.channels} * timing.dram.bytes_per_cycle * timing.clock.dram_mhz * 7;
    return std::max<Cycle>((bytes * mhz * 8 + rate - 1) / rate, 1);
  }
  const sim::TimingSpec::Pcie& pcie = timing.pcie;
  const std::uint64_t rate = copy.kind == WorkKind::kCopyToDevice ? pcie.to_device_mb_s : pcie.to_host_mb_s;
  const Cycle cycles = (pcie.latency_ns * mhz + 999) / 1000 + (copy.bytes * mhz + rate - 1) / rate;
  return std::max<Cycle>(cycles, 1);
}

Status Dispatcher::Place(Cycle now, const StartCta& start) {
  held_back_ = false;
  while (true) {
    const auto slice = policy_.Next({.cycle = now, .kernels = kernels_, .sms = sms_});
    if (!slice) break;
    const auto kernel = std::ranges::find(kernels_, slice->kernel, &policy::KernelView::id);
    if (kernel == kernels_.end()) return {};
    std::uint64_t placed = 0;
    Placed last = Placed::kYes;
    while (placed < slice->ctas && !kernel->all_started() && last == Placed::kYes) {
      GL_TRY(done, PlaceOne(now, *kernel, slice->max_per_sm, start));
      last = done;
      if (last == Placed::kYes) ++placed;
    }
    if (last == Placed::kNoMore) Cut(kernel, now);
    else if (placed == 0) return {};
  }
  if (const auto again = policy_.Again(); again && *again > now) events_.insert({*again, EventKind::kCheck, 0});
  return {};
}

/// Places the kernel's next CTA on the next SM, round robin, that has room and may hold one more.
Result<Dispatcher::Placed> Dispatcher::PlaceOne(Cycle now, policy::KernelView& kernel, std::uint32_t max_per_sm, const StartCta& start) {
  const auto launch = static_cast<std::uint32_t>(kernel.id);
  const auto count = static_cast<std::uint32_t>(sms_.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t index = next_sm_ + i < count ? next_sm_ + i : next_sm_ + i - count;
    policy::SmView& sm = sms_[index];
    if (!sm.Fits(kernel.needs)) continue;
    if (max_per_sm != 0 && kernel.resident[index] >= max_per_sm) continue;
    if (hooks_.cta != nullptr && !hooks_.cta->MayStart(now, launch, kernel.started, index)) {
      held_back_ = true;
      continue;
    }
    Work& work = works_.at(launch);
    GL_TRY(cta, work.source->Load(kernel.started));
    if (cta.trace == nullptr) return Placed::kNoMore;
    GL_TRY_STATUS(trace::ValidateShifts(work.source->code(), cta.shifts));
    if (cta.trace != work.valid) {  // many CTAs share a trace
      GL_TRY_STATUS(trace::ValidateCta(work.source->code(), work.source->shape(), *cta.trace));
      work.valid = cta.trace;
    }
    const Cycle decision = std::max(now, next_decision_);
    next_decision_ = decision + parameters_.timing().launch.cta_interval;
    const Cycle at = decision + parameters_.timing().launch.cta_cycles;
    if (hooks_.cta != nullptr) hooks_.cta->OnStart(at, launch, kernel.started, index);
    if (work.result.started == kNever) begun_.push_back(launch);
    work.result.started = std::min(work.result.started, at);
    ++work.resident[index];
    --sm.free_ctas;
    sm.free_warps -= kernel.needs.warps;
    sm.free_registers -= kernel.needs.registers;
    sm.free_shared_bytes -= kernel.needs.shared_bytes;
    const std::uint16_t slot = free_slots_[index].back();
    free_slots_[index].pop_back();
    if (hooks_.observer != nullptr) hooks_.observer->OnCtaStart(at, {.launch = launch, .sm = index, .slot = slot, .cta = kernel.started});
    start(index, {.at = at,
                  .cta = kernel.started,
                  .launch = launch,
                  .slot = slot,
                  .trace = std::move(cta.trace),
                  .shifts = std::move(cta.shifts),
                  .code = work.code.get(),
                  .memory = work.memory.get()});
    ++kernel.started;
    next_sm_ = index + 1 < count ? index + 1 : 0;
    return Placed::kYes;
  }
  return Placed::kNoRoom;
}

}  // namespace gridloom::timing
