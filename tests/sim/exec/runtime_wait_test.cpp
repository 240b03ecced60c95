// Warps and CTAs that wait for each other: named barriers, reductions, spinning, clusters, deadlocks.
#include <catch2/catch.hpp>
#include <chrono>

#include "sim/exec/contract/warp_switch.h"
#include "tests/sim/exec/runtime_harness.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

std::atomic<std::uint32_t>& Cell(const WarpCtx* warp, unsigned param, std::uint64_t index = 0) {
  return reinterpret_cast<std::atomic<std::uint32_t>*>(Param(warp, param))[index];
}
std::uint32_t* Shared(const WarpCtx* warp) {
  return reinterpret_cast<std::uint32_t*>(warp->cta->shared_base + warp->cta->shared_offset);
}

// Producer warps 0, 1 fill, arrive at barrier 1; consumer warps 2, 3 wait for it. Then the other way at barrier 2.
void ProducerConsumer(WarpCtx* warp) {
  std::uint32_t* const shared = Shared(warp);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    if (warp->warp_id < 2) {
      shared[warp->warp_id] = round;
      Sync(warp, BarrierOp::kArrive, 1, 128);
      Sync(warp, BarrierOp::kSync, 2, 128);
    } else {
      Sync(warp, BarrierOp::kSync, 1, 128);
      if (shared[0] != round || shared[1] != round) ++Cell(warp, 0);
      Sync(warp, BarrierOp::kArrive, 2, 128);
    }
  }
}

void Reductions(WarpCtx* warp) {
  const std::uint32_t warps = warp->launch->warps_per_cta;
  for (std::uint32_t round = 0; round < 5; ++round) {
    const std::uint32_t predicate = round == 4 ? ~0u : 1u << (warp->warp_id + round);
    const bool last = warp->warp_id + 1 == warps;
    if (Sync(warp, BarrierOp::kRedPopc, 0, 0, predicate) != (round == 4 ? 32 * warps : warps)) ++Cell(warp, 0);
    if (Sync(warp, BarrierOp::kRedAnd, 3, 0, predicate) != (round == 4 ? 1u : 0u)) ++Cell(warp, 0);
    if (Sync(warp, BarrierOp::kRedOr, 15, 0, last && round == 2 ? 1 : 0) != (round == 2 ? 1u : 0u)) ++Cell(warp, 0);
  }
}

// Warp 0 comes to the barrier in two halves, as a diverged warp does.
void DivergedArrival(WarpCtx* warp) {
  std::uint32_t* const shared = Shared(warp);
  for (std::uint32_t round = 1; round <= 10; ++round) {
    shared[warp->warp_id] = round;
    if (warp->warp_id == 0) {
      Sync(warp, BarrierOp::kSync, 0, 0, 0, 0x0000ffff, 5, kBarrierArriveOnly);
      Sync(warp, BarrierOp::kSync, 0, 0, 0, 0xffff0000, 6, kBarrierArriveOnly);
      CallHelper(warp, Helper::kBarrierWait, ~0u, 0, 0, nullptr);
    } else {
      Sync(warp);
    }
    for (std::uint32_t w = 0; w < warp->launch->warps_per_cta; ++w)
      if (shared[w] != round) ++Cell(warp, 0);
    Sync(warp);
  }
}

// CTA i waits until CTA i + 1 (or i - 1) has passed; the first one to pass is the last (or first) CTA.
void PassOn(WarpCtx* warp) {
  const std::uint64_t ctas = warp->launch->grid[0];
  const bool upwards = Param(warp, 1) != 0;
  const std::uint64_t me = LinearCta(warp);
  const bool first = upwards ? me == 0 : me + 1 == ctas;
  if (warp->warp_id == 0) {
    while (!first && Cell(warp, 0, upwards ? me - 1 : me + 1) == 0) Yield(warp);
  }
  Sync(warp);
  if (warp->warp_id == 0) Cell(warp, 0, me) = 1;
}

// grid.sync by counting, ten times.
void GridSync(WarpCtx* warp) {
  const auto ctas = static_cast<std::uint32_t>(warp->launch->grid[0]);
  for (std::uint32_t round = 1; round <= 10; ++round) {
    Cell(warp, 1, LinearCta(warp)) = round;
    Sync(warp);
    if (warp->warp_id == 0) {
      ++Cell(warp, 0);
      while (Cell(warp, 0) < ctas * round) Yield(warp);
    }
    Sync(warp);
    for (std::uint32_t i = 0; i < ctas; ++i)
      if (Cell(warp, 1, i) < round) ++Cell(warp, 2);
  }
}

