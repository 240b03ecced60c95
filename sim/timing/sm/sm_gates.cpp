// What proposed parts have to do with the issue of instructions: gates that hold warps back, and events that are told
// of. Apart from sm_issue.cpp, whose loops go faster when nothing lies between them.
#include <algorithm>
#include <bit>

#include "sim/timing/sm/sm.h"

namespace gridloom::timing {

/// Until when the first gate that does not let the warp's next instruction issue holds it, and which one that is; not
/// above `now`: none.
Sm::Gated Sm::AskGates(Cycle now, const Warp& warp) {
  if (warp.granted || !warp.op->gated) return {};
  const MemoryInstruction instruction = NextAccess(warp);
  const GatedAccess access{.sm = index_, .cta = ctas_[warp.cta_slot].id, .instruction = instruction};
  for (std::size_t gate = 0; gate < ports_.warp_gates.size(); ++gate) {
    const Cycle until = ports_.warp_gates[gate]->MayIssue(now, access);
    if (until <= now) continue;
    ++holds_;
    return {.until = until, .gate = gate};
  }
  return {};
}

/// Whether the gates let the warp's next instruction issue, whose registers are ready; else the scheduler looks at it
/// again when they may.
bool Sm::PassesGates(Cycle now, Warp& warp) {
  const Gated gated = AskGates(now, warp);
  if (gated.until <= now) {
    warp.granted = warp.op->gated;  // of others nobody was asked, and nobody takes it back when they issue
    return true;
  }
  Scheduler& scheduler = schedulers_[warp.scheduler];
  scheduler.memory |= Bit(warp);
  held_[warp.scheduler].by_gate[gated.gate] |= Bit(warp);
  warp.wake = gated.until;
  if (warp.wake != kNever && !plain_) scheduler.wheel.Add(now, warp.wake, warp.index);
  return false;
}

/// A warp comes up in the wheel, perhaps a second time (ConcernsGates).
void Sm::WakeGated(Cycle now, Scheduler& scheduler, Warp& warp) {
  const WarpMask bit = Bit(warp);
  if (warp.state != WarpState::kRunning || (scheduler.ready & bit) != 0 || warp.wake == kNever) return;
  if (warp.wake > now) return scheduler.wheel.Add(now, warp.wake, warp.index);
  scheduler.memory &= ~bit;
  held_[warp.scheduler].LetGo(bit);
  if (PassesGates(now, warp)) scheduler.ready |= bit;
}

/// What calls by which kernels launch others take of a warp's time.
Cycle Sm::CyclesOf(const LaunchCalls& calls) const {
  if (ports_.launch_cost != nullptr) return ports_.launch_cost->CyclesOf(calls);
  const sim::TimingSpec::DeviceLaunch& costs = timing_.device_launch;
  Cycle cycles = calls.streams != 0 ? costs.stream_cycles : 0;
  if (calls.launches == 0) return cycles;
  cycles += costs.buffer_cycles + costs.call_cycles;
  return cycles + Cycle{calls.launches} * (costs.buffer_thread_cycles + costs.call_thread_cycles);
}

/// Tells of the events of the instruction that is being issued. Answers when the warp goes on.
Cycle Sm::Signal(Cycle now, Warp& warp) {
  const Cta& cta = ctas_[warp.cta_slot];
  const trace::WarpTrace& trace = cta.trace->warps[warp.event->warp];
  const auto visit = static_cast<std::size_t>(warp.visit - cta.trace->visits.data()) - trace.first_visit - 1;
  const auto first = static_cast<std::ptrdiff_t>(signals_.size());
  LaunchCalls calls;
  for (; warp.event != warp.events_end && warp.event->visit == visit &&
         warp.code->EventOp(warp.event->instruction) == warp.op;
       ++warp.event) {
    const auto threads = static_cast<std::uint32_t>(std::popcount(warp.event->lanes));
    const bool launches = warp.event->kind == trace::EventKind::kDeviceLaunch;
    if (launches) calls.launches += threads;
    if (launches && ports_.launch_cost != nullptr && ports_.launch_cost->Aggregates(warp.event->flags))
      calls.aggregated += threads;
    if (warp.event->kind == trace::EventKind::kStreamCreate) calls.streams += threads;
    if (!launches && ports_.cta_events.empty()) continue;
    signals_.push_back({.at = now,
                        .done = now,
                        .place = {.launch = cta.launch, .sm = index_, .slot = warp.cta_slot, .cta = cta.id},
                        .event = *warp.event});
  }
  warp.event_op = warp.event != warp.events_end ? warp.code->EventOp(warp.event->instruction) : nullptr;
  if (calls.launches == 0 && calls.streams == 0) return now;
  const Cycle done = now + CyclesOf(calls);
  for (auto signal = signals_.begin() + first; signal != signals_.end(); ++signal) signal->done = done;
  return done;
}

/// Tells of the memory instruction that is being issued.
void Sm::TellAccess(Cycle now, const Warp& warp) const {
  if (warp.op->space == trace::Space::kShared) return;
  const MemoryInstruction instruction = NextAccess(warp);
  const GatedAccess access{.sm = index_, .cta = ctas_[warp.cta_slot].id, .instruction = instruction};
  for (AccessEvents* const listener : ports_.access_events) listener->OnIssue(now, access);
}

/// The rest of Arm where there are gates.
void Sm::ArmGated(Cycle now, Scheduler& scheduler, Warp& warp) {
  const WarpMask bit = Bit(warp);
  held_[warp.scheduler].LetGo(bit);
  if (warp.wake == kNever) scheduler.memory |= bit;
  else if (warp.wake <= now) scheduler.ready |= PassesGates(now, warp) ? bit : 0;
  else if (!plain_) scheduler.wheel.Add(now, warp.wake, warp.index);
}

/// Where some warps wait for data and others are held back by gates, the gates count: data would come.
std::uint64_t& Sm::MemoryStallCounter(const Scheduler& scheduler, SmCounters& counters) const {
  const HeldWarps& held = held_[static_cast<std::size_t>(&scheduler - schedulers_.data())];
  const auto gate = std::ranges::find_if(held.by_gate, [](WarpMask warps) { return warps != 0; });
  if (gate == held.by_gate.end()) return counters.stall_memory;
  return counters.stall_gate[static_cast<std::size_t>(gate - held.by_gate.begin())];
}

}  // namespace gridloom::timing
