// Grids without barriers, with ring barriers, with faults: every CTA runs exactly once, on any number of threads.
#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/sim/exec/runtime_harness.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

// out[linear CTA * warps + warp] += 1; checks what the warp is told about itself.
void CountWarps(WarpCtx* warp) {
  auto* const out = reinterpret_cast<std::atomic<std::uint32_t>*>(Param(warp, 0));
  const LaunchCtx& launch = *warp->launch;
  bool right = warp->cta->launch == warp->launch && warp->exited_mask == 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t thread = warp->warp_id * 32 + lane;
    if (!(warp->initial_mask >> lane & 1)) continue;
    right &=
        warp->tid[0][lane] + launch.block[0] * (warp->tid[1][lane] + launch.block[1] * warp->tid[2][lane]) == thread;
    right &= warp->tid[0][lane] < launch.block[0] && warp->tid[1][lane] < launch.block[1];
  }
  right &= warp->tid0[0] == warp->tid[0][0] && warp->tid0[1] == warp->tid[1][0] && warp->tid0[2] == warp->tid[2][0];
  warp->exited_mask = ~0u;
  out[LinearCta(warp) * launch.warps_per_cta + warp->warp_id] += right ? 1 : 1000;
}

// Each warp writes its number, waits, and reads its neighbour's; three rounds. Warp 3 leaves after the first round.
void NeighbourBarrier(WarpCtx* warp) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(warp->cta->shared_base);
  auto* const wrong = reinterpret_cast<std::atomic<std::uint32_t>*>(Param(warp, 0));
  const std::uint32_t warps = warp->launch->warps_per_cta;
  const bool ring = Param(warp, 1) != 0;
  for (std::uint32_t round = 0; round < 3; ++round) {
    shared[warp->warp_id] = warp->warp_id + round * 100;
    ring ? RingBarrier(warp) : static_cast<void>(Sync(warp));
    const std::uint32_t other = (warp->warp_id + 1) % warps;
    const bool other_left = round > 0 && other == 3;
    if (!other_left && shared[other] != other + round * 100) ++*wrong;
    if (round == 0 && warp->warp_id == 3) return;
    ring ? RingBarrier(warp) : static_cast<void>(Sync(warp));
  }
}

void StoreToParam(WarpCtx* warp) {
  if (LinearCta(warp) == Param(warp, 1)) {
    alignas(64) std::uint64_t addresses[32] = {};
    alignas(64) std::uint32_t values[32] = {};
    for (auto& address : addresses) address = Param(warp, 0);
    void* args[] = {addresses, values};
    CallHelper(warp, Helper::kStoreSlow, 0x00000100, 33, 4, args);
  }
  auto* const done = reinterpret_cast<std::atomic<std::uint32_t>*>(Param(warp, 2));
  ++*done;
}

}  // namespace

TEST_CASE("Run_EveryShape_RunsEachWarpOnceWithItsIndices") {
  for (const unsigned threads : {1u, 2u, 8u}) {
    Harness h(threads);
    h.Add("count", {.entry = &CountWarps});
    for (const auto& [grid, block] : std::vector<std::pair<Dim3, Dim3>>{{{1, 1, 1}, {1, 1, 1}},
                                                                        {{7, 5, 3}, {32, 1, 1}},
                                                                        {{3, 2, 2}, {5, 7, 3}},
                                                                        {{1000, 1, 1}, {96, 1, 1}},
                                                                        {{2, 2, 1}, {1024, 1, 1}},
                                                                        {{9, 1, 4}, {1, 1, 64}}}) {
      const std::size_t warps = grid.count() * ((block.count() + 31) / 32);
      auto* const out = h.Allocate<std::uint32_t>(warps);
      LaunchStats stats;
      const LaunchFault fault =
          h.Run("count", grid, block, {reinterpret_cast<std::uint64_t>(out)}, 0, {}, false, &stats);
      CHECK(fault.kind == FaultKind::kNone);
      CHECK(stats.warps == warps);
      for (std::size_t i = 0; i < warps; ++i) REQUIRE(out[i] == 1);
      h.memory->Free(reinterpret_cast<std::uint64_t>(out));
    }
  }
}

TEST_CASE("Run_FromManyThreads_AllGridsComplete") {
  Harness h(2);
  h.Add("count", {.entry = &CountWarps});
  h.Add("barrier",
        {.entry = &NeighbourBarrier, .needs_fiber = true, .simple_barriers = true, .static_shared_bytes = 256});
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        constexpr std::size_t kCtas = 64;
        const auto out = h.memory->Allocate(kCtas * 4 * 4, 256, MemoryKind::kDevice);
        std::vector<std::uint64_t> params{out, 1};
        LaunchParams launch;
        launch.program = h.program;
        launch.kernel = h.program->FindKernel(i % 2 == 0 ? "count" : "barrier");
        launch.grid = {kCtas, 1, 1};
        launch.block = {128, 1, 1};
        launch.params = std::as_bytes(std::span(params));
        if (h.engine->Run(launch).kind != FaultKind::kNone) ++failures;
        const auto* const counts = reinterpret_cast<const std::uint32_t*>(out);
        for (std::size_t w = 0; w < kCtas * 4; ++w)
          if (counts[w] != (i % 2 == 0 ? 1 : 0)) ++failures;
        h.memory->Free(out);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
}

