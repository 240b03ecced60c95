// Issue: which warps are ready, which of them a scheduler picks, and what an instruction does to its warp.
#include <algorithm>

#include "sim/timing/sm/sm.h"

namespace gridloom::timing {
namespace {

constexpr auto kMemoryPipe = static_cast<std::size_t>(sim::Pipe::kMemory);

}  // namespace

Cycle* Sm::FreeUnit(Cycle now, std::uint32_t scheduler, std::size_t pipe) {
  Cycle* units = units_[pipe].data() + (private_[pipe] ? scheduler * per_scheduler_[pipe] : 0);
  for (Cycle* unit = units; unit != units + UnitCount(pipe); ++unit) {
    if (*unit <= now) return unit;
  }
  return nullptr;
}

/// Ready warps whose pipe can take an instruction now.
WarpMask Sm::Eligible(Cycle now, std::uint32_t index) {
  const Scheduler& scheduler = schedulers_[index];
  WarpMask eligible = scheduler.ready;
  if (timing_.sm.warp_order == sim::WarpOrder::kTwoLevel) eligible &= scheduler.active;
  if (memory_.full()) eligible &= ~scheduler.by_pipe[kMemoryPipe];
  for (std::size_t pipe = 0; eligible != 0 && pipe < sim::kPipeCount; ++pipe) {
    if ((eligible & scheduler.by_pipe[pipe]) == 0) continue;
    if (FreeUnit(now, index, pipe) == nullptr) eligible &= ~scheduler.by_pipe[pipe];
  }
  return eligible;
}

void Sm::RunScheduler(Cycle now, std::uint32_t index) {
  Scheduler& scheduler = schedulers_[index];
  if (plain_) {
    ScanWarps(now, index);
  } else {
    for (WarpMask woken = scheduler.wheel.Take(now); woken != 0; woken &= woken - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(woken));
      Warp& warp = warps_[lane * schedulers_.size() + index];
      if (warp.state == WarpState::kAsleep) [[unlikely]]
        Wake(now, warp);
      else if (gated_ && ConcernsGates(warp)) [[unlikely]] WakeGated(now, scheduler, warp);
      else if (warp.wake <= now) scheduler.ready |= WarpMask{1} << lane;
      else scheduler.wheel.Add(now, warp.wake, lane);
    }
  }
  if (timing_.sm.warp_order == sim::WarpOrder::kTwoLevel) scheduler.Refill(timing_.sm.active_warps);
  const WarpMask eligible = scheduler.ready == 0 ? 0 : Eligible(now, index);
  if (eligible == 0) {
    ++StallCounter(scheduler, memory_.full(), counters_);
    return;
  }
  const std::uint32_t picked = plain_ ? PickByScan(index, eligible) : scheduler.Pick(timing_.sm.warp_order, eligible);
  scheduler.last = picked;
  ++counters_.issue_cycles;
  Warp& warp = warps_[picked * schedulers_.size() + index];
  const DecodedOp& op = *warp.op;
  Issue(now, warp, *FreeUnit(now, index, op.pipe));
  if (timing_.sm.issue_width == 2) TryPair(now, index, warp, op);
  if (warp.state == WarpState::kRunning) Arm(now, warp);
}

/// A second, independent instruction of the warp in the same cycle.
void Sm::TryPair(Cycle now, std::uint32_t index, Warp& warp, const DecodedOp& first) {
  const bool goes_on = first.kind == OpKind::kArithmetic || first.kind == OpKind::kMemory;
  if (!goes_on || warp.state != WarpState::kRunning || warp.RegistersReady() > now || warp.next_issue > now + 1) return;
  const DecodedOp& second = *warp.op;
  if (second.pipe == first.pipe && !timing_.sm.same_pipe_pairs) return;
  if (second.pipe == kMemoryPipe && memory_.full()) return;
  if (gated_ && AskGates(now, warp).until > now) return;
  Cycle* unit = FreeUnit(now, index, second.pipe);
  if (unit == nullptr) return;
  ++counters_.dual_issues;
  Issue(now, warp, *unit);
}

