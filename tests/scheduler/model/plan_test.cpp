#include "scheduler/model/plan.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "tests/scheduler/model/fermi.h"
#include "tests/scheduler/model/paper_tables.h"

namespace gridloom::model {
namespace {

KernelProfile Kernel(std::string name, double memory_ratio, policy::CtaNeeds needs = {.warps = 8},
                     double instructions = 1000) {
  return {.kernel = std::move(name),
          .needs = needs,
          .max_resident_ctas = ResidentCtas(Fermi().empty, needs),
          .instructions_per_cta = instructions,
          .memory_ratio = memory_ratio,
          .pur = 1 - memory_ratio,
          .mur = memory_ratio};
}

/// Rates by a formula, to plan with numbers known beforehand.
struct Formula final : CoRunModel {
  double Alone(const KernelProfile&) const override { return 1; }
  std::optional<std::array<double, 2>> Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                std::uint32_t ctas_b) const override {
    if (ctas_a == unknown) return std::nullopt;
    return std::array{0.1 * ctas_a * a.pur, 0.1 * ctas_b * b.pur};
  }
  std::uint32_t unknown = 0;
};

TEST_CASE("CoSchedulingProfit_IsEquation1") {
  CHECK(CoSchedulingProfit(std::array{1.0, 0.5}, std::array{0.5, 0.25}) == Approx(0));  // each at half its speed
  CHECK(CoSchedulingProfit(std::array{1.0, 0.5}, std::array{0.75, 0.375}) == Approx(1.0 / 3));
  CHECK(CoSchedulingProfit(std::array{1.0, 1.0}, std::array{0.3, 0.2}) == Approx(-1));
  CHECK(std::isinf(CoSchedulingProfit(std::array{1.0, 1.0}, std::array{0.0, 0.0})));
  CHECK(std::isinf(CoSchedulingProfit(std::array{0.0, 0.0}, std::array{0.3, 0.2})));
}

TEST_CASE("Prunes_Table4_GivesTheNumbersOfTable6") {
  constexpr double kMur[] = {0.015, 0.03, 0.045, 0.06, 0.075, 0.09, 0.105, 0.12, 0.135, 0.15};
  constexpr int kTable6[10][10] = {
      {0, 0, 2, 2, 3, 4, 4, 4, 4, 4},         {0, 2, 5, 6, 7, 8, 9, 9, 9, 9},
      {0, 3, 7, 8, 9, 10, 11, 11, 11, 11},    {1, 4, 8, 9, 12, 13, 15, 15, 15, 15},
      {1, 4, 8, 9, 12, 13, 15, 15, 15, 15},   {1, 4, 8, 9, 12, 13, 15, 15, 16, 16},
      {1, 4, 9, 10, 14, 15, 18, 18, 20, 20},  {2, 6, 11, 12, 17, 18, 21, 22, 24, 24},
      {2, 6, 11, 12, 17, 19, 22, 23, 25, 26}, {2, 6, 11, 13, 18, 20, 23, 24, 27, 28},
  };
  int equal = 0, largest = 0;
  for (int m = 0; m < 10; ++m) {
    for (int p = 0; p < 10; ++p) {
      int pruned = 0;
      for (std::size_t i = 0; i < kPaperKernels.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          KernelProfile a, b;
          a.pur = kPaperKernels[i].c2050_pur;
          a.mur = kPaperKernels[i].c2050_mur;
          b.pur = kPaperKernels[j].c2050_pur;
          b.mur = kPaperKernels[j].c2050_mur;
          pruned += Prunes(a, b, 0.1 * (p + 1), kMur[m]);
        }
      }
      equal += pruned == kTable6[m][p];
      largest = std::max(largest, std::abs(pruned - kTable6[m][p]));
    }
  }
  CHECK(equal == 78);
  CHECK(largest <= 3);
}

TEST_CASE("SliceRatios_FillTheSm_AndNothingMoreFits") {
  const SmModel sm = Fermi();
  std::mt19937 random(5);
  const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(random() % count); };
  const auto needs = [&] {
    return policy::CtaNeeds{.warps = 1 + below(12), .registers = below(16) * 512, .shared_bytes = below(20) * 1024};
  };
  for (int i = 0; i < 300; ++i) {
    const KernelProfile a = Kernel("a", 0.1, needs()), b = Kernel("b", 0.1, needs());
    const auto ratios = SliceRatios(sm, a, b);
    std::uint32_t last = 0;
    const auto fits = [&](std::uint32_t ctas_a, std::uint32_t ctas_b) {
      return ctas_a + ctas_b <= 8 && a.needs.warps * ctas_a + b.needs.warps * ctas_b <= 48 &&
             a.needs.registers * ctas_a + b.needs.registers * ctas_b <= 32768 &&
             a.needs.shared_bytes * ctas_a + b.needs.shared_bytes * ctas_b <= 49152;
    };
    for (const auto& [ctas_a, ctas_b] : ratios) {
      CHECK(ctas_a > last);
      last = ctas_a;
      CHECK(ctas_b > 0);
      CHECK(fits(ctas_a, ctas_b));
      CHECK_FALSE(fits(ctas_a + 1, ctas_b));
      CHECK_FALSE(fits(ctas_a, ctas_b + 1));
    }
    std::size_t count = 0;
    for (std::uint32_t x = 1; x <= 8; ++x) {
      for (std::uint32_t y = 1; y <= 8; ++y) count += fits(x, y) && !fits(x + 1, y) && !fits(x, y + 1);
    }
    CHECK(ratios.size() == count);
  }
}

