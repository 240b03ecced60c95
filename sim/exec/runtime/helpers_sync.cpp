// Barriers, yielding, sleeping, clocks, clusters that are cancelled.
#include <time.h>

#include <algorithm>
#include <optional>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/helpers.h"

namespace gridloom::exec {

void Helper_kBarrier(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  Unit& unit = *warp.cta->unit;
  auto* const out = static_cast<std::uint32_t*>(args[0]);
  const auto first = static_cast<std::uint32_t>(std::countr_zero(mask)) % kWarpSize;
  std::uint32_t id = static_cast<const std::uint32_t*>(args[1])[first];
  std::uint32_t threads = static_cast<const std::uint32_t*>(args[2])[first];
  const std::uint32_t predicate = *static_cast<const std::uint32_t*>(args[3]);
  const auto op = static_cast<BarrierOp>(imm & 0xff);
  const bool arrive_only = (imm & kBarrierArriveOnly) != 0;
  warp.line = line;
  if (op == BarrierOp::kClusterArrive) return unit.ArriveAtCluster(warp);
  if (op == BarrierOp::kClusterWait) return unit.WaitForCluster(warp);
  if (op == BarrierOp::kWarpGroup) {
    const std::uint32_t group = warp.ctx.warp_id / kWarpsOfGroup;
    id = kFirstGroupBarrier + group;
    threads = unit.LiveWarpsOfGroup(*warp.cta, group) * kWarpSize;
  } else if (id >= kNamedBarriers) {
    RaiseFault(warp, FaultKind::kIllegalInstruction, kNoLane, 0, line, "barrier number beyond 15");
  }
  const bool wait = op != BarrierOp::kArrive && !arrive_only;
  const std::uint32_t result = unit.ArriveAt(warp, id, threads, mask, predicate, wait, arrive_only);
  const std::uint32_t count = result & 0x7fffffffu;
  std::uint32_t value = 0;
  if (op == BarrierOp::kRedPopc) value = count;
  if (op == BarrierOp::kRedAnd) value = result >> 31;
  if (op == BarrierOp::kRedOr) value = count != 0 ? 1 : 0;
  ForEachLane(mask, [&](std::uint32_t lane) { out[lane] = value; });
}

void Helper_kBarrierWait(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  warp.cta->unit->WaitForArrivals(warp);
}

void Helper_kGiveWay(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  warp.cta->unit->GiveWay(warp);
}

void Helper_kWarpYield(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  if (line != 0) warp.line = line;
  warp.cta->unit->Yield(warp);
}

namespace {

std::optional<CountedClocks> CountedClocksOf(const Warp& warp) {
  const RecordSink* const sink = LaunchOf(warp).records;
  return sink ? sink->clocks() : std::nullopt;
}

/// How far the warp's clocks have gone since it began.
std::uint64_t& CountedCycles(Warp& warp) {
  auto& clock = warp.counted_clock;
  const std::uint64_t launch = LaunchOf(warp).serial, cta = CtaNumber(warp);
  if (clock.launch != launch || clock.cta != cta) clock = {launch, cta, 0};
  return clock.cycles;
}

std::uint64_t HostClockNs(bool timer) {
  timespec now{};
  clock_gettime(timer ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

void Helper_kNanosleep(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  // "Suspends for about that time, possibly zero" (PTX ISA): giving way to others is enough, where clocks do not count.
  Warp& warp = WarpOf(ctx);
  if (CountedClocksOf(warp)) {
    std::uint32_t longest_ns = 0;
    ForEachLane(mask, [&](std::uint32_t lane) {
      longest_ns = std::max(longest_ns, static_cast<const std::uint32_t*>(args[0])[lane]);
    });
    CountedCycles(warp) += static_cast<std::uint64_t>(longest_ns * ServicesOf(warp).clock_ghz);
  }
  if (!LaunchOf(warp).kernel->needs_fiber || LaunchOf(warp).kernel->simple_barriers) return;
  warp.line = line;
  warp.cta->unit->Yield(warp);
}

void Helper_kClock(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  const bool timer = imm == 1;
  const double ghz = ServicesOf(warp).clock_ghz;
  const std::optional<CountedClocks> counted = CountedClocksOf(warp);
  std::uint64_t cycles = 0;
  if (counted) {
    cycles = CountedCycles(warp);
    CountedCycles(warp) += CountedClocks::kCyclesPerRead;
    ++warp.cta->unit->clock_reads;
  }
  const std::uint64_t begin_ns = !counted ? HostClockNs(timer) : timer ? counted->timer_ns : counted->clock_ns;
  const std::uint64_t value = timer ? begin_ns + static_cast<std::uint64_t>(static_cast<double>(cycles) / ghz)
                                    : static_cast<std::uint64_t>(static_cast<double>(begin_ns) * ghz) + cycles;
  auto* const out = static_cast<std::uint64_t*>(args[0]);
  ForEachLane(mask, [&](std::uint32_t lane) { out[lane] = value; });
}

// What a grid does is told CTA by CTA to those who watch it: then each does its own part.
void Helper_kTryCancel(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Unit& unit = *WarpOf(ctx).cta->unit;
  Launch& launch = *unit.launch;
  const bool watched = launch.records || launch.observer || launch.ranges;
  auto* const low = static_cast<std::uint64_t*>(args[0]);
  auto* const high = static_cast<std::uint64_t*>(args[1]);
  ForEachLane(mask, [&](std::uint32_t lane) {
    low[lane] = high[lane] = 0;
    std::uint64_t cancelled = 0;
    if (watched || !launch.Take(cancelled)) return;
    const Dim3 place = launch.PlaceOf(cancelled);
    const std::uint32_t* const cluster = launch.ctx.cluster;
    low[lane] = std::uint64_t{place.x * cluster[0]} << 32 | 1;
    high[lane] = std::uint64_t{place.z * cluster[2]} << 32 | place.y * cluster[1];
    ++unit.progress;
  });
}

}  // namespace gridloom::exec