/// Executes the warp's next instruction and moves on; the caller arms the warp if it still runs.
void Sm::Issue(Cycle now, Warp& warp, Cycle& unit) {
  const DecodedOp& op = *warp.op;
  Cta& cta = ctas_[warp.cta_slot];
  const auto lanes = static_cast<std::uint64_t>(std::popcount(warp.mask));
  unit = now + op.interval;
  ++counters_.warp_instructions;
  ++cta.warp_instructions;
  counters_.thread_instructions += lanes;
  cta.thread_instructions += lanes;
  warp.next_issue = now + 1;
  switch (op.kind) {
    case OpKind::kArithmetic:
      if (op.parameters) [[unlikely]]
        ReadParameters(now, warp, op);
      else warp.SetDestinations(op, now + op.latency);
      break;
    case OpKind::kBranch:
      warp.SetDestinations(op, now + op.latency);
      warp.next_issue = now + op.latency;
      break;
    case OpKind::kMemory: IssueMemory(now, warp, op); break;
    case OpKind::kFence:
      warp.next_issue = now + op.latency;
      if (warp.stores > 0) warp.state = WarpState::kFence;
      break;
    case OpKind::kBarrier: warp.SetDestinations(op, now + op.latency); break;
  }
  if (warp.event_op == warp.op) [[unlikely]]
    warp.next_issue = std::max(warp.next_issue, Signal(now, warp));
  const bool parks = op.kind == OpKind::kBarrier && ParksLanes(now, warp, op);
  const bool more = warp.Advance();
  const bool asks = !more && IsAtHome(warp);
  if (asks) warp.op = nullptr;
  // A warp that ends behind a barrier of all counts as arrived by its end; at one of some it arrives, and has nothing
  // to wait for.
  const bool goes_on = more || asks;
  if (op.kind == OpKind::kBarrier && !parks && (goes_on || op.barrier_warps > 0)) IssueBarrier(now, warp, op, goes_on);
  if (!more && !(asks && op.kind == OpKind::kBarrier)) return GoOn(now, warp);
  if (asks && warp.state != WarpState::kBarrier) return;  // it came last, and has been told what comes next
  // Lanes that wait at a barrier go on: all others of the warp have arrived, or ended.
  if ((warp.parked & warp.mask) != 0) {
    warp.parked = 0;
    ArriveAt(now, warp, warp.barrier, ctas_[warp.cta_slot].barriers[warp.barrier].warps, true);
  }
  if (warp.state == WarpState::kRunning) return;
  Scheduler& scheduler = schedulers_[warp.scheduler];
  scheduler.ready &= ~Bit(warp);
  (warp.state == WarpState::kBarrier ? scheduler.barrier : scheduler.memory) |= Bit(warp);
}

/// Operands from the constant bank hold up the warp, loads from it what reads their results.
void Sm::ReadParameters(Cycle now, Warp& warp, const DecodedOp& op) {
  const Cycle there = parameter_bank_.Read(now, ctas_[warp.cta_slot].launch);
  warp.SetDestinations(op, std::max(now + op.latency, there));
  if (op.holds_warp) warp.next_issue = std::max(warp.next_issue, there);
}

void Sm::IssueMemory(Cycle now, Warp& warp, const DecodedOp& op) {
  ++counters_.memory_instructions;
  warp.granted = false;
  const bool returns = (op.flags & trace::kStore) == 0;
  if (returns) {
    warp.SetDestinations(op, kNever);
    ++warp.loads;
  }
  if (!ports_.access_events.empty()) [[unlikely]]
    TellAccess(now, warp);
  warp.stores += memory_.Accept(NextAccess(warp));
}

