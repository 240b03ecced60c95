#include "scheduler/model/planner.h"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "scheduler/model/kernelet_setup.h"
#include "tests/scheduler/model/fermi.h"

namespace gridloom::model {
namespace {

std::shared_ptr<ProfileTable> FourKernels() {
  auto table = std::make_shared<ProfileTable>();
  for (const auto& [name, ratio] : {std::pair{"a", 0.5}, {"b", 0.1}, {"c", 0.01}, {"d", 0.001}}) {
    CHECK(table
              ->Add({.kernel = name,
                     .needs = {.warps = 6},
                     .max_resident_ctas = 8,
                     .instructions_per_cta = 1000,
                     .memory_ratio = ratio,
                     .pur = 1 - ratio,
                     .mur = ratio,
                     .ipc = 1,
                     .smallest_slice = 28})
              .ok());
  }
  return table;
}

constexpr std::uint64_t kAll[] = {1, 2, 3, 4};

TEST_CASE("ProfileTable_NumbersFromOne_RefusesNonsenseAndTwins") {
  const auto table = FourKernels();
  const std::uint32_t warps = table->Get(3)->needs.warps;
  CHECK(table->Find("c", warps) == 3);
  CHECK(table->Find("c", warps + 1) == 0);
  CHECK(table->Find("z", warps) == 0);
  CHECK(table->Get(3)->kernel == "c");
  CHECK(table->Get(0) == nullptr);
  CHECK(table->Get(5) == nullptr);
  KernelProfile twin = *table->Get(1), nonsense = twin;
  CHECK_FALSE(table->Add(twin).ok());
  nonsense.kernel = "nonsense";
  nonsense.memory_ratio = -1;
  CHECK_FALSE(table->Add(nonsense).ok());
  CHECK(table->Find("nonsense", nonsense.needs.warps) == 0);
  // Blocks of another size are another kind of the same kernel.
  ++twin.needs.warps;
  CHECK(table->Add(twin).ok());
  CHECK(table->Find(twin.kernel, twin.needs.warps) == 5);
  CHECK(table->Find(twin.kernel, twin.needs.warps - 1) == 1);
}

TEST_CASE("GreedyPlanner_AnswersAsFindCoSchedule_AndSolvesAPairOnce") {
  const auto table = FourKernels();
  const auto model = std::make_shared<MarkovModel>(Fermi());
  GreedyPlanner planner(Fermi(), table, model);
  const KernelProfile* kernels[] = {table->Get(1), table->Get(2), table->Get(3), table->Get(4)};
  const auto expected = FindCoSchedule(Fermi(), *model, kernels);
  const auto found = planner.Find(kAll);
  REQUIRE((expected && found));
  CHECK(found->parts[0].profile == expected->first + 1);
  CHECK(found->parts[1].profile == expected->second + 1);
  CHECK(found->parts[0].ctas_per_sm == expected->pair.ctas_per_sm[0]);
  CHECK(found->parts[1].ctas_per_sm == expected->pair.ctas_per_sm[1]);
  CHECK(found->parts[0].smallest_slice == 28);
  CHECK(found->profit == expected->pair.profit);
  const std::uint64_t solved = planner.solved();
  planner.Find(kAll);
  CHECK(planner.solved() == solved);
  const std::uint64_t unknown[] = {1, 77};
  CHECK_FALSE(planner.Find(unknown).has_value());
}

TEST_CASE("GreedyPlanner_AnySets_AnswersAsFindCoSchedule") {
  std::mt19937 random(8);
  for (int run = 0; run < 12; ++run) {
    auto table = std::make_shared<ProfileTable>();
    const auto part = [&] { return static_cast<double>(random() % 21) / 20; };
    for (int i = 0; i < 9; ++i) {
      const double ratio = part() / 2;
      REQUIRE(table
                  ->Add({.kernel = std::to_string(i),
                         .needs = {.warps = 1 + static_cast<std::uint32_t>(random() % 8)},
                         .max_resident_ctas = 6,
                         .instructions_per_cta = 100 + 100 * part(),
                         .memory_ratio = ratio,
                         .pur = run % 3 == 0 ? 0.5 : part(),  // all alike: the thresholds are loosened
                         .mur = part() / 5})
                  .ok());
    }
    const auto model = std::make_shared<MarkovModel>(Fermi(), ModelOptions{.max_states = 16});
    const PlanOptions options{.least_profit = run % 2 == 0 ? 0 : 0.05};
    GreedyPlanner planner(Fermi(), table, model, options), deferred(Fermi(), table, model, options, true);
    for (int ask = 0; ask < 30; ++ask) {
      std::vector<std::uint64_t> waiting;
      for (std::uint64_t id = 1; id <= 9; ++id) {
        if (random() % 3 == 0) waiting.push_back(id);
      }
      std::vector<const KernelProfile*> kernels;
      for (const std::uint64_t id : waiting) kernels.push_back(table->Get(id));
      const auto expected = FindCoSchedule(Fermi(), *model, kernels, options);
      deferred.Find(waiting);
      while (deferred.Advance()) {
      }
      // What it learned may tell it that it has to look at more.
      deferred.Find(waiting);
      while (deferred.Advance()) {
      }
      for (GreedyPlanner* each : {&planner, &deferred}) {
        const auto found = each->Find(waiting);
        REQUIRE(found.has_value() == expected.has_value());
        if (!found) continue;
        CHECK(found->parts[0].profile == waiting[expected->first]);
        CHECK(found->parts[1].profile == waiting[expected->second]);
        CHECK(found->parts[0].ctas_per_sm == expected->pair.ctas_per_sm[0]);
        CHECK(found->profit == expected->pair.profit);
      }
    }
  }
}

TEST_CASE("GreedyPlanner_Deferred_FindsWhatHasBeenSolved") {
  const auto table = FourKernels();
  const auto model = std::make_shared<MarkovModel>(Fermi());
  GreedyPlanner planner(Fermi(), table, model, {}, true), immediate(Fermi(), table, model);
  CHECK_FALSE(planner.Find(kAll).has_value());
  CHECK(planner.solved() == 0);
  const std::uint64_t before = planner.revision();
  while (planner.Advance()) {
  }
  CHECK(planner.revision() > before);
  const auto found = planner.Find(kAll), expected = immediate.Find(kAll);
  REQUIRE((found && expected));
  CHECK(found->parts[0].profile == expected->parts[0].profile);
  CHECK(found->profit == expected->profit);
  CHECK_FALSE(planner.Advance());
}

TEST_CASE("SetUpKernelet_GivesThePolicyThatPlansWithTheseProfiles") {
  const auto table = FourKernels();
  ProfileFile file{.sm = Fermi()};
  for (std::uint64_t id = 1; id <= 4; ++id) file.kernels.push_back(*table->Get(id));
  const auto setup = SetUpKernelet(file);
  REQUIRE(setup.ok());
  const auto policy = policy::MakePolicy("kernelet", setup->inputs).value();
  const std::vector<policy::SmView> sms(14, Fermi().empty);
  std::vector<policy::KernelView> kernels;
  for (std::uint64_t i = 0; i < 4; ++i)
    kernels.push_back({.id = i,
                       .ctas = 1000,
                       .needs = {.warps = 6},
                       .profile = setup->profiles->Find(table->Get(i + 1)->kernel, table->Get(i + 1)->needs.warps)});
  REQUIRE(policy->Next({.kernels = kernels, .sms = sms}));
  const auto& schedule = dynamic_cast<const policy::Kernelet&>(*policy).co_schedule();
  GreedyPlanner planner(Fermi(), table, std::make_shared<MarkovModel>(Fermi()), KerneletConfig{}.plan);
  REQUIRE(schedule);
  CHECK(schedule->profit == planner.Find(kAll)->profit);
  file.kernels.push_back(file.kernels.front());
  CHECK(SetUpKernelet(file).error().message == "two profiles of kernel a with blocks of one size");
  file.sm.latency_cycles = 0;
  CHECK_FALSE(SetUpKernelet(file).ok());
}

TEST_CASE("RandomPlanner_DrawsEveryPairAndRatio_TheSameForTheSameSeed") {
  const auto table = FourKernels();
  RandomPlanner one(Fermi(), table, 1), again(Fermi(), table, 1), other(Fermi(), table, 2);
  std::set<std::array<std::uint64_t, 4>> drawn;
  bool differs = false;
  for (int i = 0; i < 2000; ++i) {
    const auto a = *one.Find(kAll), b = *again.Find(kAll), c = *other.Find(kAll);
    const auto flat = [](const policy::CoSchedule& s) {
      return std::array<std::uint64_t, 4>{s.parts[0].profile, s.parts[1].profile, s.parts[0].ctas_per_sm,
                                          s.parts[1].ctas_per_sm};
    };
    CHECK(flat(a) == flat(b));
    differs |= flat(a) != flat(c);
    CHECK(a.parts[0].profile != a.parts[1].profile);
    drawn.insert(flat(a));
  }
  CHECK(differs);
  // 12 ordered pairs; with slices of at least two blocks on each of 14 SMs: (2,6) to (6,2).
  CHECK(drawn.size() == 12 * 5);
  CHECK_FALSE(one.Find(std::span(kAll, 1)).has_value());
}

TEST_CASE("MeasuredRates_AnswerInEitherOrder") {
  const auto table = FourKernels();
  auto rates = std::make_shared<MeasuredRates>();
  rates->Set(*table->Get(1), 2, *table->Get(2), 6, {0.4, 0.9});
  CHECK(*rates->Together(*table->Get(1), 2, *table->Get(2), 6) == std::array{0.4, 0.9});
  CHECK(*rates->Together(*table->Get(2), 6, *table->Get(1), 2) == std::array{0.9, 0.4});
  CHECK_FALSE(rates->Together(*table->Get(1), 3, *table->Get(2), 5).has_value());
  // OPT: of the ratios that were measured the one with the highest profit.
  rates->Set(*table->Get(2), 5, *table->Get(1), 3, {0.9, 0.5});
  GreedyPlanner oracle(Fermi(), table, rates, {.ratio = PlanOptions::Ratio::kBest});
  const auto found = oracle.Find(kAll);
  REQUIRE(found);
  CHECK(found->parts[0].ctas_per_sm == 3);
  CHECK(found->profit == Approx(1 - 1 / 1.4));
}

}  // namespace
}  // namespace gridloom::model
