#include "sim/timing/live/live_timeline.h"

#include <algorithm>
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

Result<std::unique_ptr<LiveTimeline>> LiveTimeline::Create(const sim::DeviceSpec& device, std::unique_ptr<policy::Policy> policy,
                                                           Options options) {
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
    self->finished_.emplace_back(id, work, during);
    ++self->progress_;
  };
  GL_TRY(engine, Engine::Create(device, *timeline->policy_, engine_options));
  timeline->engine_ = std::move(engine);
  const Parameters& parameters = timeline->engine_->parameters();
  timeline->call_ = CyclesOf(parameters.timing().host.call_ns, parameters.timing().clock.sm_mhz);
  // The device is simulated in windows: an answer takes at least as long as the one in which a work ended.
  timeline->answer_ = std::max(CyclesOf(parameters.timing().host.sync_ns, parameters.timing().clock.sm_mhz), parameters.window);
  timeline->thread_ = std::thread([self = timeline.get()] { self->Main(); });
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

// ---- hosts --------------------------------------------------------------------------------------------------------------

HostId LiveTimeline::AddHost() {
  const std::lock_guard lock(mutex_);
  Host host;
  host.clock = now_;
  hosts_.push_back(std::move(host));
  return static_cast<HostId>(hosts_.size() - 1);
}

void LiveTimeline::RemoveHost(HostId host) {
  const std::lock_guard lock(mutex_);
  hosts_[host].gone = true;
  ++version_;
  work_.notify_one();
  changed_.notify_all();
}

void LiveTimeline::DropHost(HostId host) {
  {
    const std::lock_guard lock(mutex_);
    for (const NodeId call : std::exchange(hosts_[host].calls, {})) DropNode(call);
    hosts_[host].dropped = true;
    Forget(host);
  }
  RemoveHost(host);
}

/// It, and what belongs to it, ends now without having begun.
void LiveTimeline::DropNode(NodeId id) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  const Node node = std::move(found->second);
  nodes_.erase(found);
  SetEnd(id, now_);
  for (const NodeId member : node.members) DropNode(member);
}

void LiveTimeline::SetEnd(NodeId node, Cycle end) {
  Host& host = hosts_[HostOf(node)];
  host.ends[IndexOf(node)] = end;
  --host.running;
}

/// Once nothing of the host's runs any more.
void LiveTimeline::Forget(HostId host) {
  if (!hosts_[host].forgotten()) return;
  std::vector<Cycle>().swap(hosts_[host].ends);
  const auto first = streams_.lower_bound({host, 0}), last = streams_.lower_bound({host + 1, 0});
  for (auto stream = first; stream != last; ++stream) stream_of_.erase(stream->second);
  streams_.erase(first, last);
}

void LiveTimeline::SetAway(HostId host, bool away) {
  const std::lock_guard lock(mutex_);
  hosts_[host].away = away;
  if (!away) hosts_[host].clock = std::max(hosts_[host].clock, now_);
  ++version_;
  work_.notify_one();
}

Cycle LiveTimeline::HostTime(HostId host) const {
  const std::lock_guard lock(mutex_);
  return hosts_[host].clock;
}

void LiveTimeline::Advance(HostId host, Cycle cycles) {
  const std::lock_guard lock(mutex_);
  hosts_[host].clock += cycles;
  ++version_;
  work_.notify_one();
}

// ---- works --------------------------------------------------------------------------------------------------------------

NodeId LiveTimeline::Append(Place place, Node node) {
  const std::lock_guard lock(mutex_);
  Host& host = hosts_[place.host];
  GL_CHECK(!host.dropped, "a host that was dropped submits nothing");
  host.ends.push_back(kNever);
  const NodeId id = NodeOf(place.host, host.ends.size());
  if (!problem_.empty()) return id;
  ++host.running;
  const auto group = place.group == 0 ? nodes_.end() : nodes_.find(place.group);
  if (group != nodes_.end()) {
    node.submitted = group->second.submitted;
    group->second.members.push_back(id);
  } else {
    host.clock += call_;
    node.submitted = host.clock;
    host.calls.push_back(id);
  }
  node.place = std::move(place);
  nodes_.emplace(id, std::move(node));
  ++version_;
  work_.notify_one();
  return id;
}