/// The warp's next instruction, one of memory.
MemoryInstruction Sm::NextAccess(const Warp& warp) const {
  const Cta& cta = ctas_[warp.cta_slot];
  const DecodedCode::Access& access = warp.AccessOf(*warp.op);
  trace::MemoryAccess record{};  // of a part that no lane goes through
  if ((warp.absent >> access.part & 1) == 0) record = warp.accesses[warp.PartRecords(access.part) + access.record];
  const bool goes_as_one = access.one_lane && record.stride == 0 && (!access.whole_warp || ~record.mask == 0);
  if (goes_as_one) record.mask &= ~record.mask + 1;
  return {.op = warp.op,
          .cta = warp.trace,
          .access = record,
          .shift = cta.shifts.empty() ? 0 : cta.shifts[access.instruction],
          .memory = cta.memory,
          .launch = cta.launch,
          .warp = static_cast<std::uint16_t>(&warp - warps_.data())};
}

/// Lanes of a warp may come to a barrier apart. Those that are there first wait while the others go on, which is to be
/// seen by the lanes that the trace has next; the warp arrives when its last ones do.
bool Sm::ParksLanes(Cycle now, Warp& warp, const DecodedOp& op) {
  const std::uint32_t lanes = warp.parked | warp.mask, next = warp.NextLanes();
  if ((op.flags & trace::kArrive) != 0 || next == 0 || (next & lanes) != 0) return false;
  if (warp.parked != 0 && warp.barrier != op.barrier) {
    // At two barriers at once. The warp waits at the second; nobody else has to wait for it at the first.
    ArriveAt(now, warp, warp.barrier, ctas_[warp.cta_slot].barriers[warp.barrier].warps, false);
  }
  ctas_[warp.cta_slot].barriers[op.barrier].warps = op.barrier_warps;
  warp.parked = lanes;
  warp.barrier = op.barrier;
  return true;
}

void Sm::IssueBarrier(Cycle now, Warp& warp, const DecodedOp& op, bool goes_on) {
  const bool waits = goes_on && (op.flags & trace::kArrive) == 0;
  if (waits) warp.parked = 0;
  ArriveAt(now, warp, op.barrier, op.barrier_warps, waits);
}

void Sm::ArriveAt(Cycle now, Warp& warp, std::uint8_t number, std::uint8_t warps, bool waits) {
  Cta& cta = ctas_[warp.cta_slot];
  Barrier& barrier = cta.barriers[number];
  ++barrier.arrived;
  barrier.warps = warps;
  if (waits) {
    warp.state = WarpState::kBarrier;
    warp.barrier = number;
    ++cta.waiting;
  }
  OpenBarriers(now, cta);
}

/// Lets go the warps at barriers that are complete. Warps that have ended are not waited for. A trace knows neither
/// numbers of barriers nor of threads that come from registers, so warps may seem to wait for each other at different
/// ones: when nobody is left who could come, all go on.
void Sm::OpenBarriers(Cycle now, Cta& cta) {
  for (std::size_t b = 0; b < kBarriers; ++b) {
    const Barrier& barrier = cta.barriers[b];
    const std::uint32_t expected = barrier.warps > 0 ? barrier.warps : cta.running;
    if (barrier.arrived != 0 && barrier.arrived >= expected) OpenBarrier(now, cta, b);
  }
  if (cta.waiting == 0 || cta.waiting < cta.running) return;
  for (std::size_t b = 0; b < kBarriers; ++b) OpenBarrier(now, cta, b);
}

void Sm::OpenBarrier(Cycle now, Cta& cta, std::size_t number) {
  cta.barriers[number].arrived = 0;
  for (const std::uint16_t w : cta.warps) {
    Warp& warp = warps_[w];
    // The places of warps that have ended may have gone to another CTA.
    if (warp.state != WarpState::kBarrier || warp.barrier != number || &ctas_[warp.cta_slot] != &cta) continue;
    --cta.waiting;
    warp.state = WarpState::kRunning;
    warp.next_issue = now + timing_.of(trace::OpClass::kBarrier).latency;
    schedulers_[warp.scheduler].barrier &= ~Bit(warp);
    if (warp.op == nullptr) GoOn(now, warp);
    if (warp.state == WarpState::kRunning) Arm(now, warp);
  }
}

