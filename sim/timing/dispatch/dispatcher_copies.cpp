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
    if (writes && use.address != 0) listener->OnTransfer(now, id, use.address_space, use.address, std::max(use.span, bytes), true);
  }
}

/// One that ends may let others end.
void Dispatcher::CheckMarkers(Cycle now) {
  for (bool again = true; again;) {
    again = false;
    for (auto next = markers_.begin(); next != markers_.end();) {
      const WorkId id = *next;
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

/// Whether the two are done by different parts of the device, which meet at a word in memory that one writes and the other looks at. What
/// waits for a marker waits for what is before that.
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

void Dispatcher::CheckCopies(Cycle now) {
  for (auto next = copies_.begin(); next != copies_.end() && next->first <= now;) {
    const WorkId id = next->second;
    WorkState& work = works_.at(id);
    const std::size_t engine = engines_.EngineOf(work.kind);
    // What copies or fills on the device is a kernel, and is launched like one.
    const bool on_device = engines_.on_device(engine);
    const bool others = !ports_.copy_paths.empty();
    if (engines_.busy(engine) && !others) {
      ++next;
      continue;
    }
    if (!MayBegin(id, now, on_device)) {
      next = Park(id) ? copies_.erase(next) : std::next(next);
      continue;
    }
    const bool taken = others && std::ranges::any_of(ports_.copy_paths, [&](CopyPath* path) { return path->Takes(now, work.View(id)); });
    if (!taken && engines_.busy(engine)) {
      ++next;
      continue;
    }
    next = copies_.erase(next);
    work.stage = WorkState::Stage::kRunning;
    work.result.started = now;
    if (taken) continue;
    engines_.Take(engine);
    const Cycle starts = now + (HandsOver(work) ? engines_.HandoverCycles() : 0);
    events_.insert({starts + engines_.BusyCycles(work.result), EventKind::kEngineFree, engine});
    events_.insert({starts + engines_.Cycles(work.result), EventKind::kCopyEnd, std::uint64_t{engine + 1} << kEngineAt | id});
  }
}

}  // namespace gridloom::timing
