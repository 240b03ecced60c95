#include "sim/timing/live/trace_player.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "sim/trace/instruction_limit.h"

namespace gridloom::timing {

using trace::HostAction;
using trace::LaunchInfo;

TracePlayer::TracePlayer(LiveTimeline& timeline, HostId host, std::shared_ptr<trace::TraceFile> file,
                         PlayOptions options)
    : timeline_(timeline),
      host_(host),
      file_(std::move(file)),
      options_(std::move(options)),
      works_(timeline, host, options_.overlapped, [this](std::uint64_t work) { return NodeOf(work); }) {
  for (const HostAction& action : file_->actions()) {
    if (action.group != 0) members_[action.group].push_back(&action);
  }
  for (std::size_t i = 0; i < file_->launches().size(); ++i) {
    const trace::TraceFile::Launch& launch = file_->launches()[i];
    if (!launch.complete || launch.info.work == 0) continue;
    if (launch.info.of_program()) launches_[launch.info.work] = i;
    if (!options_.overlapped || launch.info.ranges != options_.ranges) continue;
    Tracked& tracked = tracked_[launch.info.work];
    (launch.info.role == LaunchInfo::Role::kProfiler ? tracked.profiler : tracked.releasing) = i;
  }
  played_.resize(file_->launches().size());
}

Status TracePlayer::Play() {
  const Status status = PlayAll();
  timeline_.RemoveHost(host_);
  if (status.ok()) Tell(outcome_.WhyNothingOverlaps(file_->name()));
  return status;
}

Status TracePlayer::PlayAll() {
  for (const HostAction& action : file_->actions()) {
    if (action.group == 0) GL_TRY_STATUS(PlayAction(action));
  }
  // Launches whose call is missing, where the trace was cut off.
  for (std::size_t i = 0; i < file_->launches().size(); ++i) {
    const trace::TraceFile::Launch& launch = file_->launches()[i];
    if (played_[i] || !launch.complete || !launch.info.of_program()) continue;
    Place place{.host = host_,
                .stream = launch.info.stream % trace::TraceFile::kStreams,
                .after = {},
                .owner = {.tenant = host_}};
    GL_TRY(node, AddLaunch(std::move(place), i, false));
    static_cast<void>(node);
  }
  return works_.Finish() ? Status() : GaveUp();
}

NodeId TracePlayer::NodeOf(std::uint64_t work) const {
  const auto node = nodes_.find(work);
  return node == nodes_.end() ? 0 : node->second;
}

std::vector<NodeId> TracePlayer::NodesOf(const std::vector<std::uint64_t>& works) const {
  std::vector<NodeId> nodes;
  for (const std::uint64_t work : works) {
    if (const NodeId node = NodeOf(work); node != 0) nodes.push_back(node);
  }
  return nodes;
}

/// A call of the host's, and all that is in it if it opens a group.
Status TracePlayer::PlayAction(const HostAction& action) {
  if (action.kind == HostAction::Kind::kWait) return PlayWait(action);
  struct Open {
    std::uint64_t work = 0;
    const std::vector<const HostAction*>* members = nullptr;  ///< null: there are none
    std::size_t next = 0;                                     ///< of them
  };
  std::vector<Open> open;  // each in the one before it: a group may lie in 10,000 others
  const auto begin = [&](const HostAction& work) -> Status {
    const auto members = members_.find(work.work);
    const bool opens = members != members_.end() || work.kind == HostAction::Kind::kGroup;
    GL_TRY_STATUS(PlayWork(work, opens));
    if (opens) open.push_back({work.work, members != members_.end() ? &members->second : nullptr});
    return {};
  };
  GL_TRY_STATUS(begin(action));
  while (!open.empty()) {
    Open& last = open.back();
    if (last.members != nullptr && last.next < last.members->size()) {
      GL_TRY_STATUS(begin(*(*last.members)[last.next++]));
      continue;
    }
    timeline_.CloseGroup(nodes_[last.work]);
    open.pop_back();
  }
  return {};
}

Status TracePlayer::PlayWork(const HostAction& action, bool opens) {
  Place place{.host = host_,
              .stream = action.stream,
              .after = NodesOf(action.after),
              .group = 0,
              .rank = action.rank,
              .number = action.group != 0 ? action.work : 0,
              .profile = 0,
              .owner = {.tenant = host_}};
  if (const auto group = nodes_.find(action.group); group != nodes_.end()) place.group = group->second;
  if (action.group == 0) works_.PutBehindWaits(place);
  const auto launch = action.kind == HostAction::Kind::kLaunch ? launches_.find(action.work) : launches_.end();
  if (opens && action.group == 0) GL_TRY_STATUS(PlayStorageOf(action));
  if (launch != launches_.end()) return PlayLaunch(std::move(place), action, launch->second, opens);
  if (!opens) return PlayPlain(std::move(place), action);
  nodes_[action.work] = timeline_.OpenGroup(std::move(place));
  return {};
}

Status TracePlayer::PlayWait(const HostAction& action) {
  return works_.Wait(NodesOf(action.after), action.sees) ? Status() : GaveUp();
}

Status TracePlayer::GaveUp() const {
  const std::string problem = timeline_.problem();
  return Error{problem.empty() ? "the trace cannot be read fast enough" : problem};
}

/// Copies of works that are given together: the host cannot wait in between.
Status TracePlayer::PlayStorageOf(const HostAction& group) {
  std::uint64_t to_device = 0, to_host = 0;
  std::vector<std::uint64_t> open = {group.work};
  while (!open.empty()) {
    const auto members = members_.find(open.back());
    open.pop_back();
    if (members == members_.end()) continue;
    for (const HostAction* member : members->second) {
      if (member->kind == HostAction::Kind::kCopyToDevice) to_device += member->bytes;
      if (member->kind == HostAction::Kind::kCopyToHost) to_host += member->bytes;
      open.push_back(member->work);
    }
  }
  return works_.BeforeGroup(to_device, to_host) ? Status() : GaveUp();
}

/// A work without any in it.
Status TracePlayer::PlayPlain(Place place, const HostAction& action) {
  if (action.group == 0 && !works_.BeforeCopy(action, place)) return GaveUp();
  nodes_[action.work] = works_.Add(std::move(place), action);
  return {};
}

void TracePlayer::Tell(const std::string& sentence) const {
  if (options_.tell && !sentence.empty()) options_.tell(sentence);
}

bool TracePlayer::IsProfiled(const HostAction& action, const LaunchInfo& launch, bool opens) {
  if (!options_.overlapped) return false;
  const std::string& kernel = file_->kernels()[launch.kernel].name;
  const auto found = tracked_.find(action.work);
  const bool profiled = found != tracked_.end() && found->second.profiler && !opens && action.group == 0;
  if (!profiled || !found->second.releasing) {
    outcome_.AddUntracked(kernel, launch.no_ranges.empty() ? "its ranges are not in the trace" : launch.no_ranges);
    return profiled;
  }
  const Status fits = options_.fits ? options_.fits(file_->launches()[*found->second.releasing].info.shape) : Status();
  if (fits.ok()) {
    outcome_.AddTracked();
    return true;
  }
  const std::string why = "with release code, " + fits.error().message;
  if (outcome_.AddUntracked(kernel, why)) Tell(WhyItDoesNotOverlap(kernel, why));
  return false;
}

/// The kernel; or, where it has a profiler, that and then the kernel, with release code if there is a run of that.
Status TracePlayer::PlayLaunch(Place place, const HostAction& action, std::size_t launch, bool opens) {
  if (!IsProfiled(action, file_->launches()[launch].info, opens)) {
    GL_TRY(node, AddLaunch(std::move(place), launch, opens));
    nodes_[action.work] = node;
    return {};
  }
  const Tracked& tracked = tracked_.at(action.work);
  played_[launch] = true;
  GL_TRY(profiler, works_.AddProfiler(place, SourceOf(*tracked.profiler)));
  static_cast<void>(profiler);
  const Tracking tracking = tracked.releasing ? Tracking::kKernel : Tracking::kNone;
  GL_TRY(kernel, works_.AddKernel(std::move(place), tracking, SourceOf(tracked.releasing.value_or(launch))));
  nodes_[action.work] = kernel;
  return {};
}

std::shared_ptr<trace::CtaSource> TracePlayer::SourceOf(std::size_t launch) {
  played_[launch] = true;
  return trace::WithInstructionLimit(trace::TraceFile::Source(file_, launch, budget_), options_.most_instructions);
}

Result<NodeId> TracePlayer::AddLaunch(Place place, std::size_t launch, bool opens) {
  auto source = SourceOf(launch);
  place.profile = options_.profile_of ? options_.profile_of(*source) : 0;
  return opens ? timeline_.OpenKernel(std::move(place), std::move(source))
               : timeline_.AddKernel(std::move(place), std::move(source));
}

Status PlayTraces(LiveTimeline& timeline, const std::vector<std::shared_ptr<trace::TraceFile>>& files,
                  const PlayOptions& options) {
  std::vector<std::unique_ptr<TracePlayer>> players;
  for (const auto& file : files)
    players.push_back(std::make_unique<TracePlayer>(timeline, timeline.AddHost(), file, options));
  std::vector<Status> outcomes(files.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < players.size(); ++i) threads.emplace_back([&, i] { outcomes[i] = players[i]->Play(); });
  if (!players.empty()) outcomes[0] = players[0]->Play();
  for (std::thread& thread : threads) thread.join();
  for (const Status& outcome : outcomes) GL_TRY_STATUS(outcome);
  return timeline.Finish();
}

}  // namespace gridloom::timing
