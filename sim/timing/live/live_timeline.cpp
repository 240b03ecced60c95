#include "sim/timing/live/live_timeline.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "rewriter/support/check.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::timing {
namespace {

/// Tells whether the simulation waits for a CTA.
class WatchedSource final : public trace::CtaSource {
 public:
  WatchedSource(std::shared_ptr<trace::CtaSource> source, HostId host, std::atomic<std::int64_t>& loading,
                std::atomic<std::uint64_t>& progress)
      : source_(std::move(source)), host_(host), loading_(loading), progress_(progress) {}
  const trace::KernelCode& code() const override { return source_->code(); }
  const trace::LaunchShape& shape() const override { return source_->shape(); }
  Result<trace::LoadedCta> Load(std::uint64_t index) override {
    loading_.store(host_);
    auto cta = source_->Load(index);
    ++progress_;
    loading_.store(-1);
    return cta;
  }

 private:
  const std::shared_ptr<trace::CtaSource> source_;
  const HostId host_;
  std::atomic<std::int64_t>& loading_;
  std::atomic<std::uint64_t>& progress_;
};

Cycle CyclesOf(std::uint64_t ns, std::uint32_t mhz) { return (ns * mhz + 999) / 1000; }

}  // namespace

Result<std::unique_ptr<LiveTimeline>> LiveTimeline::Create(const sim::DeviceSpec& device,
                                                           std::unique_ptr<policy::Policy> policy, Options options) {
  ProfilingPolicy* profiling = nullptr;
  if (options.profiler) {
    auto outer = std::make_unique<ProfilingPolicy>(std::move(policy), options.profiler);
    profiling = outer.get();
    policy = std::move(outer);
  }
  std::unique_ptr<LiveTimeline> timeline(new LiveTimeline(std::move(policy), options));
  timeline->profiling_ = profiling;
  EngineOptions engine_options = options.engine;
  engine_options.on_finished = [self = timeline.get()](WorkId id, const WorkResult& work, const Counters& during) {
    self->OnFinished(id, work, during);
  };
  GL_TRY(engine, Engine::Create(device, *timeline->policy_, engine_options));
  timeline->engine_ = std::move(engine);
  const Parameters& parameters = timeline->engine_->parameters();
  const auto& host = parameters.timing().host;
  timeline->call_ = CyclesOf(host.call_ns, parameters.timing().clock.sm_mhz);
  timeline->copy_call_ =
      host.copy_call_ns == 0 ? timeline->call_ : CyclesOf(host.copy_call_ns, parameters.timing().clock.sm_mhz);
  // The device is simulated in windows: an answer takes at least as long as the one in which a work ended.
  timeline->answer_ =
      std::max(CyclesOf(parameters.timing().host.sync_ns, parameters.timing().clock.sm_mhz), parameters.window);
  try {
    timeline->thread_ = std::thread([self = timeline.get()] { self->Main(); });
  } catch (const std::system_error& error) {
    return Error{std::string("there is no thread for simulating the device: ") + error.what()};
  }
  return timeline;
}

LiveTimeline::LiveTimeline(std::unique_ptr<policy::Policy> policy, Options options)
    : policy_(std::move(policy)), options_(std::move(options)) {}

LiveTimeline::~LiveTimeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    interrupt_ = true;
    work_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// ---- hosts

LiveTimeline::Host* LiveTimeline::Find(HostId host) {
  const auto found = hosts_.find(host);
  return found != hosts_.end() ? &found->second : nullptr;
}

const LiveTimeline::Host* LiveTimeline::Find(HostId host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() ? &found->second : nullptr;
}

/// A host that could not submit anything can again: the device may not be simulated beyond its time.
void LiveTimeline::Look() {
  look_ = true;
  ++version_;
  work_.notify_one();
}

HostId LiveTimeline::AddHost() {
  const std::lock_guard lock(mutex_);
  const HostId id = next_host_++;
  hosts_[id].clock = now_;
  Look();
  return id;
}

void LiveTimeline::RemoveHost(HostId id) {
  const std::lock_guard lock(mutex_);
  Host* const host = Find(id);
  if (host == nullptr) return;
  host->gone = true;
  AnswerAllOf(id);
  ++version_;
  work_.notify_one();
  changed_.notify_all();
}

void LiveTimeline::DropHost(HostId id) {
  RemoveHost(id);
  const std::lock_guard lock(mutex_);
  Host* const host = Find(id);
  if (host == nullptr || host->dropped) return;
  for (const NodeId call : std::exchange(host->calls, {})) DropNode(call);
  host->dropped = true;
  if (host->running != 0) {
    dropped_.push_back(id);
    Look();
  }
  Forget(id);
}

