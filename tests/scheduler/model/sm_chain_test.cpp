// The chain against what its definition says, computed in other ways: Eq. 2 as a sum of binomials, enumeration of what
// single warps do, simulation of single warps, closed forms.
#include "scheduler/model/sm_chain.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

namespace gridloom::model {
namespace {

SmModel OneScheduler() {
  return {.sms = 14,
          .schedulers = 1,
          .empty = {.free_ctas = 8, .free_warps = 48},
          .latency_cycles = 400,
          .requests_per_cycle = 0.1};
}

KernelProfile ChainKernel(double memory_ratio, std::uint32_t warps = 1, double uncoalesced_share = 0,
                          double uncoalesced_requests = 32) {
  return {.kernel = "k",
          .needs = {.warps = warps},
          .max_resident_ctas = 8,
          .instructions_per_cta = 1000,
          .memory_ratio = memory_ratio,
          .uncoalesced_share = uncoalesced_share,
          .coalesced_requests = 2,
          .uncoalesced_requests = uncoalesced_requests};
}

double Choose(int n, int k) { return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)); }
double Binomial(int n, int k, double p) {
  return k < 0 || k > n ? 0 : Choose(n, k) * std::pow(p, k) * std::pow(1 - p, n - k);
}

TEST_CASE("Chain_OneKernel_IsTheSumOverPossibleTransitionsOfEquation2") {
  const SmModel sm = OneScheduler();
  for (const int warps : {1, 2, 5, 8}) {
    for (const double ratio : {0.01, 0.3, 0.9}) {
      const KernelProfile kernel = ChainKernel(ratio);
      const Resident resident{&kernel, static_cast<std::uint32_t>(warps)};
      const SmChain chain = BuildChain(sm, {&resident, 1});
      REQUIRE(chain.transitions.rows() == warps + 1);
      for (int i = 0; i <= warps; ++i) {
        const double round = std::max(1, warps - i);
        CHECK(chain.round_cycles[static_cast<std::size_t>(i)] == round);
        const double wake = round / (401 + i * 2 / 0.1);  // one cycle between the two requests of an access
        for (int j = 0; j <= warps; ++j) {
          double sum = 0;
          for (int woken = 0; woken <= i; ++woken)
            sum += Binomial(i, woken, wake) * Binomial(warps - i, j - i + woken, ratio);
          CHECK(chain.transitions(i, j) == Approx(sum).epsilon(1e-9).margin(1e-15));
        }
      }
    }
  }
}

/// What single warps of two kernels do, outcome by outcome; states as (idle coalesced, idle uncoalesced) of each
/// kernel.
using Joint = std::array<std::uint32_t, 4>;

void Enumerate(const std::vector<std::array<double, 3>>& warps, const std::vector<int>& owner, std::size_t at,
               Joint state, double probability, std::map<Joint, double>& sums) {
  if (at == warps.size()) {
    sums[state] += probability;
    return;
  }
  for (std::size_t choice = 0; choice < 3; ++choice) {
    Joint next = state;
    if (choice > 0) ++next[static_cast<std::size_t>(owner[at]) * 2 + choice - 1];
    Enumerate(warps, owner, at + 1, next, probability * warps[at][choice], sums);
  }
}

