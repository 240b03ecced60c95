// model_solve: time of one prediction of Kernelet's model (docs/kernelet.md), by the chain's size (aim: 100 us for a
// pair), and of one decision of the policy, with so many launches of so many kinds on a device of 132 SMs (aim: 5 us
// with 64 tenants).
#include <benchmark/benchmark.h>

#include "scheduler/model/kernelet_setup.h"

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
  const SmModel sm{.sms = 8,
                   .schedulers = 4,
                   .empty = {.free_ctas = 16, .free_warps = 64},
                   .latency_cycles = 300,
                   .requests_per_cycle = 0.4};
  const KernelProfile a = Kernel(0.02, 0), b = Kernel(0.2, state.range(2) != 0 ? 0.5 : 0);
  const Resident residents[] = {{&a, static_cast<std::uint32_t>(state.range(0))},
                                {&b, static_cast<std::uint32_t>(state.range(1))}};
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

void Decision(benchmark::State& state) {
  ProfileFile file{
      .sm = {.sms = 132,
             .schedulers = 4,
             .empty = {.free_ctas = 32, .free_warps = 64, .free_registers = 65536, .free_shared_bytes = 233472},
             .latency_cycles = 600,
             .requests_per_cycle = 0.3}};
  const auto kinds = static_cast<std::uint32_t>(state.range(1));
  for (std::uint32_t i = 0; i < kinds; ++i) {
    KernelProfile profile = Kernel(0.3 * i / kinds, 0);
    profile.kernel += std::to_string(i);
    profile.max_resident_ctas = 16;
    profile.pur = 1 - 1.0 * i / kinds;
    profile.mur = 0.5 * i / kinds;
    file.kernels.push_back(std::move(profile));
  }
  KerneletConfig config;
  config.model.max_states = 16;
  const KerneletSetup setup = *SetUpKernelet(file, config);
  const auto policy = gridloom::policy::MakePolicy("kernelet", setup.inputs).value();
  std::vector<gridloom::policy::SmView> sms(132, file.sm.empty);
  std::vector<gridloom::policy::KernelView> kernels;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(state.range(0)); ++i)
    kernels.push_back({.id = i + 1,
                       .ctas = 100000,
                       .needs = {.warps = 4},
                       .tenant = static_cast<std::uint32_t>(i),
                       .profile = 1 + i % kinds});
  const gridloom::policy::Snapshot snapshot{.kernels = kernels, .sms = sms};
  const bool arrivals = state.range(2) != 0;
  benchmark::DoNotOptimize(policy->Next(snapshot));
  std::uint64_t turn = 0;
  for (auto _ : state) {
    // A kind comes or goes: the policy plans again, with pairs that are known.
    if (arrivals) kernels.back().profile = turn++ % 2 == 0 ? 1 : kinds;
    benchmark::DoNotOptimize(policy->Next(snapshot));
  }
}
BENCHMARK(Decision)
    ->Args({2, 2, 0})
    ->Args({64, 8, 0})
    ->Args({64, 64, 0})
    ->Args({64, 64, 1})
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
