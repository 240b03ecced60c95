#include "sim/timing/dispatch/waiting_copies.h"

#include <algorithm>
#include <iterator>
#include <ranges>

namespace gridloom::timing {

void WaitingCopies::Add(WorkId copy) {
  const WorkState& work = works_.at(copy);
  copies_[engines_.EngineOf(work.kind)].emplace(work.order.submitted, copy);
}

void WaitingCopies::TellTransfer(WorkId id, Cycle now) const {
  if (ports_.access_events.empty()) return;
  const WorkState& work = works_.at(id);
  const MemoryUse& use = work.use;
  const std::uint64_t bytes = work.result.bytes;
  if (bytes == 0 || use.special) return;
  const bool on_device = work.kind == WorkKind::kCopyOnDevice;
  const bool reads = on_device || work.kind == WorkKind::kCopyToHost;
  const bool writes = on_device || work.kind == WorkKind::kCopyToDevice || work.kind == WorkKind::kFill;
  const std::uint64_t read_at = on_device ? use.source : use.address, span = on_device ? use.source_span : use.span;
  for (AccessEvents* const listener : ports_.access_events) {
    if (reads && read_at != 0) listener->OnTransfer(now, id, use.address_space, read_at, std::max(span, bytes), false);
    if (writes && use.address != 0)
      listener->OnTransfer(now, id, use.address_space, use.address, std::max(use.span, bytes), true);
  }
}

void WaitingCopies::NoteEnd(WorkId id, Cycle now) {
  const WorkState& work = works_.at(id);
  const MemoryUse& use = work.use;
  const bool writes =
      work.kind == WorkKind::kCopyOnDevice || work.kind == WorkKind::kCopyToDevice || work.kind == WorkKind::kFill;
  if (!holds_copies_ || !writes || use.special || use.address == 0 || work.result.bytes == 0) return;
  copied_.push_back({.at = now,
                     .address_space = use.address_space,
                     .address = use.address,
                     .bytes = std::max(use.span, work.result.bytes)});
}

/// Whether the two are done by different parts of the device, which meet at a word in memory that one writes and the
/// other looks at. What waits for a marker waits for what is before that.
bool WaitingCopies::Elsewhere(const WorkState& copy, const WorkState& before) const {
  if (!CopyEngines::OverPcie(copy.kind) || before.kind == WorkKind::kMarker) return false;
  return before.kind == WorkKind::kKernel || engines_.EngineOf(before.kind) != engines_.EngineOf(copy.kind);
}

bool WaitingCopies::FollowsElsewhere(const WorkState& copy) const {
  const auto before = works_.LastOf(copy.order.stream);
  return before && Elsewhere(copy, works_.at(*before));
}

/// Of a copy that begins: whether it has waited for such a work.
bool WaitingCopies::HandsOver(const WorkState& copy) const {
  if (copy.predecessor_elsewhere && copy.predecessor_ended > copy.order.submitted) return true;
  return std::ranges::any_of(copy.order.after, [&](WorkId id) {
    const WorkState& before = works_.at(id);
    return before.result.ended > copy.order.submitted && Elsewhere(copy, before);
  });
}

/// Starts a copy that may begin, where its engine or a part takes it.
bool WaitingCopies::Start(WorkId id, Cycle now) {
  WorkState& work = works_.at(id);
  const std::size_t engine = engines_.EngineOf(work.kind);
  const bool taken =
      std::ranges::any_of(ports_.copy_paths, [&](CopyPath* path) { return path->Takes(now, work.View(id)); });
  if (!taken && engines_.busy(engine)) return false;
  work.stage = WorkState::Stage::kRunning;
  work.result.started = now;
  if (taken) return true;
  engines_.Take(engine);
  const Cycle starts = now + (HandsOver(work) ? engines_.HandoverCycles() : 0);
  events_.Add(starts + engines_.BusyCycles(work.result), DispatchEvents::Kind::kEngineFree, engine);
  events_.EndCopy(id, engine, starts + engines_.Cycles(work.result));
  return true;
}

/// Engines that are busy are not asked about what waits for them, unless a part may take it.
void WaitingCopies::Check(Cycle now) {
  std::vector<WorksByTime::iterator> next;
  for (WorksByTime& copies : copies_) next.push_back(copies.begin());
  while (true) {
    std::size_t first = copies_.size();  // of all engines' next copies the one that was given first
    for (std::size_t engine = 0; engine < copies_.size(); ++engine) {
      if (next[engine] == copies_[engine].end() || next[engine]->first > now) continue;
      if (engines_.busy(engine) && ports_.copy_paths.empty()) continue;
      if (first == copies_.size() || *next[engine] < *next[first]) first = engine;
    }
    if (first == copies_.size()) return;
    const WorkId id = next[first]->second;
    // What copies or fills on the device is a kernel, and is launched like one.
    const bool begins = lot_.MayBegin(id, now, engines_.on_device(first));
    const bool leaves = begins ? Start(id, now) : lot_.Park(id);
    next[first] = leaves ? copies_[first].erase(next[first]) : std::next(next[first]);
  }
}

}  // namespace gridloom::timing
