// model_solve: time of one prediction of Kernelet's model (docs/kernelet.md), by the chain's size. Aim: 100 us for a pair.
#include <benchmark/benchmark.h>

#include "scheduler/model/sm_chain.h"

namespace {

using namespace gridloom::model;

KernelProfile Kernel(double memory_ratio, double uncoalesced_share) {
  return {.kernel = "k",
          .needs = {.warps = 4},
          .max_resident_ctas = 16,
          .instructions_per_cta = 1000,
          .memory_ratio = memory_ratio,
          .uncoalesced_share = uncoalesced_share,
          .uncoalesced_requests = 32};
}

/// Thread blocks of the two kernels; 1 where the second has uncoalesced accesses, too.
void Pair(benchmark::State& state) {
  const SmModel sm{
      .sms = 8, .schedulers = 4, .empty = {.free_ctas = 16, .free_warps = 64}, .latency_cycles = 300, .requests_per_cycle = 0.4};
  const KernelProfile a = Kernel(0.02, 0), b = Kernel(0.2, state.range(2) != 0 ? 0.5 : 0);
  const Resident residents[] = {{&a, static_cast<std::uint32_t>(state.range(0))}, {&b, static_cast<std::uint32_t>(state.range(1))}};
  const ModelOptions options{.max_states = 100000};
  for (auto _ : state) benchmark::DoNotOptimize(PredictIpc(sm, residents, options));
  state.counters["states"] = static_cast<double>(BuildChain(sm, residents, options).round_cycles.size());
}
// C2050: 8 thread blocks; GTX 680: 16; three states for the second; what the limit of states cuts.
BENCHMARK(Pair)
    ->Args({4, 4, 0})
    ->Args({8, 8, 0})
    ->Args({5, 3, 1})
    ->Args({3, 5, 1})
    ->Args({8, 4, 1})
    ->Args({16, 16, 0})
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
