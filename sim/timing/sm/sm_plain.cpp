// The plain mode of an SM: every warp is looked at in every cycle. Slow, short, and the reference for ready masks and
// wheels.
#include "sim/timing/sm/sm.h"

namespace gridloom::timing {

/// Computes the scheduler's masks from its warps alone.
void Sm::ScanWarps(Cycle now, std::uint32_t index) {
  Scheduler& scheduler = schedulers_[index];
  scheduler.ready = scheduler.memory = scheduler.barrier = scheduler.finished = 0;
  scheduler.by_pipe = {};
  if (gated_) held_[index] = {};
  for (std::size_t w = index; w < warps_.size(); w += schedulers_.size()) {
    Warp& warp = warps_[w];
    const WarpMask bit = Bit(warp);
    if (warp.state == WarpState::kAsleep) Wake(now, warp);
    switch (warp.state) {
      case WarpState::kFree: break;
      case WarpState::kBarrier: scheduler.barrier |= bit; break;
      case WarpState::kAsleep:
      case WarpState::kFence: scheduler.memory |= bit; break;
      case WarpState::kFinished: scheduler.finished |= bit; break;
      case WarpState::kRunning:
        scheduler.by_pipe[warp.op->pipe] |= bit;
        if (warp.RegistersReady() == kNever) scheduler.memory |= bit;
        else if (warp.RegistersReady() <= now && warp.next_issue <= now && (!gated_ || PassesGates(now, warp)))
          scheduler.ready |= bit;
        break;
    }
  }
}

std::uint32_t Sm::PickByScan(std::uint32_t index, WarpMask eligible) const {
  const Scheduler& scheduler = schedulers_[index];
  const auto count = static_cast<std::uint32_t>(warps_.size() / schedulers_.size());
  const auto can = [&](std::uint32_t warp) { return (eligible >> warp & 1) != 0; };
  if (timing_.sm.warp_order != sim::WarpOrder::kGreedyThenOldest) {
    std::uint32_t warp = (scheduler.last + 1) % count;
    while (!can(warp)) warp = (warp + 1) % count;
    return warp;
  }
  if (can(scheduler.last)) return scheduler.last;
  std::uint32_t oldest = count;
  for (std::uint32_t warp = 0; warp < count; ++warp) {
    const auto age = [&](std::uint32_t w) { return warps_[w * schedulers_.size() + index].age; };
    if (can(warp) && (oldest == count || age(warp) < age(oldest))) oldest = warp;
  }
  return oldest;
}

}  // namespace gridloom::timing