TEST_CASE("Chain_TwoKernelsWithUncoalescedAccesses_IsWhatSingleWarpsDo") {
  const SmModel sm = OneScheduler();
  const KernelProfile a = ChainKernel(0.2, 1, 0.4), b = ChainKernel(0.05, 1, 0.5, 8);
  const std::uint32_t units[2] = {3, 2};
  const Resident residents[] = {{&a, units[0]}, {&b, units[1]}};
  const SmChain chain = BuildChain(sm, residents);
  REQUIRE(chain.transitions.rows() == 10 * 6);
  for (Eigen::Index from = 0; from < chain.transitions.rows(); ++from) {
    const SmChain::Idle idle[2] = {chain.IdleOf(static_cast<std::size_t>(from), 0),
                                   chain.IdleOf(static_cast<std::size_t>(from), 1)};
    const double ready =
        units[0] + units[1] - idle[0].coalesced - idle[0].uncoalesced - idle[1].coalesced - idle[1].uncoalesced;
    const double round = std::max(1.0, ready);
    const double requests =
        2 * (idle[0].coalesced + idle[1].coalesced) + 32 * idle[0].uncoalesced + 8 * idle[1].uncoalesced;
    std::vector<std::array<double, 3>> warps;
    std::vector<int> owner;
    for (int k = 0; k < 2; ++k) {
      const double latency_c = 400 + 1 + requests / 0.1, latency_u = 400 + (k == 0 ? 31 : 7) + requests / 0.1;
      const double stall = k == 0 ? 0.2 : 0.05, share = k == 0 ? 0.4 : 0.5;
      for (std::uint32_t i = 0; i < units[k]; ++i) {
        if (i < idle[k].coalesced) warps.push_back({round / latency_c, 1 - round / latency_c, 0});
        else if (i < idle[k].coalesced + idle[k].uncoalesced)
          warps.push_back({round / latency_u, 0, 1 - round / latency_u});
        else warps.push_back({1 - stall, stall * (1 - share), stall * share});
        owner.push_back(k);
      }
    }
    std::map<Joint, double> sums;
    Enumerate(warps, owner, 0, {}, 1, sums);
    for (Eigen::Index to = 0; to < chain.transitions.cols(); ++to) {
      const SmChain::Idle next[2] = {chain.IdleOf(static_cast<std::size_t>(to), 0),
                                     chain.IdleOf(static_cast<std::size_t>(to), 1)};
      const double expected = sums[{next[0].coalesced, next[0].uncoalesced, next[1].coalesced, next[1].uncoalesced}];
      CHECK(chain.transitions(from, to) == Approx(expected).epsilon(1e-12).margin(1e-18));
    }
  }
}

/// IPC of two kernels by letting every warp throw its dice, round after round.
std::array<double, 2> Simulate(const SmModel& sm, const KernelProfile* const kernels[2], const std::uint32_t warps[2],
                               int rounds) {
  enum : std::uint8_t { kReady, kCoalesced, kUncoalesced };
  std::mt19937_64 random(99);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<std::uint8_t> states[2] = {std::vector<std::uint8_t>(warps[0], kReady),
                                         std::vector<std::uint8_t>(warps[1], kReady)};
  double cycles = 0, issued[2] = {};
  for (int round = 0; round < rounds; ++round) {
    double ready = 0, requests = 0;
    for (int k = 0; k < 2; ++k) {
      for (const std::uint8_t state : states[k]) {
        if (state == kReady) {
          ++ready;
          ++issued[k];
        } else {
          requests += state == kCoalesced ? kernels[k]->coalesced_requests : kernels[k]->uncoalesced_requests;
        }
      }
    }
    const double duration = std::max(1.0, ready), contention = requests / sm.requests_per_cycle;
    cycles += duration;
    for (int k = 0; k < 2; ++k) {
      for (std::uint8_t& state : states[k]) {
        const double dice = uniform(random);
        if (state == kReady) {
          if (dice < kernels[k]->memory_ratio)
            state = uniform(random) < kernels[k]->uncoalesced_share ? kUncoalesced : kCoalesced;
        } else {
          const double requests_of =
              state == kCoalesced ? kernels[k]->coalesced_requests : kernels[k]->uncoalesced_requests;
          if (dice < duration / (sm.latency_cycles + requests_of - 1 + contention)) state = kReady;
        }
      }
    }
  }
  return {issued[0] / cycles, issued[1] / cycles};
}

TEST_CASE("PredictIpc_TwoKernels_AgreesWithSimulatedWarps") {
  const SmModel sm = OneScheduler();
  struct Case {
    KernelProfile a, b;
    std::uint32_t warps[2];
  };
  const Case cases[] = {{ChainKernel(0.02), ChainKernel(0.1), {6, 3}},
                        {ChainKernel(0.004), ChainKernel(0.3, 1, 1), {4, 4}},
                        {ChainKernel(0.05, 1, 0.3), ChainKernel(0), {3, 2}}};
  for (const Case& c : cases) {
    const KernelProfile* kernels[] = {&c.a, &c.b};
    const Resident residents[] = {{&c.a, c.warps[0]}, {&c.b, c.warps[1]}};
    const std::vector<double> predicted = PredictIpc(sm, residents, {.max_states = 200});
    const std::array<double, 2> simulated = Simulate(sm, kernels, c.warps, 3000000);
    CHECK(predicted[0] == Approx(simulated[0]).epsilon(0.015));
    CHECK(predicted[1] == Approx(simulated[1]).epsilon(0.015));
  }
}