Status LiveTimeline::CheckKernel(const trace::CtaSource& source) const {
  const auto needs = NeedsOf(source.shape(), engine_->parameters().device);
  if (!needs.ok()) return Error{"kernel " + source.code().name + ": " + needs.error().message};
  return trace::ValidateCode(source.code());
}

Result<NodeId> LiveTimeline::AddKernel(Place place, std::shared_ptr<trace::CtaSource> source) {
  GL_TRY_STATUS(CheckKernel(*source));
  Node node;
  node.kind = WorkKind::kKernel;
  node.source = std::make_shared<WatchedSource>(std::move(source), place.host, loading_, progress_);
  return Append(std::move(place), std::move(node));
}

NodeId LiveTimeline::AddCopy(Place place, CopyDirection direction, std::uint64_t bytes) {
  constexpr WorkKind kKinds[] = {WorkKind::kCopyToDevice, WorkKind::kCopyToHost, WorkKind::kCopyOnDevice, WorkKind::kFill};
  Node node;
  node.kind = kKinds[static_cast<std::size_t>(direction)];
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
  GL_TRY_STATUS(CheckKernel(*source));
  Node node;
  node.kind = WorkKind::kKernel;
  node.source = std::make_shared<WatchedSource>(std::move(source), place.host, loading_, progress_);
  node.is_group = true;
  node.closed = false;
  return Append(std::move(place), std::move(node));
}

void LiveTimeline::CloseGroup(NodeId group) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(group);
  if (found == nodes_.end()) return;
  found->second.closed = true;
  ++version_;
  work_.notify_one();
}

// ---- answers ------------------------------------------------------------------------------------------------------------

bool LiveTimeline::WaitFor(HostId host, std::span<const NodeId> nodes) {
  Lock lock(mutex_);
  hosts_[host].clock += call_;
  bool all = true;
  for (const NodeId node : nodes) all = WaitForOne(host, node, lock) && all;
  return all;
}

bool LiveTimeline::WaitForOne(HostId host, NodeId node, Lock& lock) {
  if (node == 0) return true;
  if (Done(node)) {
    hosts_[host].clock = std::max(hosts_[host].clock, End(node) + answer_);
    return true;
  }
  hosts_[host].waits.push_back(node);
  ++version_;
  work_.notify_one();
  while (!Done(node) && problem_.empty() && !hosts_[host].gone) {
    const std::uint64_t progress = progress_;
    const auto patience = std::chrono::milliseconds(options_.patience_ms);
    if (changed_.wait_for(lock, patience) == std::cv_status::timeout && !Done(node) && Stalled(host, progress)) break;
  }
  if (Done(node)) return true;  // Collect has set the clock
  auto& waits = hosts_[host].waits;
  if (const auto mine = std::ranges::find(waits, node); mine != waits.end()) waits.erase(mine);
  return false;
}

LiveTimeline::Answer LiveTimeline::Poll(HostId host, std::span<const NodeId> nodes) {
  Lock lock(mutex_);
  hosts_[host].clock += call_;
  const Cycle clock = hosts_[host].clock;
  ++version_;
  work_.notify_one();
  const auto done = [&] { return std::ranges::all_of(nodes, [&](NodeId node) { return Done(node); }); };
  std::uint64_t progress = progress_;
  while (!done() && (HeldBack(host) || reached_ != version_) && problem_.empty() && !hosts_[host].gone) {
    const auto patience = std::chrono::milliseconds(options_.patience_ms);
    if (changed_.wait_for(lock, patience) == std::cv_status::timeout && Stalled(host, progress)) return Answer::kUnknown;
    progress = progress_;
  }
  if (!problem_.empty()) return Answer::kUnknown;
  const bool by_now = std::ranges::all_of(nodes, [&](NodeId node) { return node == 0 || (Done(node) && End(node) <= clock); });
  return by_now ? Answer::kYes : Answer::kNo;
}

std::optional<Cycle> LiveTimeline::EndOf(NodeId node) const {
  const std::lock_guard lock(mutex_);
  if (node == 0 || hosts_[HostOf(node)].forgotten() || !Done(node)) return std::nullopt;
  return End(node);
}

