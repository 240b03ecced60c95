#include "sim/timing/live/live_simulation.h"

#include <sys/resource.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "rewriter/support/own_thread.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {
namespace {

/// Tells whether the simulation waits for a CTA.
class WatchedSource final : public trace::CtaSource {
 public:
  WatchedSource(std::shared_ptr<trace::CtaSource> source, HostId host, SimulationSignals& signals)
      : source_(std::move(source)), host_(host), signals_(signals) {}
  const trace::KernelCode& code() const override { return source_->code(); }
  const trace::LaunchShape& shape() const override { return source_->shape(); }
  Result<trace::LoadedCta> Load(std::uint64_t index) override {
    signals_.BeginLoad(host_);
    auto cta = source_->Load(index);
    signals_.EndLoad();
    return cta;
  }

 private:
  const std::shared_ptr<trace::CtaSource> source_;
  const HostId host_;
  SimulationSignals& signals_;
};

}  // namespace

Status LiveSimulation::Start(const sim::DeviceSpec& device, std::unique_ptr<policy::Policy> policy) {
  policy_ = std::move(policy);
  if (options_.profiler) {
    auto outer = std::make_unique<ProfilingPolicy>(std::move(policy_), options_.profiler);
    profiling_ = outer.get();
    policy_ = std::move(outer);
  }
  EngineOptions options = options_.engine;
  options.on_finished = [this](WorkId id, const WorkResult& work, const Counters& during) {
    finished_.emplace_back(id, work, during);
    signals_.AddProgress();
    stops_.Ended(id, works_);
  };
  GL_TRY(engine, Engine::Create(device, *policy_, options));
  engine_ = std::move(engine);
  hosts_.SetCosts(CostsOf(engine_->parameters()));
  feed_.emplace(DeviceFeed::Sides{.engine = *engine_,
                                  .profiling = profiling_,
                                  .hosts = hosts_,
                                  .nodes = nodes_,
                                  .streams = streams_,
                                  .questions = questions_,
                                  .works = works_,
                                  .stops = stops_,
                                  .signals = signals_});
  try {
    thread_ = std::thread([this] {
      BecomeOwnThread();
      Main();
    });
  } catch (const std::system_error& error) {
    return Error{std::string("there is no thread for simulating the device: ") + error.what()};
  }
  return {};
}

LiveSimulation::~LiveSimulation() {
  {
    const std::lock_guard lock(mutex_);
    signals_.End();
  }
  if (thread_.joinable()) thread_.join();
}

Status LiveSimulation::CheckKernel(const trace::CtaSource& source) const {
  const auto needs = NeedsOf(source.shape(), engine_->parameters().device);
  if (!needs.ok()) return Error{"kernel " + source.code().name + ": " + needs.error().message};
  return engine_->CheckCode(source.code());
}

std::shared_ptr<trace::CtaSource> LiveSimulation::Watched(std::shared_ptr<trace::CtaSource> source, HostId host) {
  return std::make_shared<WatchedSource>(std::move(source), host, signals_);
}

// ---- hosts that are gone

void LiveSimulation::Drop(HostId id) {
  LiveHost* const host = hosts_.Find(id);
  if (host == nullptr || host->dropped) return;
  for (const NodeId call : std::exchange(host->calls, {})) DropNode(call);
  host->dropped = true;
  if (host->running != 0) {
    dropped_.push_back(id);
    signals_.Look();
  }
  hosts_.Forget(id, streams_);
}

/// The work, and what belongs to it, ends now without having begun.
void LiveSimulation::DropNode(NodeId id) {
  std::vector<NodeId> left = {id};
  while (!left.empty()) {
    const NodeId next = left.back();
    left.pop_back();
    const auto node = nodes_.Take(next);
    if (!node) continue;
    hosts_.SetEnd(next, signals_.now(), node->place.after.size());
    questions_.TellWaiters(next, signals_.now());
    left.insert(left.end(), node->members.rbegin(), node->members.rend());
  }
}

/// What runs on the device of hosts that were dropped ends.
void LiveSimulation::CancelDropped() {
  for (const HostId host : std::exchange(dropped_, {})) {
    for (const WorkId begin : works_.BeginsOf(host)) engine_->Cancel(begin);
  }
}

// ---- what came of works

void LiveSimulation::Fail(const std::string& why) {
  signals_.Fail(why);
  for (const auto& [id, host] : hosts_.all()) questions_.AnswerAllOf(id);
  signals_.TellHosts();
}

/// Takes over what has ended; whether somebody waited for some of it.
bool LiveSimulation::Collect() {
  bool awaited = false;
  for (const auto& [work, result, during] : finished_) {
    if (options_.keep_table) table_.Add(result, during);
    if (profiling_ != nullptr) profiling_->Forget(work);
    const auto owner = streams_.OwnerOf(result.stream);
    if (options_.on_ended && owner) options_.on_ended(*owner, result, during);
    hosts_.NoteEnd(result.ended);
    if (owner) streams_.End(result.stream);
    const auto ended = works_.Take(work);
    if (!ended) continue;
    hosts_.SetEnd(ended->node, result.ended, ended->waits);
    awaited |= questions_.TellWaiters(ended->node, result.ended);
    hosts_.Forget(HostOf(ended->node), streams_);
  }
  finished_.clear();
  hosts_.LetGoOfEnds();
  signals_.SetNow(engine_->now());
  works_kept_ = engine_->kept();
  return awaited;
}

// ---- the loop

/// When the engine has to stop, so that hosts hear of what they wait for.
void LiveSimulation::Prepare() {
  for (const NodeId node : questions_.TakeAskedFor()) {
    if (const auto work = works_.WorkOf(node)) stops_.Await(*work);
  }
  stops_.Begin();
  for (const HostId host : questions_.HostsThatAskForAll()) stops_.AwaitAll(host, hosts_.at(host).running);
}

void LiveSimulation::Main() {
  if (options_.niceness != 0) static_cast<void>(setpriority(PRIO_PROCESS, 0, options_.niceness));  // of this thread
  SimulationSignals::Lock lock(mutex_);
  while (!signals_.ends() && Step(lock)) {
  }
  signals_.TellHosts();
}

/// Simulates as far as hosts allow, or until one hears of what it waits for. False: nothing is simulated any more.
bool LiveSimulation::Step(SimulationSignals::Lock& lock) {
  const std::uint64_t version = signals_.BeginLook();
  CancelDropped();
  const Result<Cycle> fed = feed_->Feed();
  if (!fed.ok()) {
    Fail(fed.error().message);
    return false;
  }
  const Cycle horizon = hosts_.Horizon(), limit = std::min(*fed, horizon);
  Prepare();
  lock.unlock();
  const Status status = engine_->RunUntil(limit, [&] {
    signals_.SetNow(engine_->now());
    return signals_.ends() || signals_.looks() || stops_.stops();
  });
  lock.lock();
  if (!status.ok()) {
    Fail(status.error().message);
    return false;
  }
  const bool looks = signals_.looks() || stops_.stops();  // it stopped before it had come as far as it may
  const bool woke = Collect() || looks;
  if (!woke) {
    signals_.SetReached(version);
    questions_.AnswerReached(version, signals_.undecided() ? limit : horizon);
    if (version == signals_.version() && limit == kNever && !engine_->all_done()) {
      Fail("the device stands still: nothing that it was given can begin");
      return false;
    }
  }
  signals_.TellHosts();
  if (!woke) signals_.WaitForHosts(lock, version);
  return true;
}

}  // namespace gridloom::timing
