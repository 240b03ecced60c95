#include "sim/timing/live/program_works.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/timing/memory/accesses.h"

namespace gridloom::timing {

using trace::HostAction;

namespace {

/// Profilers wait for nobody, and everybody for them.
constexpr std::uint64_t kProfilerStream = (std::uint64_t{1} << 62) - 1;
constexpr std::int32_t kProfilerPriority = 1 << 20;
constexpr std::size_t kMostPassed = 1 << 14;  // works of waits that are left out

MemoryUse UseOf(const HostAction& action) {
  MemoryUse use;
  use.special = action.special;
  use.address = action.address;
  use.span = action.span == 0 ? action.bytes : action.span;
  use.source = action.source;
  use.source_span = action.source_span;
  use.host_span = action.host_span;
  return use;
}

std::optional<CopyDirection> DirectionOf(HostAction::Kind kind) {
  switch (kind) {
    case HostAction::Kind::kCopyToDevice: return CopyDirection::kToDevice;
    case HostAction::Kind::kCopyToHost: return CopyDirection::kToHost;
    case HostAction::Kind::kCopyOnDevice: return CopyDirection::kOnDevice;
    case HostAction::Kind::kFill: return CopyDirection::kFill;
    default: return std::nullopt;
  }
}

}  // namespace

/// Where the program runs as it is, its host has waited before it writes to the memory.
std::vector<NodeReuse> ProgramWorks::ReusesOf(const HostAction& action) {
  std::vector<NodeReuse> reuses;
  if (!overlapped_) return reuses;
  for (const HostAction::Reuse& reuse : action.reuses) {
    if (const NodeId copy = node_of_(reuse.work); copy != 0) reuses.push_back({storage_.LastUserOf(copy), reuse.begin});
  }
  return reuses;
}

void ProgramWorks::AddEarlier(const HostAction& action, std::vector<NodeId>& after) const {
  if (!overlapped_) return;
  for (const HostAction::Reuse& reuse : action.reuses) {
    if (const NodeId copy = node_of_(reuse.work); copy != 0) after.push_back(copy);
  }
}

bool ProgramWorks::BeforeCopy(const HostAction& action, Place& place) {
  const auto direction = DirectionOf(action.kind);
  if (!direction) return true;
  return storage_.BeforeCopy(
      place,
      {.direction = *direction,
       .bytes = action.bytes,
       .like = action.like == 0 ? 0 : node_of_(action.like),
       .ranks = action.ranks.empty() ? nullptr : std::make_shared<const std::vector<std::uint32_t>>(action.ranks),
       .host_span = action.host_span,
       .reuses = ReusesOf(action)});
}

NodeId ProgramWorks::Add(Place place, const HostAction& action) {
  const auto direction = DirectionOf(action.kind);
  if (!direction) return timeline_.AddMarker(std::move(place));
  const NodeId reading = place.partner;
  place.use = UseOf(action);
  // What is read for it waits, and it for what is read. It comes behind the earlier ones, so that nothing that waits
  // for it holds them up.
  if (*direction != CopyDirection::kToDevice || reading == 0) place.reuses = ReusesOf(action);
  AddEarlier(action, place.after);
  const NodeId node = timeline_.AddCopy(std::move(place), *direction, action.bytes);
  storage_.Copied(node, reading, *direction);
  return node;
}

Result<NodeId> ProgramWorks::AddProfiler(Place& kernel, std::shared_ptr<trace::CtaSource> profiler) {
  Place before{.host = host_, .stream = kProfilerStream, .after = {}, .group = 0, .rank = 0, .profile = 0};
  before.use.tracking = Tracking::kProfiler;
  before.owner.priority = kProfilerPriority;
  before.is_partner = true;
  if (AccessesMemory(profiler->code())) {  // what earlier works may write
    before.stream = kernel.stream;
    before.after = kernel.after;
  }
  GL_TRY(node, timeline_.AddKernel(std::move(before), std::move(profiler)));
  kernel.after.push_back(node);
  kernel.partner = node;
  return node;
}

Result<NodeId> ProgramWorks::AddKernel(Place place, Tracking tracking, std::shared_ptr<trace::CtaSource> source) {
  place.use.tracking = tracking;
  return timeline_.AddKernel(std::move(place), std::move(source));
}

void ProgramWorks::PutBehindWaits(Place& place) {
  if (!overlapped_) return;
  const std::lock_guard lock(mutex_);
  std::uint64_t& behind = behind_[place.stream];
  const auto first = passed_.begin() + static_cast<std::ptrdiff_t>(std::max(behind, dropped_) - dropped_);
  place.after.insert(place.after.end(), first, passed_.end());
  behind = dropped_ + passed_.size();
}

bool ProgramWorks::Wait(std::span<const NodeId> nodes, bool sees) {
  if (overlapped_ && !sees) {
    const std::lock_guard lock(mutex_);
    passed_.insert(passed_.end(), nodes.begin(), nodes.end());
    // Those of a stream stand for those before.
    for (; passed_.size() > kMostPassed || (!passed_.empty() && timeline_.EndOf(passed_.front())); ++dropped_)
      passed_.pop_front();
    return true;
  }
  return timeline_.answers().WaitFor(host_, nodes) && (!sees || storage_.AfterWait());
}

}  // namespace gridloom::timing
