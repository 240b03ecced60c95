// What the runtime itself costs. Hidden: run with `runtime_test [speed]`. One thread unless said otherwise, best of
// many.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>

#include "tests/sim/exec/runtime_harness.h"

using namespace gridloom;
using namespace gridloom::test;

namespace {

void Nothing(WarpCtx*) {}
void Barriers(WarpCtx* warp) {
  for (std::uint64_t i = 0; i < Param(warp, 0); ++i) RingBarrier(warp);
}
void GeneralBarriers(WarpCtx* warp) {
  for (std::uint64_t i = 0; i < Param(warp, 0); ++i) Sync(warp);
}

double BestNs(int repeats, const std::function<void()>& work) {
  double best = 1e18;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

}  // namespace

TEST_CASE("Speed", "[.speed]") {
  for (const unsigned threads : {1u, 2u}) {
    Harness h(threads);
    h.Add("nothing", {.entry = &Nothing});
    h.Add("ring", {.entry = &Barriers, .needs_fiber = true, .simple_barriers = true});
    h.Add("general", {.entry = &GeneralBarriers, .needs_fiber = true});
    std::vector<std::uint64_t> params{0};
    LaunchParams launch;
    launch.program = h.program;
    launch.params = std::as_bytes(std::span(params));
    const auto measure = [&](const char* kernel, std::uint32_t ctas, std::uint32_t block, std::uint64_t barriers = 0) {
      params[0] = barriers;
      launch.kernel = h.program->FindKernel(kernel);
      launch.grid = {ctas, 1, 1};
      launch.block = {block, 1, 1};
      return BestNs(200, [&] { h.engine->Run(launch); });
    };
    std::printf("threads %u\n", threads);
    std::printf("  launch of one warp              %8.0f ns\n", measure("nothing", 1, 32));
    std::printf("  launch of one warp, ring        %8.0f ns\n", measure("ring", 1, 32));
    std::printf("  launch of one warp, general     %8.0f ns\n", measure("general", 1, 32));
    const double one = measure("nothing", 20'000, 32), eight = measure("nothing", 20'000, 256);
    std::printf("  CTA of one warp                 %8.2f ns\n", one / 20'000);
    std::printf("  warp of a CTA                   %8.2f ns\n", (eight - one) / 20'000 / 7);
    const double ring_one = measure("ring", 20'000, 32), ring_eight = measure("ring", 20'000, 256);
    std::printf("  CTA of one warp, ring           %8.2f ns\n", ring_one / 20'000);
    std::printf("  warp of a CTA, ring             %8.2f ns\n", (ring_eight - ring_one) / 20'000 / 7);
    for (const std::uint32_t block : {64u, 256u, 1024u}) {
      const double none = measure("ring", 100, block), many = measure("ring", 100, block, 100);
      std::printf("  barrier of %2u warps, ring       %8.2f ns per warp\n", block / 32,
                  (many - none) / 100 / 100 / (block / 32));
    }
    const double general_none = measure("general", 100, 256), general_many = measure("general", 100, 256, 100);
    std::printf("  CTA of 8 warps, general         %8.2f ns\n", general_none / 100);
    std::printf("  barrier of  8 warps, general    %8.2f ns per warp\n", (general_many - general_none) / 100 / 100 / 8);
  }
}