/// It, and what belongs to it, ends now without having begun.
void LiveTimeline::DropNode(NodeId id) {
  std::vector<NodeId> left = {id};
  while (!left.empty()) {
    const NodeId next = left.back();
    left.pop_back();
    const auto found = nodes_.find(next);
    if (found == nodes_.end()) continue;
    const Node node = std::move(found->second);
    nodes_.erase(found);
    SetEnd(next, now_, node.place.after.size());
    TellWaiters(next, now_);
    left.insert(left.end(), node.members.rbegin(), node.members.rend());
  }
}

/// 0 when it is not known any more.
Cycle LiveTimeline::End(NodeId node) const {
  const Host* const host = node != 0 ? Find(HostOf(node)) : nullptr;
  return host != nullptr ? host->ends[IndexOf(node)] : 0;
}

void LiveTimeline::SetEnd(NodeId node, Cycle end, std::size_t waits) {
  Host& host = hosts_.at(HostOf(node));
  host.ends.Set(IndexOf(node), end);
  --host.running;
  host.waits -= waits;
  if (options_.on_node_ended) options_.on_node_ended(node, end);
}

/// Once nothing of the host's runs any more.
void LiveTimeline::Forget(HostId id) {
  const auto host = hosts_.find(id);
  if (host == hosts_.end() || !host->second.forgotten()) return;
  const auto first = streams_.lower_bound({id, 0}), last = streams_.lower_bound({id + 1, 0});
  for (auto stream = first; stream != last; ++stream) stream_of_.erase(stream->second);
  streams_.erase(first, last);
  last_end_ = std::max(last_end_, host->second.clock);
  hosts_.erase(host);
  if (options_.on_forgotten) options_.on_forgotten(id);
}

void LiveTimeline::SetAway(HostId id, bool away) {
  const std::lock_guard lock(mutex_);
  Host* const host = Find(id);
  if (host == nullptr) return;
  host->away = away;
  if (!away) host->clock = std::max<Cycle>(host->clock, now_);
  Look();
}

Cycle LiveTimeline::HostTime(HostId id) const {
  const std::lock_guard lock(mutex_);
  const Host* const host = Find(id);
  return host != nullptr ? host->clock : 0;
}

void LiveTimeline::Advance(HostId id, Cycle cycles) {
  const std::lock_guard lock(mutex_);
  hosts_.at(id).clock += cycles;
  ++version_;
  work_.notify_one();
}

// ---- works

NodeId LiveTimeline::Append(Place place, Node node) {
  const std::lock_guard lock(mutex_);
  Host& host = hosts_.at(place.host);
  GL_CHECK(!host.dropped, "a host that was dropped submits nothing");
  host.ends.Add(node.kind == WorkKind::kMarker && !node.is_group);
  const NodeId id = NodeOf(place.host, host.ends.size());
  if (!problem_.empty()) return id;
  ++host.running;
  host.waits += place.after.size();
  const auto group = place.group == 0 ? nodes_.end() : nodes_.find(place.group);
  if (group != nodes_.end()) {
    node.submitted = group->second.submitted;
    group->second.members.push_back(id);
  } else {
    host.clock += node.kind == WorkKind::kKernel || node.kind == WorkKind::kMarker ? call_ : copy_call_;
    node.submitted = host.clock;
    host.calls.push_back(id);
  }
  node.place = std::move(place);
  Node& given = nodes_.emplace(id, std::move(node)).first->second;
  if (!given.closed) AddOpen(given);
  ++version_;
  work_.notify_one();
  return id;
}

Status LiveTimeline::CheckKernel(const trace::CtaSource& source) const {
  const auto needs = NeedsOf(source.shape(), engine_->parameters().device);
  if (!needs.ok()) return Error{"kernel " + source.code().name + ": " + needs.error().message};
  return engine_->CheckCode(source.code());
}

std::shared_ptr<trace::CtaSource> LiveTimeline::Watched(std::shared_ptr<trace::CtaSource> source, HostId host) {
  return std::make_shared<WatchedSource>(std::move(source), host, loading_, progress_);
}

Result<NodeId> LiveTimeline::AppendKernel(Place place, std::shared_ptr<trace::CtaSource> source, bool opens) {
  GL_TRY_STATUS(CheckKernel(*source));
  Node node;
  node.kind = WorkKind::kKernel;
  node.source = Watched(std::move(source), place.host);
  node.is_group = opens;
  node.closed = !opens;
  return Append(std::move(place), std::move(node));
}

Result<NodeId> LiveTimeline::AddKernel(Place place, std::shared_ptr<trace::CtaSource> source) {
  return AppendKernel(std::move(place), std::move(source), false);
}