Status LiveTimeline::Finish() {
  Lock lock(mutex_);
  finishing_ = true;
  ++version_;
  work_.notify_one();
  // Reached: what is left in the memory system when the last work has ended is simulated, too, whoever waited for it.
  changed_.wait(lock, [&] { return (nodes_.empty() && work_of_.empty() && reached_ == version_) || !problem_.empty(); });
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

Cycle LiveTimeline::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

Cycle LiveTimeline::end() const {
  const std::lock_guard lock(mutex_);
  Cycle end = last_end_;
  for (const Host& host : hosts_) end = std::max(end, host.clock);
  return end;
}

LiveTimeline::Kept LiveTimeline::kept() const {
  const std::lock_guard lock(mutex_);
  Kept kept{.works = works_kept_, .ends = 0, .streams = stream_of_.size()};
  for (const Host& host : hosts_) kept.ends += host.ends.size();
  return kept;
}

std::string LiveTimeline::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

// ---- the simulation -----------------------------------------------------------------------------------------------------

Cycle LiveTimeline::Horizon() const {
  Cycle horizon = kNever;
  if (finishing_) return horizon;
  for (const Host& host : hosts_) {
    if (!host.gone && !host.away && host.waits.empty()) horizon = std::min(horizon, host.clock);
  }
  return horizon;
}

/// No other host can still submit something that comes before.
bool LiveTimeline::Safe(const Host& of, Cycle submitted) const {
  if (finishing_) return true;
  return std::ranges::all_of(hosts_, [&](const Host& host) {
    if (&host == &of || host.gone || host.away || !host.waits.empty()) return true;
    return submitted < host.clock || (submitted == host.clock && &of < &host);
  });
}

bool LiveTimeline::HeldBack(HostId of) const {
  if (finishing_) return false;
  return std::ranges::any_of(
      hosts_, [&](const Host& host) { return !host.gone && !host.away && host.waits.empty() && host.clock < hosts_[of].clock; });
}

bool LiveTimeline::Known(const Node& node) const {
  if (finishing_) return true;
  return node.closed && std::ranges::all_of(node.members, [&](NodeId member) { return Known(nodes_.at(member)); });
}

Result<Cycle> LiveTimeline::Feed() {
  while (true) {
    Host* first = nullptr;
    for (Host& host : hosts_) {
      if (host.calls.empty()) continue;
      if (first == nullptr || nodes_.at(host.calls.front()).submitted < nodes_.at(first->calls.front()).submitted) first = &host;
    }
    if (first == nullptr) return kNever;
    const NodeId id = first->calls.front();
    const Node& node = nodes_.at(id);
    if (!Safe(*first, node.submitted)) return node.submitted;
    if (!Known(node)) return node.submitted;
    first->calls.pop_front();
    GL_TRY(work, FeedNode(id, StreamOf(node.place), {}));
    static_cast<void>(work);
  }
}

std::uint32_t LiveTimeline::StreamOf(const Place& place) {
  const auto [stream, added] = streams_.try_emplace({place.host, place.stream}, 0);
  if (added) stream->second = NewStream({.host = place.host, .of_one = false});
  return stream->second;
}

std::uint32_t LiveTimeline::NewStream(Stream stream) {
  stream_of_.emplace(streams_given_, stream);
  return streams_given_++;
}

std::vector<WorkId> LiveTimeline::WorksBefore(const Node& node) const {
  std::vector<WorkId> works;
  for (const NodeId before : node.place.after) {
    // One that has ended did so before this one was submitted, or the host would have had to know it in advance.
    if (const auto work = work_of_.find(before); work != work_of_.end()) works.push_back(work->second);
  }
  return works;
}

Result<WorkId> LiveTimeline::FeedNode(NodeId id, std::uint32_t stream, const std::vector<WorkId>& after) {
  Node node = std::move(nodes_.at(id));
  nodes_.erase(id);
  WorkOrder order;
  order.stream = stream;
  order.submitted = std::max(node.submitted, engine_->now());
  order.after = WorksBefore(node);
  order.after.insert(order.after.end(), after.begin(), after.end());
  WorkOrder end_order{.stream = stream, .submitted = order.submitted, .after = {}};
  Result<WorkId> begin = WorkId{0};
  switch (node.kind) {
    case WorkKind::kKernel: begin = FeedKernel(std::move(order), node); break;
    case WorkKind::kCopyToDevice: begin = engine_->Add(CopyWork{std::move(order), CopyDirection::kToDevice, node.bytes}); break;
    case WorkKind::kCopyToHost: begin = engine_->Add(CopyWork{std::move(order), CopyDirection::kToHost, node.bytes}); break;
    case WorkKind::kCopyOnDevice: begin = engine_->Add(CopyWork{std::move(order), CopyDirection::kOnDevice, node.bytes}); break;
    case WorkKind::kFill: begin = engine_->Add(CopyWork{std::move(order), CopyDirection::kFill, node.bytes}); break;
    case WorkKind::kMarker: begin = engine_->Add(MarkerWork{std::move(order)}); break;
  }
  if (!begin.ok()) return begin;
  WorkId last = *begin;
  if (!node.members.empty()) {
    std::ranges::stable_sort(node.members, {}, [&](NodeId member) { return nodes_.at(member).place.rank; });
    std::vector<WorkId> before = {*begin};
    for (const NodeId member : node.members) {
      if (nodes_.at(member).place.rank == Place::kLastRank) before.insert(before.end(), end_order.after.begin(), end_order.after.end());
      // Works of a group are ordered by their dependencies alone, so each has a stream to itself.
      GL_TRY(work, FeedNode(member, NewStream({.host = node.place.host, .of_one = true}), before));
      end_order.after.push_back(work);
    }
    GL_TRY(end, engine_->Add(MarkerWork{std::move(end_order)}));
    last = end;
  }
  work_of_[id] = last;
  node_of_[last] = id;
  return last;
}

Result<WorkId> LiveTimeline::FeedKernel(WorkOrder order, Node& node) {
  std::shared_ptr<ProfilingPolicy::Source> profiled;
  if (profiling_ != nullptr) node.source = profiled = std::make_shared<ProfilingPolicy::Source>(std::move(node.source));
  GL_TRY(work, engine_->Add(KernelWork{.order = std::move(order),
                                       .source = std::move(node.source),
                                       .profile = node.place.profile,
                                       .owner = node.place.owner,
                                       .address_space = node.place.host}));
  if (profiled != nullptr) profiling_->Expect(work, std::move(profiled));
  return work;
}

void LiveTimeline::Fail(const std::string& why) {
  if (problem_.empty()) problem_ = why;
  changed_.notify_all();
}

bool LiveTimeline::Collect() {
  bool awaited = false;
  for (const auto& [work, result, during] : finished_) {
    table_.Add(result, during);
    if (profiling_ != nullptr) profiling_->Forget(work);
    // Streams of proposed parts, which launch kernels themselves, are no host's.
    const auto owner = stream_of_.find(result.stream);
    if (options_.on_ended && owner != stream_of_.end()) options_.on_ended(owner->second.host, result, during);
    last_end_ = std::max(last_end_, result.ended);
    const auto found = node_of_.find(work);
    if (found == node_of_.end()) continue;  // a group's begin
    const NodeId node = found->second;
    node_of_.erase(found);
    work_of_.erase(node);
    SetEnd(node, result.ended);
    if (const auto stream = stream_of_.find(result.stream); stream->second.of_one) stream_of_.erase(stream);
    for (Host& host : hosts_) {
      if (std::erase(host.waits, node) == 0) continue;
      host.clock = std::max(host.clock, result.ended + answer_);
      awaited = true;
    }
    Forget(HostOf(node));
  }
  finished_.clear();
  now_ = engine_->now();
  works_kept_ = engine_->kept();
  return awaited;
}

void LiveTimeline::Main() {
  Lock lock(mutex_);
  while (!stop_) {
    const std::uint64_t version = version_;
    const Result<Cycle> fed = Feed();
    if (!fed.ok()) {
      Fail(fed.error().message);
      break;
    }
    const Cycle limit = std::min(*fed, Horizon());
    std::vector<WorkId> awaited;
    for (const Host& host : hosts_) {
      for (const NodeId node : host.waits) {
        if (const auto work = work_of_.find(node); work != work_of_.end()) awaited.push_back(work->second);
      }
    }
    lock.unlock();
    const Status status = engine_->RunUntil(
        limit, [&] { return interrupt_ || std::ranges::any_of(awaited, [&](WorkId work) { return engine_->done(work); }); });
    lock.lock();
    if (!status.ok()) {
      Fail(status.error().message);
      break;
    }
    const bool woke = Collect();
    if (!woke && version == version_) {
      reached_ = version;
      if (limit == kNever && !engine_->all_done()) {
        Fail("the device stands still: nothing that it was given can begin");
        break;
      }
    }
    changed_.notify_all();
    if (!woke) work_.wait(lock, [&] { return stop_ || version != version_; });
  }
  changed_.notify_all();
}

}  // namespace gridloom::timing
