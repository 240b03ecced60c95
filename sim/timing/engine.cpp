#include "sim/timing/engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rewriter/support/check.h"
#include "sim/timing/device_input.h"

namespace gridloom::timing {
namespace {

/// Messages have 47 bits for cycles, of L2's clock, too, which may be 15 times as fast. Nobody simulates so many one by
/// one; turns that are not simulated must not come near, either.
constexpr Cycle kLatestPassed = Cycle{1} << 43;

/// Who looks on or acts between windows sees partitions that are not behind.
bool MayOverlap(const Parameters& parameters, const EngineOptions& options, const Ports& ports, unsigned threads) {
  const bool alone = options.observer == nullptr && !ports.needs_partitions();
  return threads > 1 && !options.plain && alone &&
         2 * parameters.window <= parameters.request_latency + parameters.response_latency;
}

}  // namespace

/// What parts do to the device.
class Engine::Input final : public DeviceInput {
 public:
  explicit Input(Engine& engine) : engine_(engine) {}
  const Parameters& parameters() const override { return engine_.parameters_; }
  Cycle earliest() const override { return earliest_; }
  Result<WorkId> Add(KernelWork work) override { return engine_.dispatcher_.Add(std::move(work)); }
  Result<WorkId> Add(CopyWork work) override { return engine_.dispatcher_.Add(std::move(work)); }
  Result<WorkId> Add(MarkerWork work) override { return engine_.dispatcher_.Add(std::move(work)); }
  std::uint32_t NewStream() override { return next_stream_++; }
  Status Extend(WorkId kernel, std::shared_ptr<trace::CtaSource> group) override {
    return engine_.dispatcher_.groups().Extend(kernel, std::move(group));
  }
  Status Join(WorkId kernel, WorkId launch) override { return engine_.dispatcher_.groups().Join(kernel, launch); }
  void Launch(WorkId launch, Cycle at) override { engine_.dispatcher_.management_unit().Launch(launch, at); }
  void EndCopy(WorkId copy, Cycle at) override { engine_.dispatcher_.events().EndCopy(copy, at); }
  void EndKernel(const KernelEnd& end) override { engine_.dispatcher_.EndKernel(end); }
  std::shared_ptr<const DecodedCode> CodeOf(WorkId kernel) const override {
    return works().at(kernel).kernel.code->decoded;
  }
  bool IsCancelled(WorkId kernel) const override { return works().Has(kernel) && works().at(kernel).kernel.cancelled; }
  Result<trace::LoadedCta> Load(WorkId kernel, std::uint64_t cta) override {
    return engine_.dispatcher_.works().at(kernel).kernel.Load(cta);
  }
  void Recheck(Cycle at) override { engine_.dispatcher_.events().Check(at); }
  void AskGates(std::uint32_t sm, Cycle at) override { Command(sm, {.at = at, .kind = SmCommand::Kind::kAskGates}); }
  void DropL1(std::uint32_t sm, Cycle at) override { Command(sm, {.at = at, .kind = SmCommand::Kind::kDropL1}); }
  void Send(Cycle at, const PartRequest& request) override {
    CheckTime(at);
    const LineHome home = engine_.map_.Home(request.line);
    engine_.partitions_[home.partition]->Add(Request({.arrival = at + engine_.parameters_.request_latency,
                                                      .line = home.local,
                                                      .launch = request.launch,
                                                      .sm = Request::kNobody,
                                                      .partition = home.partition,
                                                      .kind = request.kind,
                                                      .slice = home.slice,
                                                      .sectors = request.sectors}));
    sent_ = true;
  }
  void SweepL2(Cycle at, std::uint64_t tag) override {
    CheckTime(at);
    GL_CHECK(tag < std::uint64_t{1} << 31, "a sweep of L2 has a tag that no message has room for");
    const std::uint32_t slices = engine_.parameters_.slices_per_partition();
    for (std::uint32_t p = 0; p < engine_.partitions_.size(); ++p) {
      for (std::uint32_t s = 0; s < slices; ++s) {
        engine_.partitions_[p]->Add(Request({.arrival = at + engine_.parameters_.request_latency,
                                             .line = tag,
                                             .sm = Request::kNobody,
                                             .partition = static_cast<std::uint16_t>(p),
                                             .kind = RequestKind::kSweep,
                                             .slice = static_cast<std::uint8_t>(s)}));
      }
    }
    sent_ = true;
  }
  void Bring(const CopiedMemory& copied);
  void Fail(Error error) override {
    if (failure_.ok()) failure_ = std::move(error);
  }

