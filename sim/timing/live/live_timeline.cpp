#include "sim/timing/live/live_timeline.h"

#include <algorithm>
#include <utility>

#include "rewriter/support/check.h"

namespace gridloom::timing {
namespace {

PendingNode KernelNode(std::shared_ptr<trace::CtaSource> source, bool opens) {
  PendingNode node;
  node.kind = WorkKind::kKernel;
  node.source = std::move(source);
  node.is_group = opens;
  node.closed = !opens;
  return node;
}

}  // namespace

Result<std::unique_ptr<LiveTimeline>> LiveTimeline::Create(const sim::DeviceSpec& device,
                                                           std::unique_ptr<policy::Policy> policy, Options options) {
  std::unique_ptr<LiveTimeline> timeline(new LiveTimeline(std::move(options)));
  GL_TRY_STATUS(timeline->simulation_.Start(device, std::move(policy)));
  return timeline;
}

// ---- hosts

HostId LiveTimeline::AddHost() {
  const std::lock_guard lock(mutex_);
  const HostId id = hosts_.Add(signals_.now());
  signals_.Look();
  return id;
}

void LiveTimeline::RemoveHost(HostId id) {
  const std::lock_guard lock(mutex_);
  LiveHost* const host = hosts_.Find(id);
  if (host == nullptr) return;
  host->gone = true;
  questions_.AnswerAllOf(id);
  signals_.Changed();
  signals_.TellHosts();
}

void LiveTimeline::DropHost(HostId id) {
  RemoveHost(id);
  const std::lock_guard lock(mutex_);
  simulation_.Drop(id);
}

void LiveTimeline::SetAway(HostId id, bool away) {
  const std::lock_guard lock(mutex_);
  LiveHost* const host = hosts_.Find(id);
  if (host == nullptr) return;
  host->away = away;
  if (!away) host->clock = std::max<Cycle>(host->clock, signals_.now());
  signals_.Look();
}

Cycle LiveTimeline::HostTime(HostId id) const {
  const std::lock_guard lock(mutex_);
  const LiveHost* const host = hosts_.Find(id);
  return host != nullptr ? host->clock : 0;
}

void LiveTimeline::Advance(HostId id, Cycle cycles) {
  const std::lock_guard lock(mutex_);
  hosts_.at(id).clock += cycles;
  signals_.Changed();
}

// ---- works

NodeId LiveTimeline::Append(Place place, PendingNode node) {
  const std::lock_guard lock(mutex_);
  LiveHost& host = hosts_.at(place.host);
  GL_CHECK(!host.dropped, "a host that was dropped submits nothing");
  const NodeId id = hosts_.AddWork(place.host, node.kind == WorkKind::kMarker && !node.is_group);
  if (signals_.failed()) return id;
  ++host.running;
  host.waits += place.after.size();
  PendingNode* const group = place.group == 0 ? nullptr : simulation_.nodes().Find(place.group);
  if (group != nullptr) {
    node.submitted = group->submitted;
    group->members.push_back(id);
  } else {
    const bool copies = node.kind != WorkKind::kKernel && node.kind != WorkKind::kMarker;
    host.clock += copies ? hosts_.costs().copy_call : hosts_.costs().call;
    node.submitted = host.clock;
    host.calls.push_back(id);
  }
  node.place = std::move(place);
  simulation_.nodes().Add(id, std::move(node));
  signals_.Changed();
  return id;
}

Result<NodeId> LiveTimeline::AddKernel(Place place, std::shared_ptr<trace::CtaSource> source) {
  GL_TRY_STATUS(simulation_.CheckKernel(*source));
  const HostId host = place.host;
  return Append(std::move(place), KernelNode(simulation_.Watched(std::move(source), host), false));
}

NodeId LiveTimeline::AddCopy(Place place, CopyDirection direction, std::uint64_t bytes) {
  PendingNode node;
  node.kind = kCopyKinds[static_cast<std::size_t>(direction)];
  node.bytes = bytes;
  return Append(std::move(place), std::move(node));
}

NodeId LiveTimeline::AddMarker(Place place) { return Append(std::move(place), {}); }

NodeId LiveTimeline::OpenGroup(Place place) {
  PendingNode node;
  node.is_group = true;
  node.closed = false;
  return Append(std::move(place), std::move(node));
}

Result<NodeId> LiveTimeline::OpenKernel(Place place, std::shared_ptr<trace::CtaSource> source) {
  GL_TRY_STATUS(simulation_.CheckKernel(*source));
  const HostId host = place.host;
  return Append(std::move(place), KernelNode(simulation_.Watched(std::move(source), host), true));
}

void LiveTimeline::CloseGroup(NodeId group) {
  const std::lock_guard lock(mutex_);
  PendingNode* const node = simulation_.nodes().Find(group);
  if (node == nullptr || node->closed) return;
  simulation_.nodes().Close(*node);
  signals_.Changed();
}

NodeId LiveTimeline::AddUndecided(Place place) {
  PendingNode node;
  node.kind = WorkKind::kKernel;
  node.closed = false;
  return Append(std::move(place), std::move(node));
}

Status LiveTimeline::Decide(NodeId kernel, Tracking tracking, std::shared_ptr<trace::CtaSource> source) {
  const Status fits = source != nullptr ? simulation_.CheckKernel(*source) : Status();
  const std::lock_guard lock(mutex_);
  PendingNode* const node = simulation_.nodes().Find(kernel);
  if (node == nullptr || node->closed) return fits;
  if (source != nullptr && fits.ok()) {
    node->source = simulation_.Watched(std::move(source), node->place.host);
    node->place.use.tracking = tracking;
  }
  simulation_.nodes().Close(*node);
  signals_.Changed();
  return fits;
}

// ---- what there is to see

std::optional<Cycle> LiveTimeline::EndOf(NodeId node) const {
  const std::lock_guard lock(mutex_);
  return hosts_.KnownEnd(node);
}

LiveTimeline::HostWorks LiveTimeline::WorksOf(HostId id) const {
  const std::lock_guard lock(mutex_);
  const LiveHost* const host = hosts_.Find(id);
  if (host == nullptr) return {};
  return {.works = host->running, .waits = host->waits, .last_end = host->ends.last()};
}

Status LiveTimeline::Finish() {
  SimulationSignals::Lock lock(mutex_);
  hosts_.SetFinishing();
  signals_.Look();
  // What is left in the memory system when the last work has ended is simulated, too, whoever waited for it.
  signals_.WaitUntilReached(lock, [&] { return simulation_.idle(); });
  if (signals_.failed()) return Error{signals_.problem()};
  return {};
}

double LiveTimeline::Nanoseconds(Cycle cycles) const {
  return static_cast<double>(cycles) * 1e3 / parameters().timing().clock.sm_mhz;
}

KernelTable LiveTimeline::Kernels() const {
  const std::lock_guard lock(mutex_);
  return simulation_.table();
}

Cycle LiveTimeline::end() const {
  const std::lock_guard lock(mutex_);
  return hosts_.end();
}

LiveTimeline::Kept LiveTimeline::kept() const {
  const std::lock_guard lock(mutex_);
  Kept kept{
      .works = simulation_.works_kept(), .ends = 0, .streams = simulation_.streams(), .hosts = hosts_.all().size()};
  for (const auto& [id, host] : hosts_.all()) kept.ends += host.ends.kept();
  return kept;
}

}  // namespace gridloom::timing