TEST_CASE("Barrier_RingAndGeneral_OrderWarpsAlsoWhenSomeEnd") {
  for (const unsigned threads : {1u, 2u, 8u}) {
    Harness h(threads);
    h.Add("ring",
          {.entry = &NeighbourBarrier, .needs_fiber = true, .simple_barriers = true, .static_shared_bytes = 256});
    h.Add("general", {.entry = &NeighbourBarrier, .needs_fiber = true, .static_shared_bytes = 256});
    auto* const wrong = h.Allocate<std::uint32_t>(1);
    for (const std::uint32_t block : {32u, 64u, 128u, 256u, 1024u}) {
      for (const bool ring : {true, false}) {
        const LaunchFault fault = h.Run(ring ? "ring" : "general", {200, 1, 1}, {block, 1, 1},
                                        {reinterpret_cast<std::uint64_t>(wrong), ring});
        INFO(fault.text);
        CHECK(fault.kind == FaultKind::kNone);
        CHECK(*wrong == 0);
      }
    }
  }
}

TEST_CASE("Run_FaultInTheMiddle_EndsTheGridAndNamesTheThread") {
  for (const unsigned threads : {1u, 2u}) {
    for (const NativeKernel& kernel :
         {NativeKernel{.entry = &StoreToParam},
          NativeKernel{.entry = &StoreToParam, .needs_fiber = true, .simple_barriers = true},
          NativeKernel{.entry = &StoreToParam, .needs_fiber = true}}) {
      Harness h(threads);
      h.Add("store", kernel);
      auto* const done = h.Allocate<std::uint32_t>(1);
      const std::uint64_t victim = h.memory->Allocate(4096, 256, MemoryKind::kDevice);
      const auto done_address = reinterpret_cast<std::uint64_t>(done);
      LaunchFault fault = h.Run("store", {100, 1, 1}, {64, 1, 1}, {victim + 4096 + 16, 50, done_address});
      CHECK(fault.kind == FaultKind::kIllegalAddress);
      CHECK(fault.cta.x == 50);
      CHECK(fault.thread.x % 32 == 8);
      CHECK(fault.ptx_line == 33);
      CHECK(fault.address == victim + 4096 + 16);
      CHECK(fault.kernel == "store");
      CHECK(fault.text.find("16 bytes past the end of the allocation of 4096 bytes") != std::string::npos);
      CHECK(*done < 200);
      fault = h.Run("store", {100, 1, 1}, {64, 1, 1}, {victim + 2, 50, done_address});
      CHECK(fault.kind == FaultKind::kMisalignedAddress);
      fault = h.Run("store", {100, 1, 1}, {64, 1, 1}, {0x1000, 50, done_address});
      CHECK(fault.kind == FaultKind::kIllegalAddress);
      *done = 0;
      fault = h.Run("store", {100, 1, 1}, {64, 1, 1}, {victim, 50, done_address});
      CHECK(fault.kind == FaultKind::kNone);
      CHECK(*done == 200);
    }
  }
}

TEST_CASE("Run_AccessBesideAnAllocationInItsDevicePage_GoesOnAndIsLoggedOnce") {
  std::string log;
  Engine::Options options;
  options.log = [&](std::string_view message) { log += std::string(message) + "\n"; };
  Harness h(1, options, {.device_page_bytes = 2u << 20});
  h.Add("store", {.entry = &StoreToParam});
  auto* const done = h.Allocate<std::uint32_t>(1);
  const std::uint64_t victim = h.memory->Allocate(4096, 256, MemoryKind::kDevice);
  for (const std::uint64_t past : {4096 + 16, 4096 + 20000}) {
    *done = 0;
    const LaunchFault fault =
        h.Run("store", {100, 1, 1}, {64, 1, 1}, {victim + past, 50, reinterpret_cast<std::uint64_t>(done)});
    INFO(fault.text);
    CHECK(fault.kind == FaultKind::kNone);
    CHECK(*done == 200);
  }
  CHECK(log.find("kernel store, CTA (50,0,0), PTX line 33") != std::string::npos);
  CHECK(log.find("16 bytes past the end of the allocation of 4096 bytes") != std::string::npos);
  CHECK(std::ranges::count(log, '\n') == 1);
  const LaunchFault fault =
      h.Run("store", {100, 1, 1}, {64, 1, 1}, {victim + (8u << 20), 50, reinterpret_cast<std::uint64_t>(done)});
  CHECK(fault.kind == FaultKind::kIllegalAddress);
}