TEST_CASE("SliceRatios_SmallestSlice_IsKeptWhereItCan") {
  const SmModel sm = Fermi();
  KernelProfile a = Kernel("a", 0.1, {.warps = 6});
  const KernelProfile b = Kernel("b", 0.1, {.warps = 6});
  CHECK(SliceRatios(sm, a, b).size() == 7);
  a.smallest_slice = 3 * 14;
  CHECK(SliceRatios(sm, a, b).front() == std::array{3u, 5u});
  a.smallest_slice = 1000;  // more than fits at a time: no ratio keeps it, so it does not choose
  CHECK(SliceRatios(sm, a, b).size() == 7);
}

TEST_CASE("PlanPair_Balanced_HasTheLeastDifferenceInTime_BestTheHighestProfit") {
  const SmModel sm = Fermi();
  // Equal warps: (1,7) … (7,1). Under the formula a slice takes 10 · I / pur cycles whatever its size: ΔT is the same,
  // then the first.
  KernelProfile a = Kernel("a", 0.2, {.warps = 6}), b = Kernel("b", 0.6, {.warps = 6});
  Formula model;
  CHECK(PlanPair(sm, model, a, b)->imbalance == Approx(1000 / 0.04 - 1000 / 0.08));
  const auto best = PlanPair(sm, model, a, b, {.ratio = PlanOptions::Ratio::kBest});
  CHECK(best->ctas_per_sm == std::array{7u, 1u});
  CHECK(best->profit == Approx(1 - 1 / (0.7 * 0.8 + 0.1 * 0.4)));
  model.unknown = 7;
  CHECK(PlanPair(sm, model, a, b, {.ratio = PlanOptions::Ratio::kBest})->ctas_per_sm == std::array{6u, 2u});
  CHECK_FALSE(PlanPair(sm, model, Kernel("c", 0.1, {.warps = 48}), b).has_value());
  // By the Markov model: no ratio that was tried is better balanced.
  const MarkovModel markov(sm);
  const auto plan = PlanPair(sm, markov, a, b);
  for (const auto& [ctas_a, ctas_b] : SliceRatios(sm, a, b)) {
    const auto ipc = *markov.Together(a, ctas_a, b, ctas_b);
    CHECK(plan->imbalance <= std::fabs(1000 * ctas_a / ipc[0] - 1000 * ctas_b / ipc[1]) + 1e-9);
  }
  CHECK(PlanPair(sm, markov, a, b, {.max_ratios = 2})->imbalance >= plan->imbalance);
}

TEST_CASE("FindCoSchedule_TakesThePairWithTheHighestProfit") {
  const SmModel sm = Fermi();
  const MarkovModel model(sm);
  const KernelProfile memory = Kernel("memory", 0.5), mixed = Kernel("mixed", 0.1), compute = Kernel("compute", 0.001);
  const KernelProfile* kernels[] = {&memory, &mixed, &compute};
  const auto found = FindCoSchedule(sm, model, kernels);
  REQUIRE(found);
  double highest = 0;
  for (std::size_t j = 1; j < 3; ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      if (!Prunes(*kernels[i], *kernels[j], 0.4, 0.1))
        highest = std::max(highest, PlanPair(sm, model, *kernels[i], *kernels[j])->profit);
    }
  }
  CHECK(found->pair.profit == highest);
  CHECK(highest > 0.05);
  CHECK_FALSE(FindCoSchedule(sm, model, kernels, {.least_profit = highest}).has_value());
}

TEST_CASE("FindCoSchedule_AllPruned_LoosensTheThresholds_TwinsStayPruned") {
  const SmModel sm = Fermi();
  Formula model;
  const KernelProfile a = Kernel("a", 0.30, {.warps = 6}), b = Kernel("b", 0.35, {.warps = 6}),
                      twin = Kernel("twin", 0.30, {.warps = 6});
  const KernelProfile *alike[] = {&a, &b}, *twins[] = {&a, &twin};
  CHECK(Prunes(a, b, 0.4, 0.1));
  const PlanOptions any{.least_profit = -1e9};
  CHECK(FindCoSchedule(sm, model, alike, any).has_value());
  CHECK_FALSE(FindCoSchedule(sm, model, twins, any).has_value());
  CHECK_FALSE(FindCoSchedule(sm, model, std::span(alike, 1), any).has_value());
}

}  // namespace
}  // namespace gridloom::model