TEST_CASE("PredictIpc_LimitingCases") {
  const SmModel sm = OneScheduler();
  SECTION("no memory accesses: one instruction a cycle") {
    const KernelProfile kernel = ChainKernel(0);
    CHECK(PredictIpc(sm, {&kernel, 1}) == Approx(1));
    CHECK(PredictIpc(sm, {&kernel, 8}) == Approx(1));
  }
  SECTION("one warp: one cycle an instruction and a latency an access") {
    const KernelProfile kernel = ChainKernel(0.1);
    CHECK(PredictIpc(sm, {&kernel, 1}) == Approx(1 / (1 + 0.1 * (401 + 2 / 0.1))));
  }
  SECTION("only accesses: bandwidth bounds them") {
    const KernelProfile kernel = ChainKernel(1, 48);
    const double ipc = PredictIpc(sm, {&kernel, 8});
    CHECK(ipc * 2 < 0.1);  // requests per cycle
    CHECK(ipc * 2 > 0.07);
  }
}

TEST_CASE("PredictIpc_DependentInstructions_WaitForEachOtherUnlessWarpsCoverIt") {
  const SmModel sm = OneScheduler();
  KernelProfile kernel = ChainKernel(0);
  kernel.refinement.dependency_cycles = 9;
  CHECK(PredictIpc(sm, {&kernel, 1}) == Approx(1 / 9.0));
  CHECK(PredictIpc(sm, {&kernel, 6}) == Approx(6 / 9.0));
  CHECK(PredictIpc(sm, {&kernel, 12}) == Approx(1));
  // Beside a kernel whose instructions do not wait, each of its warps still issues once in nine cycles.
  const KernelProfile quick = ChainKernel(0);
  const Resident residents[] = {{&kernel, 3}, {&quick, 1}};
  const std::vector<double> ipc = PredictIpc(sm, residents);
  CHECK(ipc[0] == Approx(3 / 9.0 / (1 + 3 / 9.0)));
  CHECK(ipc[1] == Approx(1 / (1 + 3 / 9.0)));
  kernel.refinement.instructions_per_issue = 2;
  CHECK(PredictIpc(sm, {&kernel, 12}) == Approx(2));
}

TEST_CASE("PredictIpc_SwappedKernels_SwapTheirIpc_AndEqualOnesShare") {
  const SmModel sm = OneScheduler();
  const KernelProfile a = ChainKernel(0.02, 2), b = ChainKernel(0.2, 3, 0.5);
  const Resident ab[] = {{&a, 3}, {&b, 2}}, ba[] = {{&b, 2}, {&a, 3}}, aa[] = {{&a, 3}, {&a, 3}};
  const auto first = PredictIpc(sm, ab), second = PredictIpc(sm, ba), same = PredictIpc(sm, aa);
  CHECK(first[0] == Approx(second[1]).epsilon(1e-10));
  CHECK(first[1] == Approx(second[0]).epsilon(1e-10));
  CHECK(same[0] == Approx(same[1]).epsilon(1e-10));
}

TEST_CASE("PredictIpc_OneKernelInTwoParts_IsTheKernelWhole") {
  const SmModel sm = OneScheduler();
  for (const double ratio : {0.0, 0.01, 0.15, 0.8}) {
    for (const double share : {0.0, 0.4, 1.0}) {
      const KernelProfile kernel = ChainKernel(ratio, 2, share);
      const Resident parts[] = {{&kernel, 2}, {&kernel, 3}};
      const std::vector<double> ipc = PredictIpc(sm, parts);
      const double whole = PredictIpc(sm, {&kernel, 5});
      CHECK(ipc[0] + ipc[1] == Approx(whole).epsilon(1e-9));
      CHECK(ipc[0] * 3 == Approx(ipc[1] * 2).epsilon(1e-9));
    }
  }
}

