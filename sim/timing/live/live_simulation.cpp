// The simulation of a live timeline: what the device gets and when, how far it may be simulated, what came of it.
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "sim/timing/live/live_timeline.h"

namespace gridloom::timing {
namespace {

/// Streams of one host that lie idle and keep their numbers.
constexpr std::size_t kIdleStreams = 1024;

}  // namespace

Cycle LiveTimeline::Horizon() const {
  Cycle horizon = kNever;
  if (finishing_) return horizon;
  for (const auto& [id, host] : hosts_) {
    if (host.active()) horizon = std::min(horizon, host.clock);
  }
  return horizon;
}

/// No other host can still submit something that comes before.
bool LiveTimeline::Safe(HostId of, Cycle submitted) const {
  if (finishing_) return true;
  return std::ranges::all_of(hosts_, [&](const auto& entry) {
    const auto& [id, host] = entry;
    return id == of || !host.active() || submitted < host.clock || (submitted == host.clock && of < id);
  });
}

// ---- what the device gets

Result<Cycle> LiveTimeline::Feed() {
  undecided_.reset();
  while (true) {
    HostId from = 0;
    Host* first = nullptr;
    for (auto& [id, host] : hosts_) {
      if (host.calls.empty()) continue;
      if (first != nullptr && nodes_.at(host.calls.front()).submitted >= nodes_.at(first->calls.front()).submitted)
        continue;
      first = &host;
      from = id;
    }
    if (first == nullptr) return kNever;
    const NodeId id = first->calls.front();
    const Node& node = nodes_.at(id);
    const bool known = node.open == 0 || finishing_;  // everything that belongs to it
    if (!known && node.kind == WorkKind::kKernel && !node.is_group) undecided_ = from;
    if (!known || !Safe(from, node.submitted)) return node.submitted;
    first->calls.pop_front();
    GL_TRY_STATUS(FeedNode(id, StreamOf(node.place)));
  }
}

std::uint32_t LiveTimeline::StreamOf(const Place& place) {
  const auto [stream, added] = streams_.try_emplace({place.host, place.stream}, 0);
  if (!added) return stream->second;
  Host& host = hosts_.at(place.host);
  const auto idle = IdleStream(host);
  stream->second = idle ? *idle : NewStream({.host = place.host, .of_one = false, .name = place.stream, .works = 0});
  stream_of_.at(stream->second).name = place.stream;
  return stream->second;
}

/// The number of a stream in which nothing is left to do, where the host has many of them: it means another stream from
/// now on.
std::optional<std::uint32_t> LiveTimeline::IdleStream(Host& host) {
  while (host.idle_streams.size() > kIdleStreams) {
    const std::uint32_t number = host.idle_streams.front();
    host.idle_streams.pop_front();
    const auto stream = stream_of_.find(number);
    if (stream == stream_of_.end()) continue;
    stream->second.listed = false;
    if (stream->second.works != 0) continue;
    streams_.erase({stream->second.host, stream->second.name});
    return number;
  }
  return std::nullopt;
}

std::uint32_t LiveTimeline::NewStream(Stream stream) {
  stream_of_.emplace(streams_given_, stream);
  return streams_given_++;
}

std::vector<WorkId> LiveTimeline::WorksBefore(const Node& node) const {
  std::vector<WorkId> works;
  for (const NodeId before : node.place.after) {
    // One that has ended did so before this one was submitted, or the host would have had to know it in advance.
    if (const auto given = work_of_.find(before); given != work_of_.end()) works.push_back(given->second.work);
  }
  return works;
}

/// The work, and if it is a group all that is in it: groups may lie in each other ten thousand times.
Status LiveTimeline::FeedNode(NodeId id, std::uint32_t stream) {
  GL_TRY(first, BeginNode(id, stream, {}, {}));
  if (first.node.members.empty()) {
    GL_TRY(work, EndNode(first));
    static_cast<void>(work);
    return {};
  }
  std::vector<Feeding> open;  // each in the one before it
  open.push_back(std::move(first));
  while (true) {
    if (open.back().next < open.back().node.members.size()) {
      GL_TRY(member, BeginMember(open.back()));
      open.push_back(std::move(member));
      continue;
    }
    GL_TRY(work, EndNode(open.back()));
    const bool last = open.back().node.place.rank == Place::kLastRank;
    open.pop_back();
    if (open.empty()) return {};
    std::vector<WorkId>& ends_after = open.back().end.after;
    if (last) ends_after.clear();  // it ends after all of them: whoever waits for it waits for them
    ends_after.push_back(work);
  }
}

Result<LiveTimeline::Feeding> LiveTimeline::BeginNode(NodeId id, std::uint32_t stream, const std::vector<WorkId>& after,
                                                      LaunchedBy by) {
  Feeding feeding{.id = id, .node = std::move(nodes_.at(id)), .stream = stream};
  nodes_.erase(id);
  Node& node = feeding.node;
  WorkOrder order;
  order.stream = stream;
  order.submitted = std::max(node.submitted, engine_->now());
  order.after = WorksBefore(node);
  order.after.insert(order.after.end(), after.begin(), after.end());
  feeding.end = {.stream = stream, .submitted = order.submitted, .after = {}};
  ++stream_of_.at(stream).works;
  GL_TRY(begin, FeedBegin(std::move(order), node, by));
  feeding.begin = begin;
  if (node.place.is_partner) partners_[id] = begin;
  if (node.members.empty()) return feeding;
  ++stream_of_.at(stream).works;
  std::ranges::stable_sort(node.members, {}, [&](NodeId member) { return nodes_.at(member).place.rank; });
  return feeding;
}

/// The next one of a group.
Result<LiveTimeline::Feeding> LiveTimeline::BeginMember(Feeding& group) {
  const NodeId id = group.node.members[group.next++];
  const Node& member = nodes_.at(id);
  const bool launches = group.node.kind == WorkKind::kKernel;
  const bool last = member.place.rank == Place::kLastRank;
  const bool called =
      launches && !last && member.kind == WorkKind::kKernel && member.source != nullptr && member.place.number != 0;
  // Works of a group are ordered by their dependencies alone, so each has a stream to itself.
  const std::uint32_t stream = NewStream({.host = group.node.place.host, .of_one = true, .name = 0, .works = 0});
  std::vector<WorkId> after;
  if (!called) after.push_back(group.begin);
  if (last) after.insert(after.end(), group.end.after.begin(), group.end.after.end());
  return BeginNode(id, stream, after,
                   called ? LaunchedBy{.parent = group.begin, .number = member.place.number} : LaunchedBy{});
}

/// All that is in it has been given. What has ended with it: its begin, or what ends when all of them have.
Result<WorkId> LiveTimeline::EndNode(Feeding& feeding) {
  WorkId last = feeding.begin;
  if (!feeding.node.members.empty()) {
    GL_TRY(whole, engine_->Add(MarkerWork{std::move(feeding.end)}));
    last = whole;
  }
  work_of_[feeding.id] = {.begin = feeding.begin, .work = last, .waits = feeding.node.place.after.size()};
  node_of_[last] = feeding.id;
  if (waiters_.contains(feeding.id)) awaited_.insert(last);
  return last;
}

Result<WorkId> LiveTimeline::FeedBegin(WorkOrder order, Node& node, LaunchedBy by) {
  if (node.kind == WorkKind::kKernel && node.source != nullptr) return FeedKernel(std::move(order), node, by);
  const auto* const kind = std::ranges::find(kCopyKinds, node.kind);
  if (kind == std::end(kCopyKinds)) return engine_->Add(MarkerWork{std::move(order)});
  const auto direction = static_cast<CopyDirection>(kind - std::begin(kCopyKinds));
  return engine_->Add(CopyWork{
      .order = std::move(order), .direction = direction, .bytes = node.bytes, .use = UseOf(node.place, false)});
}

MemoryUse LiveTimeline::UseOf(const Place& place, bool kernel) {
  MemoryUse use = place.use;
  use.address_space = place.host;
  use.reuses = ReusesOf(place);
  const auto partner = partners_.find(place.partner);
  if (partner == partners_.end()) return use;
  use.partner = partner->second;
  if (kernel) partners_.erase(partner);  // nobody else has that profiler
  return use;
}

/// Of works that may not have ended.
std::shared_ptr<const std::vector<HostReuse>> LiveTimeline::ReusesOf(const Place& place) const {
  std::vector<HostReuse> reuses;
  for (const NodeReuse& reuse : place.reuses) {
    if (const auto partner = partners_.find(reuse.earlier); partner != partners_.end()) {
      reuses.push_back({.earlier = partner->second, .begin = reuse.begin});
    } else if (const auto given = work_of_.find(reuse.earlier); given != work_of_.end()) {
      reuses.push_back({.earlier = given->second.work, .begin = reuse.begin});
    }
  }
  return reuses.empty() ? nullptr : std::make_shared<const std::vector<HostReuse>>(std::move(reuses));
}

Result<WorkId> LiveTimeline::FeedKernel(WorkOrder order, Node& node, LaunchedBy by) {
  std::shared_ptr<ProfilingPolicy::Source> profiled;
  if (profiling_ != nullptr) node.source = profiled = std::make_shared<ProfilingPolicy::Source>(std::move(node.source));
  GL_TRY(work, engine_->Add(KernelWork{.order = std::move(order),
                                       .source = std::move(node.source),
                                       .profile = node.place.profile,
                                       .owner = node.place.owner,
                                       .address_space = node.place.host,
                                       .use = UseOf(node.place, true),
                                       .launched_by = by}));
  if (profiled != nullptr) profiling_->Expect(work, std::move(profiled));
  return work;
}

// ---- what came of it

void LiveTimeline::Fail(const std::string& why) {
  if (problem_.empty()) problem_ = why;
  failed_.store(true, std::memory_order_release);
  for (const auto& [id, host] : hosts_) AnswerAllOf(id);
  changed_.notify_all();
}

/// While the engine runs.
void LiveTimeline::OnFinished(WorkId id, const WorkResult& work, const Counters& during) {
  finished_.emplace_back(id, work, during);
  ++progress_;
  if (awaited_.erase(id) != 0) stops_ = true;
  if (left_.empty()) return;
  const auto node = node_of_.find(id);
  if (node == node_of_.end()) return;
  const auto host = left_.find(HostOf(node->second));
  if (host != left_.end() && --host->second == 0) stops_ = true;
}

bool LiveTimeline::Collect() {
  bool awaited = false;
  for (const auto& [work, result, during] : finished_) {
    if (options_.keep_table) table_.Add(result, during);
    if (profiling_ != nullptr) profiling_->Forget(work);
    // Streams of proposed parts, which launch kernels themselves, are no host's.
    const auto owner = stream_of_.find(result.stream);
    if (options_.on_ended && owner != stream_of_.end()) options_.on_ended(owner->second.host, result, during);
    last_end_ = std::max(last_end_, result.ended);
    if (owner != stream_of_.end()) CollectStream(result.stream);
    const auto found = node_of_.find(work);
    if (found == node_of_.end()) continue;  // a group's begin
    const NodeId node = found->second;
    node_of_.erase(found);
    SetEnd(node, result.ended, work_of_.at(node).waits);
    work_of_.erase(node);
    awaited |= TellWaiters(node, result.ended);
    Forget(HostOf(node));
  }
  finished_.clear();
  for (auto& [id, host] : hosts_) {
    if (host.ends.has_complete() && host.clock >= answer_) host.ends.LetGo(host.clock - answer_);
  }
  now_ = engine_->now();
  works_kept_ = engine_->kept();
  return awaited;
}

/// A work of the stream has ended.
void LiveTimeline::CollectStream(std::uint32_t number) {
  Stream& stream = stream_of_.at(number);
  if (--stream.works != 0) return;
  if (stream.of_one) {
    stream_of_.erase(number);
  } else if (!stream.listed) {
    stream.listed = true;
    hosts_.at(stream.host).idle_streams.push_back(number);
  }
}

// ---- the loop

/// What runs on the device of hosts that were dropped ends.
void LiveTimeline::CancelDropped() {
  for (const HostId host : std::exchange(dropped_, {})) {
    for (const auto& [node, given] : work_of_) {
      if (HostOf(node) == host) engine_->Cancel(given.begin);
    }
  }
}

/// When the engine has to stop, so that hosts hear of what they wait for.
void LiveTimeline::Prepare() {
  for (const NodeId node : asked_for_) {
    if (const auto given = work_of_.find(node); given != work_of_.end()) awaited_.insert(given->second.work);
  }
  asked_for_.clear();
  left_.clear();
  for (const QuestionId id : for_all_) {
    const HostId host = questions_.at(id).host;
    left_[host] = hosts_.at(host).running;
  }
  stops_ = false;
}

void LiveTimeline::Main() {
  if (options_.niceness != 0) static_cast<void>(setpriority(PRIO_PROCESS, 0, options_.niceness));  // of this thread
  Lock lock(mutex_);
  while (!stop_) {
    look_ = false;
    const std::uint64_t version = version_;
    CancelDropped();
    const Result<Cycle> fed = Feed();
    if (!fed.ok()) {
      Fail(fed.error().message);
      break;
    }
    const Cycle horizon = Horizon(), limit = std::min(*fed, horizon);
    Prepare();
    lock.unlock();
    const Status status = engine_->RunUntil(limit, [&] {
      now_.store(engine_->now(), std::memory_order_relaxed);
      return interrupt_ || look_ || stops_;
    });
    lock.lock();
    if (!status.ok()) {
      Fail(status.error().message);
      break;
    }
    const bool looks = look_ || stops_;  // it stopped before it had come as far as it may
    const bool woke = Collect() || looks;
    if (!woke) {
      reached_ = version;
      AnswerReached(version, undecided_ ? limit : horizon);
      if (version == version_ && limit == kNever && !engine_->all_done()) {
        Fail("the device stands still: nothing that it was given can begin");
        break;
      }
    }
    changed_.notify_all();
    if (!woke) work_.wait(lock, [&] { return stop_ || look_ || version != version_; });
  }
  changed_.notify_all();
}

}  // namespace gridloom::timing
