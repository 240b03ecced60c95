#include "sim/timing/live/trace_player.h"

#include <thread>

namespace gridloom::timing {

using trace::HostAction;

TracePlayer::TracePlayer(LiveTimeline& timeline, HostId host, std::shared_ptr<trace::TraceFile> file, ProfileFunction profile_of)
    : timeline_(timeline), host_(host), file_(std::move(file)), profile_of_(std::move(profile_of)) {
  for (const HostAction& action : file_->actions()) {
    if (action.group != 0) members_[action.group].push_back(&action);
  }
  for (std::size_t i = 0; i < file_->launches().size(); ++i) {
    const trace::TraceFile::Launch& launch = file_->launches()[i];
    if (launch.complete && launch.info.work != 0) launches_[launch.info.work] = i;
  }
  played_.resize(file_->launches().size());
}

Status TracePlayer::Play() {
  const Status status = PlayAll();
  timeline_.RemoveHost(host_);
  return status;
}

Status TracePlayer::PlayAll() {
  for (const HostAction& action : file_->actions()) {
    if (action.group == 0) GL_TRY_STATUS(PlayAction(action));
  }
  // Launches whose call is missing, where the trace was cut off.
  for (std::size_t i = 0; i < file_->launches().size(); ++i) {
    if (played_[i] || !file_->launches()[i].complete) continue;
    GL_TRY(node, AddLaunch({.host = host_, .stream = file_->launches()[i].info.stream, .after = {}, .group = 0, .rank = 0, .profile = 0}, i,
                           false));
    static_cast<void>(node);
  }
  return {};
}

std::vector<NodeId> TracePlayer::NodesOf(const std::vector<std::uint64_t>& works) const {
  std::vector<NodeId> nodes;
  for (const std::uint64_t work : works) {
    if (const auto node = nodes_.find(work); node != nodes_.end()) nodes.push_back(node->second);
  }
  return nodes;
}

Status TracePlayer::PlayAction(const HostAction& action) {
  if (action.kind == HostAction::Kind::kWait) {
    if (timeline_.WaitFor(host_, NodesOf(action.after))) return {};
    const std::string problem = timeline_.problem();
    return Error{problem.empty() ? "the trace cannot be read fast enough" : problem};
  }
  Place place{.host = host_, .stream = action.stream, .after = NodesOf(action.after), .group = 0, .rank = action.rank, .profile = 0};
  if (const auto group = nodes_.find(action.group); group != nodes_.end()) place.group = group->second;
  const auto members = members_.find(action.work);
  const bool opens = members != members_.end() || action.kind == HostAction::Kind::kGroup;
  const auto launch = action.kind == HostAction::Kind::kLaunch ? launches_.find(action.work) : launches_.end();
  if (launch != launches_.end()) {
    GL_TRY(node, AddLaunch(std::move(place), launch->second, opens));
    nodes_[action.work] = node;
  } else {
    nodes_[action.work] = opens ? timeline_.OpenGroup(std::move(place)) : AddPlain(std::move(place), action);
  }
  if (!opens) return {};
  if (members != members_.end()) {
    for (const HostAction* member : members->second) GL_TRY_STATUS(PlayAction(*member));
  }
  timeline_.CloseGroup(nodes_[action.work]);
  return {};
}

NodeId TracePlayer::AddPlain(Place place, const HostAction& action) {
  switch (action.kind) {
    case HostAction::Kind::kCopyToDevice: return timeline_.AddCopy(std::move(place), CopyDirection::kToDevice, action.bytes);
    case HostAction::Kind::kCopyToHost: return timeline_.AddCopy(std::move(place), CopyDirection::kToHost, action.bytes);
    case HostAction::Kind::kCopyOnDevice: return timeline_.AddCopy(std::move(place), CopyDirection::kOnDevice, action.bytes);
    case HostAction::Kind::kFill: return timeline_.AddCopy(std::move(place), CopyDirection::kFill, action.bytes);
    default: return timeline_.AddMarker(std::move(place));
  }
}

Result<NodeId> TracePlayer::AddLaunch(Place place, std::size_t launch, bool opens) {
  played_[launch] = true;
  auto source = trace::TraceFile::Source(file_, launch);
  place.profile = profile_of_ ? profile_of_(*source) : 0;
  return opens ? timeline_.OpenKernel(std::move(place), std::move(source)) : timeline_.AddKernel(std::move(place), std::move(source));
}

Status PlayTraces(LiveTimeline& timeline, const std::vector<std::shared_ptr<trace::TraceFile>>& files, const ProfileFunction& profile_of) {
  std::vector<std::unique_ptr<TracePlayer>> players;
  for (const auto& file : files) players.push_back(std::make_unique<TracePlayer>(timeline, timeline.AddHost(), file, profile_of));
  std::vector<Status> outcomes(files.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < players.size(); ++i) threads.emplace_back([&, i] { outcomes[i] = players[i]->Play(); });
  if (!players.empty()) outcomes[0] = players[0]->Play();
  for (std::thread& thread : threads) thread.join();
  for (const Status& outcome : outcomes) GL_TRY_STATUS(outcome);
  return timeline.Finish();
}

}  // namespace gridloom::timing