void SpinLock(WarpCtx* warp) {
  for (int i = 0; i < 20; ++i) {
    std::uint32_t expected = 0;
    while (!Cell(warp, 0).compare_exchange_strong(expected, 1)) {
      expected = 0;
      Yield(warp);
    }
    auto* const counter = reinterpret_cast<std::uint32_t*>(Param(warp, 1));
    const std::uint32_t seen = *counter;
    if (i % 3 == 0) Yield(warp);  // the holder loses its turn
    *counter = seen + 1;
    Cell(warp, 0) = 0;
  }
}

void HalfMissing(WarpCtx* warp) {
  if (warp->warp_id == 1) Sync(warp, BarrierOp::kSync, 1, 64, 0, ~0u, 40);  // nobody else comes to barrier 1
  if (warp->warp_id == 2) Sync(warp, BarrierOp::kSync, 2, 128, 0, ~0u, 41);
}

void SpinForever(WarpCtx* warp) {
  if (warp->warp_id != 0) Sync(warp, BarrierOp::kSync, 0, 0, 0, ~0u, 50);
  while (Cell(warp, 0) == 0) Yield(warp, 51);
  Sync(warp);
}

void SpinWithCounter(WarpCtx* warp) {
  for (std::uint64_t i = 0; i < Param(warp, 0); ++i) Yield(warp, 60);
}

// Every CTA of the cluster writes into its right neighbour's shared memory.
void ClusterRing(WarpCtx* warp) {
  const CtaCtx& cta = *warp->cta;
  const LaunchCtx& launch = *warp->launch;
  const std::uint32_t size = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  const std::uint32_t right = (cta.cluster_rank + 1) % size;
  auto* const theirs = reinterpret_cast<std::uint32_t*>(cta.shared_base + std::uint64_t{right} * launch.shared_stride);
  if (cta.shared_offset != cta.cluster_rank * launch.shared_stride || cta.shared_bytes != size * launch.shared_stride)
    ++Cell(warp, 0);
  for (std::uint32_t round = 1; round <= 5; ++round) {
    theirs[warp->warp_id] = cta.cluster_rank * 100 + round;
    Sync(warp, BarrierOp::kClusterArrive);
    Sync(warp, BarrierOp::kClusterWait);
    if (Shared(warp)[warp->warp_id] != (cta.cluster_rank + size - 1) % size * 100 + round) ++Cell(warp, 0);
    Sync(warp, BarrierOp::kClusterArrive);
    Sync(warp, BarrierOp::kClusterWait);
  }
  Cell(warp, 1, LinearCta(warp)) += 1;
}

constexpr NativeKernel General(WarpEntry entry) {
  return {.entry = entry, .needs_fiber = true, .static_shared_bytes = 512};
}

}  // namespace

TEST_CASE("Barrier_NamedCountedArriveAndReductions_WorkAsPtxSays") {
  for (const unsigned threads : {1u, 2u}) {
    Harness h(threads);
    h.Add("pc", General(&ProducerConsumer));
    h.Add("red", General(&Reductions));
    h.Add("diverged", General(&DivergedArrival));
    auto* const wrong = h.Allocate<std::uint32_t>(1);
    const auto param = reinterpret_cast<std::uint64_t>(wrong);
    for (const char* const name : {"pc", "red", "diverged"}) {
      const LaunchFault fault = h.Run(name, {30, 1, 1}, {128, 1, 1}, {param});
      INFO(name << ": " << fault.text);
      CHECK(fault.kind == FaultKind::kNone);
      CHECK(*wrong == 0);
    }
  }
}

TEST_CASE("Spin_BetweenCtas_FinishesOnEveryNumberOfThreads") {
  for (const unsigned threads : {1u, 2u, 8u}) {
    Harness h(threads);
    h.Add("pass", General(&PassOn));
    h.Add("grid", General(&GridSync));
    h.Add("lock", General(&SpinLock));
    for (const std::uint64_t upwards : {1u, 0u}) {
      auto* const flags = h.Allocate<std::uint32_t>(100);
      const LaunchFault fault =
          h.Run("pass", {100, 1, 1}, {64, 1, 1}, {reinterpret_cast<std::uint64_t>(flags), upwards});
      INFO(fault.text);
      CHECK(fault.kind == FaultKind::kNone);
      for (int i = 0; i < 100; ++i) CHECK(flags[i] == 1);
    }
    auto* const cells = h.Allocate<std::uint32_t>(300);
    const auto at = [&](int i) { return reinterpret_cast<std::uint64_t>(cells + i); };
    CHECK(h.Run("grid", {60, 1, 1}, {96, 1, 1}, {at(0), at(100), at(1)}, 0, {}, true).kind == FaultKind::kNone);
    CHECK(cells[1] == 0);
    CHECK(cells[0] == 600);
    CHECK(h.Run("lock", {20, 1, 1}, {128, 1, 1}, {at(2), at(3)}).kind == FaultKind::kNone);
    CHECK(cells[3] == 20 * 4 * 20);
  }
}

