// Kernelet that tries what it chose: a model that is wrong costs probes, not throughput.
#include "scheduler/model/probing_planner.h"

#include <catch2/catch.hpp>

namespace gridloom::model {
namespace {

constexpr SmModel kProbedSm = {
    .sms = 2,
    .schedulers = 1,
    .empty = {.free_ctas = 4, .free_warps = 48, .free_registers = 32768, .free_shared_bytes = 49152},
    .latency_cycles = 300,
    .requests_per_cycle = 0.2};

std::shared_ptr<ProfileTable> Kernels(std::initializer_list<const char*> names) {
  auto table = std::make_shared<ProfileTable>();
  double pur = 0;
  for (const char* name : names) {
    CHECK(table
              ->Add({.kernel = name,
                     .needs = {.warps = 12},
                     .max_resident_ctas = 4,
                     .instructions_per_cta = 1000,
                     .memory_ratio = 0.1,
                     .pur = pur += 0.2,
                     .mur = 0.1,
                     .ipc = 2,
                     .smallest_slice = 1})
              .ok());
  }
  return table;
}

/// Promises something of every pair, most where the first has many blocks.
class Hopeful final : public CoRunModel {
 public:
  double Alone(const KernelProfile&) const override { return 0.5; }
  std::optional<std::array<double, 2>> Together(const KernelProfile&, std::uint32_t ctas_a, const KernelProfile&,
                                                std::uint32_t ctas_b) const override {
    return std::array{0.1 * ctas_a + 0.3, 0.01 * ctas_b + 0.2};
  }
};

constexpr PlanOptions kOptions = {
    .prune_pur = 0, .prune_mur = 0, .ratio = PlanOptions::Ratio::kBest, .least_profit = 0.02};

TEST_CASE("ProbingPlanner_TakesTheRatioThatHolds_AndProbesEachOnce") {
  std::vector<std::uint32_t> tried;
  const Probe probe = [&](const KernelProfile&, std::uint32_t ctas_a, const KernelProfile&,
                          std::uint32_t) -> std::array<double, 2> {
    tried.push_back(ctas_a);
    if (ctas_a == 2) return {0.7, 0.6};
    return {0.5, 0.4};  // slower than one after the other
  };
  ProbingPlanner planner(kProbedSm, Kernels({"a", "b"}), std::make_shared<Hopeful>(), probe, kOptions);
  constexpr std::uint64_t kBoth[] = {1, 2};
  for (int again = 0; again < 3; ++again) {
    const auto schedule = planner.Find(kBoth);
    REQUIRE(schedule);
    CHECK(schedule->parts[0].ctas_per_sm == 2);
    CHECK(schedule->parts[1].ctas_per_sm == 2);
    CHECK(schedule->profit == Approx(1 - 1 / 1.3));
  }
  // 3:1 promised most and failed; 2:2 held, and is better than what 1:3 promises.
  CHECK(tried == std::vector<std::uint32_t>{3, 2});
  CHECK(planner.probes() == 2);
}

TEST_CASE("ProbingPlanner_KeepsNoPairThatFails_AndFindsAnotherOne") {
  const Probe probe = [](const KernelProfile& a, std::uint32_t, const KernelProfile& b,
                         std::uint32_t) -> std::array<double, 2> {
    if (a.kernel == "b" && b.kernel == "c") return {0.6, 0.6};
    return {0.5, 0.45};
  };
  ProbingPlanner planner(kProbedSm, Kernels({"a", "b", "c"}), std::make_shared<Hopeful>(), probe, kOptions);
  constexpr std::uint64_t kBad[] = {1, 2}, kAll[] = {1, 2, 3};
  CHECK_FALSE(planner.Find(kBad).has_value());
  const auto schedule = planner.Find(kAll);
  REQUIRE(schedule);
  CHECK(schedule->parts[0].profile == 2);
  CHECK(schedule->parts[1].profile == 3);
  const std::uint64_t probes = planner.probes();
  CHECK_FALSE(planner.Find(kBad).has_value());
  CHECK(planner.probes() == probes);
}

TEST_CASE("ProbingPlanner_PrunedPairsThatFail_AreNotKept_InWhateverOrderTheyWait") {
  const Probe probe = [](const KernelProfile&, std::uint32_t, const KernelProfile&,
                         std::uint32_t) -> std::array<double, 2> {
    return {0.5, 0.4};
  };
  PlanOptions close = kOptions;
  close.prune_pur = close.prune_mur = 1;  // all pairs are alike: the thresholds are loosened until some are left
  ProbingPlanner planner(kProbedSm, Kernels({"a", "b"}), std::make_shared<Hopeful>(), probe, close);
  constexpr std::uint64_t kFallen[] = {2, 1}, kRisen[] = {1, 2};
  CHECK_FALSE(planner.Find(kFallen).has_value());
  CHECK_FALSE(planner.Find(kRisen).has_value());
}

TEST_CASE("LearningPlanner_WantsWhatItChose_AndChoosesAgainByWhatCameOut") {
  LearningPlanner planner(kProbedSm, Kernels({"a", "b"}), std::make_shared<Hopeful>(), kOptions);
  constexpr std::uint64_t kBoth[] = {1, 2};
  const auto promised = planner.Find(kBoth);
  REQUIRE(promised);
  REQUIRE(promised->parts[0].ctas_per_sm == 3);
  CHECK(planner.Wants(*promised));
  const std::uint64_t revision = planner.revision();
  // Alone, two SMs do 2 instructions a cycle each, 1000 a block: 0.004 blocks a cycle.
  planner.Observe(*promised, {0.002, 0.0016});
  CHECK(planner.revision() != revision);
  CHECK_FALSE(planner.Wants(*promised));
  const auto next = planner.Find(kBoth);
  REQUIRE(next);
  CHECK(next->parts[0].ctas_per_sm == 2);
  planner.Observe(*next, {0.0028, 0.0024});
  CHECK(planner.Find(kBoth)->parts[0].ctas_per_sm == 2);
  CHECK(planner.Find(kBoth)->profit == Approx(1 - 1 / 1.3));
  CHECK_FALSE(planner.Wants(*planner.Find(kBoth)));
  CHECK(planner.learned() == 2);
}

TEST_CASE("ProbedModel_AnswersInTheModelsUnit_InEitherOrder") {
  const auto table = Kernels({"a", "b"});
  ProbedModel model(std::make_shared<Hopeful>());
  const KernelProfile &a = *table->Get(1), &b = *table->Get(2);
  KernelProfile other_blocks = a;
  other_blocks.needs.warps = 6;
  model.Set(a, 1, b, 3, {0.8, 0.4});
  CHECK(model.Together(a, 1, b, 3) == std::array{0.4, 0.2});
  CHECK(model.Together(b, 3, a, 1) == std::array{0.2, 0.4});
  CHECK(model.Together(a, 2, b, 2) == Hopeful().Together(a, 2, b, 2));
  CHECK_FALSE(model.Knows(other_blocks, 1, b, 3));
}

}  // namespace
}  // namespace gridloom::model