TEST_CASE("Chain_SteadyState_AsManyUnitsStallAsWakeUp") {
  const SmModel sm = OneScheduler();
  const KernelProfile a = ChainKernel(0.03, 4), b = ChainKernel(0.2, 8, 0.5);
  const Resident residents[] = {{&a, 4}, {&b, 3}};
  const SmChain chain = BuildChain(sm, residents);
  const Eigen::VectorXd gamma = StationaryDistribution(chain.transitions);
  CHECK((gamma.transpose() * chain.transitions - gamma.transpose()).cwiseAbs().maxCoeff() < 1e-14);
  for (std::size_t k = 0; k < 2; ++k) {
    double idle_before = 0, idle_after = 0, ready = 0;
    for (Eigen::Index i = 0; i < gamma.size(); ++i) {
      const SmChain::Idle& idle = chain.IdleOf(static_cast<std::size_t>(i), k);
      idle_before += gamma(i) * (idle.coalesced + idle.uncoalesced);
      ready += gamma(i) * (chain.kernels[k].units - idle.coalesced - idle.uncoalesced);
      for (Eigen::Index j = 0; j < gamma.size(); ++j) {
        const SmChain::Idle& next = chain.IdleOf(static_cast<std::size_t>(j), k);
        idle_after += gamma(i) * chain.transitions(i, j) * (next.coalesced + next.uncoalesced);
      }
    }
    CHECK(idle_after == Approx(idle_before).epsilon(1e-9));
    CHECK(ready > 0);
  }
}

TEST_CASE("PredictIpc_IsMonotonic") {
  const SmModel sm = OneScheduler();
  double last = 2;
  for (double ratio = 0; ratio <= 1; ratio += 0.05) {
    const KernelProfile kernel = ChainKernel(ratio, 6);
    const double ipc = PredictIpc(sm, {&kernel, 6});
    CHECK(ipc < last);
    last = ipc;
    for (std::uint32_t ctas = 2; ctas <= 8; ++ctas)
      CHECK(PredictIpc(sm, {&kernel, ctas}) >= PredictIpc(sm, {&kernel, ctas - 1}) - 1e-12);
    SmModel slower = sm, wider = sm;
    slower.latency_cycles *= 1.5;
    wider.requests_per_cycle *= 2;
    CHECK(PredictIpc(slower, {&kernel, 6}) <= ipc + 1e-12);
    CHECK(PredictIpc(wider, {&kernel, 6}) >= ipc - 1e-12);
  }
  last = 2;
  for (double share = 0; share <= 1; share += 0.1) {
    const KernelProfile kernel = ChainKernel(0.05, 2, share);
    const double ipc = PredictIpc(sm, {&kernel, 4});
    CHECK(ipc < last);
    last = ipc;
  }
}

TEST_CASE("PredictIpc_SeveralSchedulers_AreAsManyVirtualSms") {
  SmModel one = OneScheduler(), four = OneScheduler();
  four.schedulers = 4;
  four.requests_per_cycle *= 4;
  const KernelProfile narrow = ChainKernel(0.05, 2), wide = ChainKernel(0.05, 8);
  CHECK(PredictIpc(four, {&wide, 5}) == Approx(4 * PredictIpc(one, {&narrow, 5})));
  // Fig. 11: without them, at most one instruction a cycle.
  CHECK(PredictIpc(four, {&wide, 5}, {.virtual_sm = false}) <= 1);
  // Fig. 10: uncoalesced accesses taken for coalesced ones.
  const KernelProfile scattered = ChainKernel(0.05, 8, 0.8);
  CHECK(PredictIpc(four, {&scattered, 5}, {.uncoalesced = false}) > 2 * PredictIpc(four, {&scattered, 5}));
}

TEST_CASE("PredictIpc_Granularity_CtasAreCloseToWarps") {
  const SmModel sm = OneScheduler();
  const KernelProfile kernel = ChainKernel(0.02, 4);
  const double ctas = PredictIpc(sm, {&kernel, 8});
  const double warps = PredictIpc(sm, {&kernel, 8}, {.granularity = ModelOptions::Granularity::kWarp});
  CHECK(ctas < warps);
  CHECK(ctas > 0.85 * warps);
}