TEST_CASE("Run_CooperativeGridBeyondTheDevice_IsRefused") {
  Harness h(1);
  h.Add("grid", General(&GridSync));
  const LaunchFault fault = h.Run("grid", {4 * 32 + 1, 1, 1}, {64, 1, 1}, {0, 0, 0}, 0, {}, true);
  CHECK(fault.kind == FaultKind::kOutOfMemory);
  CHECK(fault.text == "kernel grid: a cooperative grid of 129 CTAs; the device holds 128 of them at the same time");
}

TEST_CASE("Barrier_ThatCannotComplete_IsADeadlockNamingTheWarps") {
  Harness h(1);
  h.Add("half", General(&HalfMissing));
  const LaunchFault fault = h.Run("half", {3, 1, 1}, {96, 1, 1});
  CHECK(fault.kind == FaultKind::kDeadlock);
  CHECK(fault.text.find("warp 1 of CTA (0,0,0) waits at barrier 1 (PTX line 40), warp 2 of CTA (0,0,0) waits at "
                        "barrier 2 (PTX line 41)") != std::string::npos);
}

namespace {

Engine::Options WatchedFor(double seconds) {
  Engine::Options options;
  options.watchdog_seconds = seconds;
  return options;
}

}  // namespace

TEST_CASE("Spin_WithoutEnd_EndsAfterTheWatchdogsTime") {
  for (const unsigned threads : {1u, 2u}) {
    Harness h(threads, WatchedFor(0.2));
    h.Add("spin", General(&SpinForever));
    h.Add("count", General(&SpinWithCounter));
    auto* const flag = h.Allocate<std::uint32_t>(1);
    const LaunchFault fault = h.Run("spin", {5, 1, 1}, {96, 1, 1}, {reinterpret_cast<std::uint64_t>(flag)});
    CHECK(fault.kind == FaultKind::kDeadlock);
    INFO(fault.text);
    CHECK(fault.text.find("spins (PTX line 51)") != std::string::npos);
    CHECK(fault.text.find("waits at barrier 0 (PTX line 50)") != std::string::npos);
    // Warps whose registers change are at work …
    std::uint64_t yields = 1'000'000;
    LaunchFault working;
    std::chrono::steady_clock::duration took;
    do {  // until one run is longer than the watchdog's time, and far from ten times as long
      const auto start = std::chrono::steady_clock::now();
      working = h.Run("count", {2, 1, 1}, {32, 1, 1}, {yields += yields / 2});
      took = std::chrono::steady_clock::now() - start;
    } while (working.kind == FaultKind::kNone && took < std::chrono::milliseconds(250));
    INFO(working.text);
    // A busy machine may stretch even the first run that is long enough to ten times the watchdog's.
    const bool far_too_long = took >= std::chrono::seconds(2);
    CHECK((working.kind == FaultKind::kNone || far_too_long));
  }
}

// … unless nothing but counters has changed for ten times as long.
TEST_CASE("Spin_ThatOnlyCounts_EndsAfterTenTimesTheWatchdogsTime") {
  for (const unsigned threads : {1u, 2u}) {
    Harness h(threads, WatchedFor(0.02));
    h.Add("count", General(&SpinWithCounter));
    const auto start = std::chrono::steady_clock::now();
    const LaunchFault fault = h.Run("count", {2, 1, 1}, {32, 1, 1}, {std::uint64_t{1} << 62});
    CHECK(fault.kind == FaultKind::kDeadlock);
    CHECK(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(200));
  }
}

TEST_CASE("Run_Clusters_ShareWindowsAndBarriers") {
  for (const unsigned threads : {1u, 2u}) {
    Harness h(threads);
    h.Add("cluster", General(&ClusterRing));
    auto* const cells = h.Allocate<std::uint32_t>(100);
    const auto at = [&](int i) { return reinterpret_cast<std::uint64_t>(cells + i); };
    const LaunchFault fault = h.Run("cluster", {8, 2, 2}, {64, 1, 1}, {at(0), at(1)}, 0, {4, 2, 1});
    INFO(fault.text);
    CHECK(fault.kind == FaultKind::kNone);
    CHECK(cells[0] == 0);
    for (int i = 0; i < 32; ++i) CHECK(cells[1 + i] == 2);
    CHECK(h.Run("cluster", {6, 1, 1}, {64, 1, 1}, {at(0), at(1)}, 0, {4, 1, 1}).kind == FaultKind::kCompile);
  }
}