/// Computes when the warp's next instruction can issue, and has the scheduler look at it then.
void Sm::Arm(Cycle now, Warp& warp) {
  Scheduler& scheduler = schedulers_[warp.scheduler];
  const WarpMask bit = Bit(warp);
  scheduler.by_pipe[warp.pipe] &= ~bit;
  warp.pipe = warp.op->pipe;
  scheduler.by_pipe[warp.pipe] |= bit;
  scheduler.ready &= ~bit;
  scheduler.memory &= ~bit;
  const Cycle registers = warp.RegistersReady();
  warp.wake = registers == kNever ? kNever : std::max(registers, warp.next_issue);
  if (gated_ && warp.op->gated) [[unlikely]]
    return ArmGated(now, scheduler, warp);
  if (warp.wake == kNever) scheduler.memory |= bit;
  else if (warp.wake <= now) scheduler.ready |= bit;
  else if (!plain_) scheduler.wheel.Add(now, warp.wake, warp.index);
}

void Sm::Finish(Cycle now, Warp& warp) {
  Scheduler& scheduler = schedulers_[warp.scheduler];
  const WarpMask bit = Bit(warp);
  scheduler.ready &= ~bit;
  scheduler.memory &= ~bit;
  scheduler.barrier &= ~bit;
  scheduler.by_pipe[warp.pipe] &= ~bit;
  scheduler.finished |= bit;
  warp.state = WarpState::kFinished;
  warp.wake = kNever;
  Cta& cta = ctas_[warp.cta_slot];
  --cta.running;
  OpenBarriers(now, cta);
  EndIfDrained(now, warp);
}

/// Why the scheduler does not issue: what the warps that are closest to it wait for.
std::uint64_t& Sm::StallCounter(const Scheduler& scheduler, bool queue_full, SmCounters& counters) const {
  if (scheduler.ready != 0) {
    const bool queue = queue_full && (scheduler.ready & ~scheduler.by_pipe[kMemoryPipe]) == 0;
    return queue ? counters.stall_load_store : counters.stall_pipe;
  }
  const WarpMask waiting = scheduler.memory | scheduler.barrier | scheduler.finished;
  if ((scheduler.resident & ~waiting) != 0) return counters.stall_dependency;
  if (scheduler.memory != 0) {
    if (gated_) [[unlikely]]
      return MemoryStallCounter(scheduler, counters);
    return counters.stall_memory;
  }
  if (scheduler.barrier != 0) return counters.stall_barrier;
  return scheduler.finished != 0 ? counters.stall_finish : counters.stall_empty;
}

/// First cycle after `now` in which a scheduler can issue, if no memory comes back before.
Cycle Sm::NextIssue(Cycle now) const {
  Cycle next = kNever;
  for (std::uint32_t s = 0; s < schedulers_.size(); ++s) {
    const Scheduler& scheduler = schedulers_[s];
    next = std::min(next, scheduler.wheel.Next(now));
    // With the load/store queue full, the unit's next step comes first.
    const WarpMask ready = memory_.full() ? scheduler.ready & ~scheduler.by_pipe[kMemoryPipe] : scheduler.ready;
    if (ready == 0) continue;
    for (std::size_t pipe = 0; pipe < sim::kPipeCount; ++pipe) {
      if ((ready & scheduler.by_pipe[pipe]) == 0) continue;
      const Cycle* units = UnitsBegin(s, pipe);
      next = std::min(next, std::max(now + 1, *std::min_element(units, units + UnitCount(pipe))));
    }
    if (next == now + 1) return next;
  }
  return next;
}

}  // namespace gridloom::timing
