// Copies, fills and markers: which of them begin.
#include <algorithm>
#include <iterator>
#include <ranges>

#include "sim/timing/dispatch/dispatcher.h"

namespace gridloom::timing {

/// What a copy or fill of the engines has moved.
void Dispatcher::TellTransfer(WorkId id, Cycle now) const {
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

/// One that ends may let others end.
void Dispatcher::CheckMarkers(Cycle now) {
  for (bool again = true; again;) {
    again = false;
    for (auto next = markers_.begin(); next != markers_.end() && next->first <= now;) {
      const WorkId id = next->second;
      if (!MayBegin(id, now, false)) {
        next = Park(id) ? markers_.erase(next) : std::next(next);
        continue;
      }
      works_.at(id).result.started = now;
      Finish(id, now);  // those that waited for it alone come behind it
      next = markers_.erase(next);
      again = true;
    }
  }
}

/// Whether the two are done by different parts of the device, which meet at a word in memory that one writes and the
/// other looks at. What waits for a marker waits for what is before that.
bool Dispatcher::Elsewhere(const WorkState& copy, const WorkState& before) const {
  if (!CopyEngines::OverPcie(copy.kind) || before.kind == WorkKind::kMarker) return false;
  return before.kind == WorkKind::kKernel || engines_.EngineOf(before.kind) != engines_.EngineOf(copy.kind);
}

/// Of a copy that begins: whether it has waited for such a work.
bool Dispatcher::HandsOver(const WorkState& copy) const {
  if (copy.predecessor_elsewhere && copy.predecessor_ended > copy.order.submitted) return true;
  return std::ranges::any_of(copy.order.after, [&](WorkId id) {
    const WorkState& before = works_.at(id);
    return before.result.ended > copy.order.submitted && Elsewhere(copy, before);
  });
}

/// Starts a copy that may begin, where its engine or a part takes it.
bool Dispatcher::StartCopy(WorkId id, Cycle now) {
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
  events_.insert({starts + engines_.BusyCycles(work.result), EventKind::kEngineFree, engine});
  events_.insert(
      {starts + engines_.Cycles(work.result), EventKind::kCopyEnd, std::uint64_t{engine + 1} << kEngineAt | id});
  return true;
}

/// Engines that are busy are not asked about what waits for them, unless a part may take it.
void Dispatcher::CheckCopies(Cycle now) {
  std::vector<ByTime::iterator> next;
  for (ByTime& copies : copies_) next.push_back(copies.begin());
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
    const bool begins = MayBegin(id, now, engines_.on_device(first));
    const bool leaves = begins ? StartCopy(id, now) : Park(id);
    next[first] = leaves ? copies_[first].erase(next[first]) : std::next(next[first]);
  }
}

}  // namespace gridloom::timing
