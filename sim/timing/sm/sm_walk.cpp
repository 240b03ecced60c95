// What an SM shows of itself (state_walk.h).
#include <algorithm>

#include "sim/timing/sm/sm.h"

namespace gridloom::timing {

bool Sm::OnlyTurns() const {
  if (!starts_.empty() || !commands_.empty() || !ended_.empty() || !signals_.empty()) return false;
  return std::ranges::all_of(warps_, [](const Warp& warp) {
    switch (warp.state) {
      case WarpState::kFree:
      case WarpState::kBarrier:
      case WarpState::kFinished: return true;
      case WarpState::kRunning:
      case WarpState::kFence: return warp.repeat != warp.repeats_end && warp.turns_left != 0;
      case WarpState::kAsleep: break;
    }
    return false;
  });
}

void Sm::Walk(StateWalk& walk) {
  walk.Word(next_age_);  // no CTA has come and gone meanwhile
  walk.Word(idle());
  if (!idle()) {
    walk.Since(last_issue_);
    walk.NotBefore(next_issue_);
    walk.NotBefore(last_step_);
    for (Warp& warp : warps_) {
      if (!walk.goes_on()) return;
      WalkWarp(warp, walk);
    }
    for (Cta& cta : ctas_) WalkCta(cta, walk);
    for (const Scheduler& scheduler : schedulers_) WalkScheduler(scheduler, walk);
    walk.Word(holds_);
    for (const HeldWarps& held : held_) {
      for (const WarpMask warps : held.by_gate) walk.Word(warps);
    }
    for (std::vector<Cycle>& units : units_) {
      for (Cycle& free : units) walk.NotBefore(free);
    }
    walk.Word(std::uint64_t{resident_ctas_} << 32 | resident_warps_);
    walk.Word(queue_was_full_);
    counters_.ForEach([&](std::uint64_t& counter) { walk.Count(counter); });
  }
  memory_.Walk(walk);
  parameter_bank_.Walk(walk);
  in_port_.Walk(walk);
  walk.Word(inbox_.size());
  inbox_.ForEach([&](Response& response) { response.Walk(walk); });
  if (inbox_.has_new() || !out_.all_sealed()) walk.Refuse();
  out_.ForEachSealed([&](const Request&) { walk.Refuse(); });  // those that partitions have taken are gone
}

void Sm::WalkWarp(Warp& warp, StateWalk& walk) {
  walk.Word(static_cast<std::uint64_t>(warp.state));
  if (warp.state == WarpState::kFree) return;
  walk.Pointer(warp.op);
  walk.NotBefore(warp.next_issue);
  walk.Pointer(warp.visit);
  walk.Pointer(warp.accesses);
  walk.Pointer(warp.next_accesses);
  walk.NotBefore(warp.wake);
  walk.Word(std::uint64_t{warp.pipe} << 32 | std::uint64_t{warp.barrier} << 16 | warp.cta_slot);
  walk.Word(std::uint64_t{warp.mask} << 32 | warp.parked);
  for (const void* const pointer : {static_cast<const void*>(warp.block_end), static_cast<const void*>(warp.visits_end),
                                    static_cast<const void*>(warp.code), static_cast<const void*>(warp.event_op),
                                    static_cast<const void*>(warp.event), static_cast<const void*>(warp.events_end),
                                    static_cast<const void*>(warp.trace), static_cast<const void*>(warp.repeat),
                                    static_cast<const void*>(warp.repeats_end), static_cast<const void*>(warp.region)})
    walk.Pointer(pointer);
  walk.Word(warp.age);
  walk.Word(std::uint64_t{warp.loads} << 32 | warp.stores);
  walk.Word(warp.absent);
  walk.Word(std::uint64_t{warp.granted} << 1 | std::uint64_t{warp.fed});
  for (Cycle& ready : warp.ready) walk.NotBefore(ready);
  walk.Turns(warp.turns_left);
}

void Sm::WalkCta(Cta& cta, StateWalk& walk) {
  walk.Word(cta.undrained);
  if (cta.undrained == 0) return;
  walk.Word(cta.id);
  walk.Word(cta.launch);
  walk.Word(std::uint64_t{cta.running} << 32 | cta.waiting);
  for (const Barrier& barrier : cta.barriers) walk.Word(std::uint64_t{barrier.arrived} << 8 | barrier.warps);
  walk.Count(cta.warp_instructions);
  walk.Count(cta.thread_instructions);
}

void Sm::WalkScheduler(const Scheduler& scheduler, StateWalk& walk) {
  for (const WarpMask mask :
       {scheduler.resident, scheduler.ready, scheduler.memory, scheduler.barrier, scheduler.finished, scheduler.active})
    walk.Word(mask);
  for (const WarpMask mask : scheduler.by_pipe) walk.Word(mask);
  walk.Word(scheduler.last);
  scheduler.wheel.Walk(walk);
}

}  // namespace gridloom::timing
