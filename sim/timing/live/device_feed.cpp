#include "sim/timing/live/device_feed.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gridloom::timing {

Result<Cycle> DeviceFeed::Feed() {
  to_.signals.SetUndecided(std::nullopt);
  while (true) {
    HostId from = 0;
    LiveHost* const first = NextHost(from);
    if (first == nullptr) return kNever;
    const NodeId id = first->calls.front();
    const PendingNode& node = to_.nodes.at(id);
    const bool known = node.open == 0 || to_.hosts.finishing();  // everything that belongs to it
    if (!known && node.kind == WorkKind::kKernel && !node.is_group) to_.signals.SetUndecided(from);
    if (!known || !to_.hosts.Safe(from, node.submitted)) return node.submitted;
    first->calls.pop_front();
    GL_TRY_STATUS(FeedNode(id, to_.streams.NumberOf(node.place.host, node.place.stream)));
  }
}

/// The host whose next work was submitted first. Null: the engine has got all works.
LiveHost* DeviceFeed::NextHost(HostId& first_id) {
  LiveHost* first = nullptr;
  Cycle submitted = 0;
  for (auto& [id, host] : to_.hosts.all()) {
    if (host.calls.empty()) continue;
    const Cycle next = to_.nodes.at(host.calls.front()).submitted;
    if (first != nullptr && next >= submitted) continue;
    first = &host;
    first_id = id;
    submitted = next;
  }
  return first;
}

std::vector<WorkId> DeviceFeed::WorksBefore(const PendingNode& node) const {
  std::vector<WorkId> works;
  for (const NodeId before : node.place.after) {
    // One that has ended did so before this one was submitted, or the host would have had to know it in advance.
    if (const auto work = to_.works.WorkOf(before)) works.push_back(*work);
  }
  return works;
}

/// The work, and if it is a group all that is in it: groups may lie in each other ten thousand times.
Status DeviceFeed::FeedNode(NodeId id, std::uint32_t stream) {
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

Result<DeviceFeed::Feeding> DeviceFeed::BeginNode(NodeId id, std::uint32_t stream, const std::vector<WorkId>& after,
                                                  LaunchedBy by) {
  Feeding feeding{.id = id, .node = *to_.nodes.Take(id), .stream = stream};
  PendingNode& node = feeding.node;
  WorkOrder order;
  order.stream = stream;
  order.submitted = std::max(node.submitted, to_.engine.now());
  order.after = WorksBefore(node);
  order.after.insert(order.after.end(), after.begin(), after.end());
  feeding.end = {.stream = stream, .submitted = order.submitted, .after = {}};
  to_.streams.Begin(stream);
  GL_TRY(begin, FeedBegin(std::move(order), node, by));
  feeding.begin = begin;
  if (node.place.is_partner) partners_[id] = begin;
  if (node.members.empty()) return feeding;
  to_.streams.Begin(stream);
  std::ranges::stable_sort(node.members, {}, [&](NodeId member) { return to_.nodes.at(member).place.rank; });
  return feeding;
}

/// The next one of a group.
Result<DeviceFeed::Feeding> DeviceFeed::BeginMember(Feeding& group) {
  const NodeId id = group.node.members[group.next++];
  const PendingNode& member = to_.nodes.at(id);
  const bool launches = group.node.kind == WorkKind::kKernel;
  const bool last = member.place.rank == Place::kLastRank;
  const bool called =
      launches && !last && member.kind == WorkKind::kKernel && member.source != nullptr && member.place.number != 0;
  // Works of a group are ordered by their dependencies alone, so each has a stream to itself.
  const std::uint32_t stream = to_.streams.NumberForOne(group.node.place.host);
  std::vector<WorkId> after;
  if (!called) after.push_back(group.begin);
  if (last) after.insert(after.end(), group.end.after.begin(), group.end.after.end());
  return BeginNode(id, stream, after,
                   called ? LaunchedBy{.parent = group.begin, .number = member.place.number} : LaunchedBy{});
}

/// All that is in it has been given. What has ended with it: its begin, or what ends when all of them have.
Result<WorkId> DeviceFeed::EndNode(Feeding& feeding) {
  WorkId last = feeding.begin;
  if (!feeding.node.members.empty()) {
    GL_TRY(whole, to_.engine.Add(MarkerWork{std::move(feeding.end)}));
    last = whole;
  }
  to_.works.Add(feeding.id, {.begin = feeding.begin, .work = last, .waits = feeding.node.place.after.size()});
  if (to_.questions.Awaits(feeding.id)) to_.stops.Await(last);
  return last;
}

Result<WorkId> DeviceFeed::FeedBegin(WorkOrder order, PendingNode& node, LaunchedBy by) {
  if (node.kind == WorkKind::kKernel && node.source != nullptr) return FeedKernel(std::move(order), node, by);
  const auto* const kind = std::ranges::find(kCopyKinds, node.kind);
  if (kind == std::end(kCopyKinds)) return to_.engine.Add(MarkerWork{std::move(order)});
  const auto direction = static_cast<CopyDirection>(kind - std::begin(kCopyKinds));
  return to_.engine.Add(CopyWork{
      .order = std::move(order), .direction = direction, .bytes = node.bytes, .use = UseOf(node.place, false)});
}

MemoryUse DeviceFeed::UseOf(const Place& place, bool kernel) {
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
std::shared_ptr<const std::vector<HostReuse>> DeviceFeed::ReusesOf(const Place& place) const {
  std::vector<HostReuse> reuses;
  for (const NodeReuse& reuse : place.reuses) {
    if (const auto partner = partners_.find(reuse.earlier); partner != partners_.end()) {
      reuses.push_back({.earlier = partner->second, .begin = reuse.begin});
    } else if (const auto work = to_.works.WorkOf(reuse.earlier)) {
      reuses.push_back({.earlier = *work, .begin = reuse.begin});
    }
  }
  return reuses.empty() ? nullptr : std::make_shared<const std::vector<HostReuse>>(std::move(reuses));
}

Result<WorkId> DeviceFeed::FeedKernel(WorkOrder order, PendingNode& node, LaunchedBy by) {
  std::shared_ptr<ProfilingPolicy::Source> profiled;
  if (to_.profiling != nullptr)
    node.source = profiled = std::make_shared<ProfilingPolicy::Source>(std::move(node.source));
  GL_TRY(work, to_.engine.Add(KernelWork{.order = std::move(order),
                                         .source = std::move(node.source),
                                         .profile = node.place.profile,
                                         .owner = node.place.owner,
                                         .address_space = node.place.host,
                                         .use = UseOf(node.place, true),
                                         .launched_by = by}));
  if (profiled != nullptr) to_.profiling->Expect(work, std::move(profiled));
  return work;
}

}  // namespace gridloom::timing