NodeId LiveTimeline::AddCopy(Place place, CopyDirection direction, std::uint64_t bytes) {
  Node node;
  node.kind = kCopyKinds[static_cast<std::size_t>(direction)];
  node.bytes = bytes;
  return Append(std::move(place), std::move(node));
}

NodeId LiveTimeline::AddMarker(Place place) { return Append(std::move(place), {}); }

NodeId LiveTimeline::OpenGroup(Place place) {
  Node node;
  node.is_group = true;
  node.closed = false;
  return Append(std::move(place), std::move(node));
}

Result<NodeId> LiveTimeline::OpenKernel(Place place, std::shared_ptr<trace::CtaSource> source) {
  return AppendKernel(std::move(place), std::move(source), true);
}

/// With the lock held. The groups around it count it once.
void LiveTimeline::AddOpen(Node& node) {
  for (Node* one = &node; one->open++ == 0;) {
    const auto around = nodes_.find(one->place.group);
    if (around == nodes_.end()) return;
    one = &around->second;
  }
}

void LiveTimeline::TakeOpen(Node& node) {
  for (Node* one = &node; --one->open == 0;) {
    const auto around = nodes_.find(one->place.group);
    if (around == nodes_.end()) return;
    one = &around->second;
  }
}

/// With the lock held: nothing more comes of it.
void LiveTimeline::Close(Node& node) {
  node.closed = true;
  TakeOpen(node);
  ++version_;
  work_.notify_one();
}

void LiveTimeline::CloseGroup(NodeId group) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(group);
  if (found != nodes_.end() && !found->second.closed) Close(found->second);
}

NodeId LiveTimeline::AddUndecided(Place place) {
  Node node;
  node.kind = WorkKind::kKernel;
  node.closed = false;
  return Append(std::move(place), std::move(node));
}

Status LiveTimeline::Decide(NodeId kernel, Tracking tracking, std::shared_ptr<trace::CtaSource> source) {
  const Status fits = source != nullptr ? CheckKernel(*source) : Status();
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(kernel);
  if (found == nodes_.end() || found->second.closed) return fits;
  Node& node = found->second;
  if (source != nullptr && fits.ok()) {
    node.source = Watched(std::move(source), node.place.host);
    node.place.use.tracking = tracking;
  }
  Close(node);
  return fits;
}

// ---- what there is to see

std::optional<Cycle> LiveTimeline::EndOf(NodeId node) const {
  const std::lock_guard lock(mutex_);
  const Host* const host = node != 0 ? Find(HostOf(node)) : nullptr;
  if (host == nullptr || !host->ends.known(IndexOf(node)) || !Done(node)) return std::nullopt;
  return End(node);
}

Cycle LiveTimeline::LastEnd(HostId id) const {
  const std::lock_guard lock(mutex_);
  const Host* const host = Find(id);
  return host != nullptr ? host->ends.last() : 0;
}

LiveTimeline::Open LiveTimeline::OpenOf(HostId id) const {
  const std::lock_guard lock(mutex_);
  const Host* const host = Find(id);
  return host != nullptr ? Open{.works = host->running, .waits = host->waits} : Open{};
}

Status LiveTimeline::Finish() {
  Lock lock(mutex_);
  finishing_ = true;
  Look();
  // Reached: what is left in the memory system when the last work has ended is simulated, too, whoever waited for it.
  changed_.wait(lock,
                [&] { return (nodes_.empty() && work_of_.empty() && reached_ == version_) || !problem_.empty(); });
  if (!problem_.empty()) return Error{problem_};
  return {};
}

double LiveTimeline::Nanoseconds(Cycle cycles) const {
  return static_cast<double>(cycles) * 1e3 / engine_->parameters().timing().clock.sm_mhz;
}

KernelTable LiveTimeline::Kernels() const {
  const std::lock_guard lock(mutex_);
  return table_;
}

Counters LiveTimeline::counters() const {
  const std::lock_guard lock(mutex_);
  return engine_->counters();
}

Cycle LiveTimeline::end() const {
  const std::lock_guard lock(mutex_);
  Cycle end = last_end_;
  for (const auto& [id, host] : hosts_) end = std::max(end, host.clock);
  return end;
}

LiveTimeline::Kept LiveTimeline::kept() const {
  const std::lock_guard lock(mutex_);
  Kept kept{.works = works_kept_, .ends = 0, .streams = stream_of_.size(), .hosts = hosts_.size()};
  for (const auto& [id, host] : hosts_) kept.ends += host.ends.kept();
  return kept;
}

}  // namespace gridloom::timing