  const Status& failure() const { return failure_; }
  void SetEarliest(Cycle cycle) { earliest_ = cycle; }
  /// Requests wait at partitions that have not seen them.
  bool sent() const { return sent_; }
  void Taken() { sent_ = false; }

 private:
  /// Streams of programs are numbered from 0 on.
  static constexpr std::uint32_t kFirstStream = 1u << 31;

  const StreamOrder& works() const { return std::as_const(engine_.dispatcher_).works(); }
  void CheckTime(Cycle at) const { GL_CHECK(at >= earliest_, "a part acted on a cycle that has been simulated"); }
  void Command(std::uint32_t sm, const SmCommand& command) {
    CheckTime(command.at);
    engine_.sms_[sm]->Add(command);
  }

  Engine& engine_;
  Cycle earliest_ = 0;
  std::uint32_t next_stream_ = kFirstStream;
  Status failure_;
  bool sent_ = false;
};

/// What a copy has written is in L2 when a CTA could read it that waited for the copy. Of more than L2 holds, the end.
void Engine::Input::Bring(const CopiedMemory& copied) {
  const Parameters& parameters = engine_.parameters_;
  const sim::TimingSpec& timing = parameters.timing();
  const AddressSpace memory(copied.address_space, engine_.options_.layout, parameters.device.memory.page_bytes);
  const std::uint64_t block = std::min<std::uint64_t>(timing.l2.interleave_bytes, parameters.device.memory.page_bytes) /
                              sim::TimingSpec::kLineBytes;
  const std::uint64_t most = std::uint64_t{parameters.l2_sets()} * timing.l2.ways * timing.l2.slices;
  const std::uint64_t end =
      (copied.address + copied.bytes + sim::TimingSpec::kLineBytes - 1) / sim::TimingSpec::kLineBytes;
  std::vector<Request::Fields> runs(timing.l2.slices);  // lines of one slice that follow each other there
  const auto send = [&](const Request::Fields& run) {
    if (run.launch != 0) engine_.partitions_[run.partition]->Add(Request(run));
  };
  std::uint64_t line = std::max(copied.address / sim::TimingSpec::kLineBytes, end - std::min(end, most));
  while (line < end) {
    const std::uint64_t next = std::min(end, (line / block + 1) * block);
    const LineHome home = engine_.map_.Home(memory.PhysicalLine(line));
    const auto count = static_cast<std::uint32_t>(next - line);
    Request::Fields& run = runs[home.partition * parameters.slices_per_partition() + home.slice];
    line = next;
    if (run.launch != 0 && home.local == run.line + run.launch) {
      run.launch += count;
      continue;
    }
    send(run);
    run = {.arrival = copied.at + timing.launch.cta_cycles + parameters.request_latency,
           .line = home.local,
           .launch = count,
           .sm = Request::kNobody,
           .partition = home.partition,
           .kind = RequestKind::kCopied,
           .slice = home.slice};
  }
  for (const Request::Fields& run : runs) send(run);
  sent_ = true;
}

Result<std::unique_ptr<Engine>> Engine::Create(const sim::DeviceSpec& device, policy::Policy& policy,
                                               EngineOptions options) {
  auto parameters = Derive(device);
  if (!parameters.ok()) return Error{device.id + ": " + parameters.error().message};
  std::unique_ptr<Engine> engine(new Engine(std::move(*parameters), policy, std::move(options)));
  GL_TRY_STATUS(engine->AttachParts());
  engine->Build();
  return engine;
}

Engine::Engine(Parameters parameters, policy::Policy& policy, EngineOptions options)
    : parameters_(std::move(parameters)),
      options_(std::move(options)),
      threads_(std::clamp(options_.threads, 1u, parameters_.device.sm.count)),
      map_(parameters_),
      dispatcher_(parameters_, policy, ports_, options_.observer, options_.layout, options_.keep_ended),
      input_(std::make_unique<Input>(*this)),
      recurrence_(parameters_, Window()) {}

Engine::~Engine() = default;

/// Once it is known who is at which port.
void Engine::Build() {
  for (std::uint32_t s = 0; s < parameters_.device.sm.count; ++s) {
    sms_.push_back(std::make_unique<Sm>(parameters_, map_, ports_, s, threads_, options_.plain));
  }
  for (std::uint32_t p = 0; p < parameters_.timing().dram.channels; ++p) {
    partitions_.push_back(std::make_unique<MemoryPartition>(parameters_, map_, ports_, p, threads_, options_.plain));
  }
}

Status Engine::AttachParts() {
  std::size_t counters = 0;
  for (const auto& part : options_.parts) {
    const CtaPlacer* const placer = ports_.placer;
    const L2Replacement* const l2 = ports_.l2;
    const LaunchCost* const cost = ports_.launch_cost;
    const KernelPath* const path = ports_.kernel_path;
    part->Attach(ports_, *input_);
    if (placer != nullptr && ports_.placer != placer) return Error{"two proposed parts place CTAs; only one can"};
    if (l2 != nullptr && ports_.l2 != l2) return Error{"two proposed parts choose who stays in L2; only one can"};
    if (cost != nullptr && ports_.launch_cost != cost)
      return Error{"two proposed parts say what launches by kernels cost; only one can"};
    if (path != nullptr && ports_.kernel_path != path)
      return Error{"two proposed parts take up kernels themselves; only one can"};
    counters += part->counters();
  }
  if (counters > Counters::kPartCounters) {
    return Error{"the proposed parts have " + std::to_string(counters) + " counters; the model has room for " +
                 std::to_string(Counters::kPartCounters)};
  }
  if (ports_.warp_gates.size() > Ports::kMostGates) {
    return Error{"more than " + std::to_string(Ports::kMostGates) + " proposed parts hold warps back"};
  }
  overlaps_ = MayOverlap(parameters_, options_, ports_, threads_);
  return {};
}

void Engine::AddPartCounters(Counters& sum) const {
  std::size_t first = 0;
  for (const auto& part : options_.parts) {
    part->Count(std::span(sum.parts).subspan(first, part->counters()));
    first += part->counters();
  }
}

Counters Engine::counters() const {
  Counters sum;
  for (const auto& sm : sms_) sum.sm += sm->counters();
  for (const auto& partition : partitions_) sum.memory += partition->counters();
  sum.launches += dispatcher_.launch_counters();
  AddPartCounters(sum);
  return sum;
}

Counters Engine::counters_now() const {
  Counters sum;
  for (const auto& sm : sms_) sum.sm += sm->counters_until(now_);
  for (const auto& partition : partitions_) sum.memory += partition->counters();
  sum.launches += dispatcher_.launch_counters();
  AddPartCounters(sum);
  return sum;
}

void Engine::RunSms(unsigned thread, Cycle begin, Cycle end) {
  for (const auto& partition : partitions_) {
    std::vector<Response>& responses = partition->outbox().sealed(thread);
    for (const Response& response : responses) sms_[response.sm]->Add(response);
    responses.clear();
  }
  if (thread < sms_.size()) sms_[thread]->Prefetch();
  for (std::size_t s = thread; s < sms_.size(); s += threads_) {
    if (s + threads_ < sms_.size()) sms_[s + threads_]->Prefetch();
    sms_[s]->SortInbox();
    sms_[s]->Run(begin, end);
  }
}

/// Groups are given out the other way round, so that the thread with one SM more does not also have one partition more.
void Engine::RunPartitions(unsigned thread, Cycle end) {
  const unsigned group = threads_ - 1 - thread;
  for (const auto& sm : sms_) {
    std::vector<Request>& requests = sm->outbox().sealed(group);
    for (const Request& request : requests) partitions_[request.partition()]->Add(request);
    requests.clear();
  }
  for (std::size_t p = group; p < partitions_.size(); p += threads_) {
    partitions_[p]->SortInboxes();
    partitions_[p]->Run(end);
  }
}

void Engine::SealSms() {
  for (const auto& sm : sms_) sm->outbox().Seal();
}
void Engine::SealPartitions() {
  for (const auto& partition : partitions_) partition->outbox().Seal();
}

/// The cycles from `begin` to now_ on the SMs, and of the partitions what they have to do until SMs may go on.
void Engine::RunWindow(PhaseThreads& threads, Cycle begin) {
  const Cycle behind = std::exchange(behind_, now_ + parameters_.request_latency);
  threads.Run([&](unsigned thread) {
    RunSms(thread, begin, now_);
    if (behind != 0) RunPartitions(thread, behind);
  });
  SealSms();
  if (behind != 0) SealPartitions();
  if (!overlaps_) CatchUp(threads);
}

/// Simulates partitions as far as SMs have been.
void Engine::CatchUp(PhaseThreads& threads) {
  if (behind_ == 0) return;
  threads.Run([&](unsigned thread) { RunPartitions(thread, behind_); });
  SealPartitions();
  behind_ = 0;
}

Status Engine::Dispatch(Cycle end) {
  for (const auto& sm : sms_) {
    if (!sm->ended().empty()) dispatcher_.events().Ended(sm->ended());
    if (!sm->signals().empty()) dispatcher_.events().Signalled(sm->signals());
  }
  input_->SetEarliest(end);
  GL_TRY_STATUS(dispatcher_.Run(end, [&](std::uint32_t sm, CtaStart start) {
    has_repeats_ |= !start.trace->repeats.empty();
    sms_[sm]->Start(std::move(start));
  }));
  for (const CopiedMemory& copied : dispatcher_.TakeCopied()) input_->Bring(copied);
  return input_->failure();
}

/// Nothing happens before that cycle; kNever: nothing at all.
Cycle Engine::NextEvent() const {
  if (input_->sent()) return now_;
  Cycle next = std::min(dispatcher_.events().next(), NextOfSources());
  for (const auto& partition : partitions_) {
    for (unsigned group = 0; group < threads_; ++group) {
      if (!partition->outbox().sealed(group).empty()) return now_;
    }
    next = std::min(next, partition->next());
  }
  for (const auto& sm : sms_) next = std::min(next, sm->next());
  return next;
}

Cycle Engine::NextOfSources() const {
  Cycle next = kNever;
  for (const TimedSource* const source : ports_.sources) next = std::min(next, source->next());
  return next;
}

/// Whatever acts at times of its own, before the cycles [begin, end) are simulated.
Status Engine::RunSources(Cycle begin, Cycle end) {
  input_->SetEarliest(begin);
  for (TimedSource* const source : ports_.sources) {
    if (source->next() < end) source->Run(end);
  }
  return input_->failure();
}

/// What is asked or told within windows may keep what is not shown to a walk.
bool Engine::PassesTurns() const {
  return has_repeats_ && !options_.plain && !options_.each_turn && !ports_.acts_in_windows();
}

/// All CTAs that are on the device wait, or make turns.
bool Engine::OnlyTurns() {
  bool any = false;
  for (const auto& sm : sms_) {
    if (sm->idle()) continue;
    any = true;
    if (!sm->OnlyTurns()) return false;
  }
  has_repeats_ = any;
  return any;
}

/// Lets turns go by that are like those before, up to `limit` and what else comes from outside of SMs and partitions.
void Engine::PassTurns(PhaseThreads& threads, Cycle limit) {
  if (!OnlyTurns()) return recurrence_.Forget();
  CatchUp(threads);
  const auto walk = [this](StateWalk& state) { Walk(state); };
  const Cycle period = recurrence_.Look(now_, walk);
  if (period == 0) return;
  limit = std::min({limit, kLatestPassed, dispatcher_.events().next(), NextOfSources()});
  if (options_.observer != nullptr) limit = std::min(limit, options_.observer->WantsWindows(*this, period));
  const std::uint64_t times = std::min(recurrence_.most_times(), (std::max(limit, now_) - now_) / period);
  if (times == 0) return;
  recurrence_.Move(now_, times, walk);
  now_ += times * period;
  passed_ += times * period;
}

void Engine::Walk(StateWalk& walk) {
  if (input_->sent()) return walk.Refuse();
  walk.set_entries([this, &walk](std::uint16_t sm, std::uint16_t id) { sms_[sm]->WalkEntry(id, walk); });
  for (const auto& sm : sms_) {
    sm->Walk(walk);
    if (!walk.goes_on()) return;
  }
  for (const auto& partition : partitions_) {
    partition->Walk(walk);
    if (!walk.goes_on()) return;
  }
}

Cycle Engine::Window() const {
  return options_.window == 0 ? parameters_.window : std::min(options_.window, parameters_.window);
}

/// Windows begin at multiples of their length, so that what is measured at their ends does not depend on where RunUntil
/// stopped.
Status Engine::RunUntil(Cycle limit, const std::function<bool()>& stop) {
  const Cycle window = Window();
  PhaseThreads threads(threads_, options_.times);
  while (true) {
    // A decision at t starts a CTA at t + launch.cta_cycles, which is not before the next window.
    GL_TRY_STATUS(Dispatch(now_));
    if (HasReports()) {
      CatchUp(threads);
      Report();
    }
    const bool stops = stop && stop();
    if (!stops && PassesTurns()) PassTurns(threads, limit);
    Cycle next = stops ? kNever : NextEvent();
    if (next >= now_ + window && behind_ != 0) {
      // Nothing near is known; but what partitions have not done yet may come of it.
      CatchUp(threads);
      next = NextEvent();
    }
    if (stops) return {};
    const Cycle begin = options_.plain || next == kNever ? now_ : std::max(now_, next / window * window);
    if (next != kNever && begin + window > limit) {
      CatchUp(threads);
      return {};
    }
    if (options_.observer != nullptr) options_.observer->OnWindow(*this, begin);
    if (next == kNever) return {};
    now_ = begin + window;
    if (!ports_.sources.empty()) GL_TRY_STATUS(RunSources(begin, now_));
    input_->Taken();
    RunWindow(threads, begin);
  }
}

void Engine::Cancel(WorkId id) {
  dispatcher_.Cancel(id);
  for (const auto& sm : sms_) sm->Add({.at = now_, .kind = SmCommand::Kind::kCancel, .launch = id});
}

Status Engine::Run() {
  GL_TRY_STATUS(RunUntil(kNever, {}));
  if (!all_done()) return Error{"the device stands still: the policy starts none of the kernels that are ready"};
  return {};
}

bool Engine::HasReports() const {
  const WorkReports& reports = dispatcher_.reports();
  return options_.on_finished && !(reports.begun().empty() && reports.finished().empty());
}

void Engine::Report() {
  const Counters sum = counters_now();
  for (const WorkId id : dispatcher_.reports().finished()) {
    const auto begin = counters_at_begin_.find(id);
    Counters during;
    if (begin != counters_at_begin_.end()) {
      during = sum;
      during -= begin->second;
      counters_at_begin_.erase(begin);
    }
    options_.on_finished(id, result(id), during);
  }
  for (const WorkId id : dispatcher_.reports().begun()) counters_at_begin_.emplace(id, sum);
}

}  // namespace gridloom::timing