TEST_CASE("PredictIpc_AnyValidProfile_GivesAFiniteIpcWithinThePeak") {
  std::mt19937_64 random(3);
  const auto pick = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
  for (int i = 0; i < 400; ++i) {
    SmModel sm = OneScheduler();
    sm.schedulers = 1 + static_cast<std::uint32_t>(random() % 4);
    sm.latency_cycles = pick({1, 2, 30, 400, 1e4, 1e9});
    sm.requests_per_cycle = pick({1e-9, 1e-3, 0.1, 4, 1e6});
    sm.contention_slope = pick({0, 0.5, 1, 100});
    sm.contention_offset = pick({0, 0, 50});
    sm.request_interval = pick({0, 1, 8});
    std::vector<KernelProfile> kernels;
    std::vector<Resident> residents;
    const std::size_t count = 1 + random() % 3;
    for (std::size_t k = 0; k < count; ++k) {
      // One after the other: compilers evaluate arguments in orders of their own.
      const double memory_ratio = pick({0, 1e-300, 1e-9, 0.02, 0.3, 0.999999, 1});
      const auto warps = static_cast<std::uint32_t>(pick({1, 2, 8, 32, 64}));
      const double share = pick({0, 0, 1e-12, 0.3, 1}), requests = pick({0, 1, 32, 1e6});
      KernelProfile kernel = ChainKernel(memory_ratio, warps, share, requests);
      kernel.coalesced_requests = pick({0, 0.1, 1, 4});
      kernel.refinement = {.dependency_cycles = pick({1, 1, 9.5, 1000}),
                           .instructions_per_issue = pick({1, 1, 1.5, 2}),
                           .loads_per_stall = pick({1, 1, 4}),
                           .latency_cycles = pick({0, 0, 1, 700})};
      REQUIRE(Validate(kernel).ok());
      kernels.push_back(kernel);
    }
    for (const KernelProfile& kernel : kernels)
      residents.push_back({&kernel, static_cast<std::uint32_t>(pick({1, 2, 5, 16, 1e3, 4e9}))});
    const ModelOptions options{
        .granularity = random() % 2 ? ModelOptions::Granularity::kCta : ModelOptions::Granularity::kWarp,
        .max_states = static_cast<std::uint32_t>(pick({0, 1, 20, 96}))};
    REQUIRE(Validate(sm).ok());
    const std::vector<double> ipc = PredictIpc(sm, residents, options);
    double issued = 0;
    for (std::size_t k = 0; k < count; ++k) {
      CHECK(std::isfinite(ipc[k]));
      CHECK(ipc[k] >= 0);
      issued += ipc[k] / kernels[k].refinement.instructions_per_issue;
    }
    CHECK(issued <= sm.schedulers * (1 + 1e-9));
  }
}

/// Whose accesses wait for one resource, of which an instruction takes `demand` cycles.
KernelProfile OfOneResource(double memory_ratio, double demand) {
  KernelProfile kernel = ChainKernel(memory_ratio);
  kernel.demands = {0.0, demand};
  return kernel;
}

TEST_CASE("Chain_OneResource_IsLatencyAtFirstAndTheResourceInTheEnd") {
  SmModel sm = OneScheduler();
  sm.empty.free_ctas = sm.empty.free_warps = 64;
  sm.first_memory_resource = 1;
  const double demand = 5;  // no more than 0.2 instructions a cycle
  KernelProfile kernel = OfOneResource(0.1, demand);
  kernel.max_resident_ctas = 64;
  const auto ipc = [&](std::uint32_t ctas) { return PredictIpc(sm, {&kernel, ctas}); };
  KernelProfile alone = kernel;
  alone.demands = {0.0, 0.0};
  CHECK(ipc(1) == Approx(PredictIpc(sm, {&alone, 1})).epsilon(0.15));
  double before = 0;
  for (const std::uint32_t ctas : {1u, 2u, 4u, 8u, 16u, 32u, 64u}) {
    CHECK(ipc(ctas) > before);
    before = ipc(ctas);
    CHECK(before <= 1 / demand * 1.02);
  }
  CHECK(before > 0.85 / demand);
}

TEST_CASE("Chain_LinesBeyondTheLimit_HoldUpAccessesOfTheCore") {
  SmModel sm = OneScheduler();
  sm.first_memory_resource = 1;
  KernelProfile gather = OfOneResource(0.2, 60), tile = OfOneResource(0.001, 0.001);
  gather.uncoalesced_share = 1;
  gather.refinement.coalesced_lines = tile.refinement.coalesced_lines = 1;
  gather.refinement.uncoalesced_lines = 32;
  tile.refinement.core_ratio = 0.3;
  const auto beside = [&](std::uint32_t gathers) {
    const Resident residents[] = {{&gather, gathers}, {&tile, 4}};
    return PredictIpc(sm, residents);
  };
  const double free = beside(4)[1];  // no limit is known
  sm.lines_in_flight = 64;
  const double held = beside(4)[1];
  CHECK(held < 0.2 * free);
  CHECK(beside(2)[1] > held);
  CHECK(PredictIpc(sm, {&tile, 4}) == Approx(1).epsilon(0.1));
  sm.lines_in_flight = 4 * 32 + 4;  // room for all
  CHECK(beside(4)[1] == Approx(free));
}

}  // namespace
}  // namespace gridloom::model
