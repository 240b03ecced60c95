// Warps without a trace: software that stays on the SM is asked what they do next (ports.h, WarpFeed). They run pieces
// of their own CTA's code, or warps of thread blocks that are no CTAs of the dispatcher's: those lie behind its slots.
#include "rewriter/support/check.h"
#include "sim/timing/sm/sm.h"

namespace gridloom::timing {

/// The warp has issued all it had.
void Sm::GoOn(Cycle now, Warp& warp) {
  if (!IsAtHome(warp)) return Finish(now, warp);  // a fed one goes on when what it asked for has come
  warp.op = nullptr;
  if (warp.state == WarpState::kFence) {
    ClearMasks(warp);
    schedulers_[warp.scheduler].memory |= Bit(warp);
    return;
  }
  Ask(now, warp);
}

void Sm::Ask(Cycle now, Warp& warp) {
  const FedPiece piece = ports_.feed->Next(now, {.sm = index_, .slot = warp.home, .number = warp.number});
  for (const FedWarp& woken : piece.wakes) WakeNext(now, woken);
  switch (piece.kind) {
    case FedPiece::Kind::kRun: return RunPiece(warp, piece);
    case FedPiece::Kind::kBlock: return Enter(now, warp, *piece.block, piece.warp);
    case FedPiece::Kind::kWait:
      ClearMasks(warp);
      schedulers_[warp.scheduler].memory |= Bit(warp);
      warp.state = WarpState::kAsleep;
      warp.wake = std::max(piece.until, now + 1);
      if (!plain_ && warp.wake != kNever) schedulers_[warp.scheduler].wheel.Add(now, warp.wake, warp.index);
      return;
    case FedPiece::Kind::kEnd: warp.fed = false; return Finish(now, warp);
  }
}

void Sm::RunPiece(Warp& warp, const FedPiece& piece) {
  warp.state = WarpState::kRunning;
  warp.trace = piece.lanes;
  warp.visit = piece.visits.data();
  warp.visits_end = warp.visit + piece.visits.size();
  warp.repeat = warp.repeats_end = nullptr;
  warp.accesses = warp.next_accesses = piece.accesses;
  if (warp.code != piece.code) {
    warp.code = piece.code;
    warp.ready.assign(piece.code->register_count + 1, 0);
  }
  GL_CHECK(warp.NextBlock(), "a warp was told to do nothing");
}

/// Registers of its own code are not the block's: what the warp still waits for comes first.
void Sm::Enter(Cycle now, Warp& warp, const FedBlock& block, std::uint32_t number) {
  const std::size_t slot = parameters_.device.sm.max_blocks + block.number;
  Cta& cta = ctas_[slot];
  if (cta.trace == nullptr) {
    cta.id = block.cta;
    cta.launch = block.launch;
    cta.shifts = block.shifts;
    cta.memory = block.memory;
    cta.trace = block.trace;
    cta.code = block.code;
    cta.warps.clear();
    cta.barriers = {};
    cta.waiting = 0;
    cta.warp_instructions = cta.thread_instructions = 0;
    cta.running = cta.undrained = static_cast<std::uint32_t>(block.trace->warps.size());
  }
  const auto index = static_cast<std::size_t>(&warp - warps_.data());
  cta.warps.push_back(static_cast<std::uint16_t>(index));
  entering_[index] = {.block = static_cast<std::uint32_t>(slot), .warp = number, .enters = true};
  ClearMasks(warp);
  warp.state = WarpState::kFinished;
  warp.wake = kNever;
  schedulers_[warp.scheduler].finished |= Bit(warp);
  EndIfDrained(now, warp);
}

/// A fed warp has drained: it begins the block that it waited with, or leaves the one that it was in.
void Sm::LeaveBlock(Cycle now, Warp& warp) {
  schedulers_[warp.scheduler].finished &= ~Bit(warp);
  Entering& entering = entering_[static_cast<std::size_t>(&warp - warps_.data())];
  warp.next_issue = std::max(warp.next_issue, now + 1);
  if (entering.enters) {
    entering.enters = false;
    warp.cta_slot = static_cast<std::uint16_t>(entering.block);
    const Cta& cta = ctas_[warp.cta_slot];
    Follow(warp, *cta.trace, *cta.code, entering.warp);
    warp.state = WarpState::kRunning;
    if (warp.NextBlock()) return Arm(now, warp);
    return Finish(now, warp);
  }
  Cta& cta = ctas_[warp.cta_slot];
  warp.cta_slot = warp.home;
  warp.op = nullptr;
  warp.parked = 0;  // its end counted as the arrival of lanes that waited at a last barrier
  ++counters_.warps;
  if (--cta.undrained == 0) {
    ++counters_.ctas;
    cta.trace.reset();
    ports_.feed->OnBlockEnd(now, index_,
                            static_cast<std::uint32_t>(&cta - ctas_.data()) - parameters_.device.sm.max_blocks,
                            cta.warp_instructions, cta.thread_instructions);
  }
  warp.state = WarpState::kRunning;
  Ask(now, warp);
  if (warp.state == WarpState::kRunning && warp.cta_slot == warp.home) Arm(now, warp);
}

/// The warp was asleep, and is asked again when that is over.
void Sm::Wake(Cycle now, Warp& warp) {
  if (warp.wake > now) {
    if (!plain_) schedulers_[warp.scheduler].wheel.Add(now, warp.wake, warp.index);
    return;
  }
  schedulers_[warp.scheduler].memory &= ~Bit(warp);
  warp.state = WarpState::kRunning;
  warp.next_issue = now;
  Ask(now, warp);
  if (warp.state == WarpState::kRunning && warp.cta_slot == warp.home) Arm(now, warp);
}

void Sm::WakeNext(Cycle now, const FedWarp& place) {
  Warp& warp = warps_[ctas_[place.slot].warps[place.number]];
  if (warp.state != WarpState::kAsleep || warp.wake <= now + 1) return;
  warp.wake = now + 1;
  if (!plain_) schedulers_[warp.scheduler].wheel.Add(now, warp.wake, warp.index);
}

void Sm::ClearMasks(const Warp& warp) {
  Scheduler& scheduler = schedulers_[warp.scheduler];
  const WarpMask bit = Bit(warp);
  scheduler.ready &= ~bit;
  scheduler.memory &= ~bit;
  scheduler.barrier &= ~bit;
  scheduler.by_pipe[warp.pipe] &= ~bit;
}

}  // namespace gridloom::timing
