// The upper level of two-level simulations: exact times of small cases.
#include "sim/study/measure/arrivals.h"

#include <catch2/catch.hpp>

namespace gridloom::study {
namespace {

/// Alone a kind does 2 blocks a cycle; beside another one each does 1.5.
class FixedRates final : public Rates {
 public:
  Result<double> Alone(std::size_t) override { return 2.0; }
  Result<std::array<double, 2>> Together(std::size_t, std::uint32_t, std::size_t, std::uint32_t) override {
    return std::array{1.5, 1.5};
  }
  std::uint32_t LeftOver(std::size_t, std::size_t) override { return room; }
  std::uint32_t Full(std::size_t) override { return 4; }
  std::uint32_t room = 0;
};

/// Pairs the first two kinds that wait.
class PairFirst final : public policy::CoSchedulePlanner {
 public:
  std::optional<policy::CoSchedule> Find(std::span<const std::uint64_t> waiting) override {
    asked.emplace_back(waiting.begin(), waiting.end());
    if (waiting.size() < 2) return std::nullopt;
    return policy::CoSchedule{
        .parts = {{{.profile = waiting[0], .ctas_per_sm = 2}, {.profile = waiting[1], .ctas_per_sm = 2}}}};
  }
  std::uint64_t revision() const override { return 0; }
  std::vector<std::vector<std::uint64_t>> asked;
};

const std::vector<Kind> kShortAndLong = {{.profile = 7, .ctas = 30}, {.profile = 9, .ctas = 60}};

ArrivalResult Run(const std::vector<Kind>& kinds, Rates& rates, policy::CoSchedulePlanner* planner,
                  const Arrivals& arrivals) {
  const auto result = SimulateArrivals(kinds, rates, planner, arrivals);
  REQUIRE(result.ok());
  return *result;
}

TEST_CASE("Arrivals_WithoutPlannerAndRoom_RunOneAfterTheOther") {
  FixedRates rates;
  const ArrivalResult result = Run(kShortAndLong, rates, nullptr, {.instances = 2, .interarrival = 0});
  CHECK(result.cycles == Approx(2 * (15 + 30)));
  CHECK(result.together == 0);
  CHECK(result.idle == 0);
  // Two short ones end at 15 and 30, two long ones at 60 and 90.
  CHECK(result.mean_turnaround == Approx((15 + 30 + 60 + 90) / 4.0));
}

TEST_CASE("Arrivals_LeftOverRoom_IsForTheNextInLine") {
  FixedRates rates;
  rates.room = 1;
  // Side by side until the short one ends at 20; the long one has 30 blocks left, for 15 cycles alone.
  const ArrivalResult result = Run(kShortAndLong, rates, nullptr, {.instances = 1, .interarrival = 0});
  CHECK(result.cycles == Approx(35));
  CHECK(result.together == Approx(20));
}

TEST_CASE("Arrivals_Pair_StaysUntilOneEnds") {
  FixedRates rates;
  PairFirst planner;
  const ArrivalResult result = Run(kShortAndLong, rates, &planner, {.instances = 2, .interarrival = 0});
  // Short ones run beside the first long one until 20 and 40: nothing of it is left then. The second long one is alone
  // for 30.
  CHECK(result.cycles == Approx(70));
  CHECK(result.together == Approx(40));
  CHECK(planner.asked == std::vector<std::vector<std::uint64_t>>{{7, 9}, {7, 9}, {9}});
}

TEST_CASE("Arrivals_WhoRunsAlone_IsPlannedAnewWhenAnotherArrives") {
  FixedRates rates;
  PairFirst planner;
  const std::vector<Kind> kinds = {{.profile = 1, .ctas = 1e6}, {.profile = 2, .ctas = 1e6}};
  const ArrivalResult result = Run(kinds, rates, &planner, {.instances = 1, .interarrival = 1000, .seed = 3});
  REQUIRE(planner.asked.size() >= 2);
  CHECK(planner.asked[0].size() == 1);
  CHECK(planner.asked[1].size() == 2);
  CHECK(result.idle > 0);
  CHECK(result.together > 0);
}

TEST_CASE("Arrivals_AreTheSame_ForTheSameSeed_AndComeAtTheRateAskedFor") {
  FixedRates rates;
  const std::vector<Kind> kinds = {{.profile = 1, .ctas = 1}};
  const Arrivals arrivals{.instances = 10'000, .interarrival = 100, .seed = 5};
  const ArrivalResult first = Run(kinds, rates, nullptr, arrivals), second = Run(kinds, rates, nullptr, arrivals);
  CHECK(first.cycles == second.cycles);
  CHECK(first.cycles == Approx(10'000 * 100).epsilon(0.03));
  Arrivals other = arrivals;
  other.seed = 6;
  CHECK(Run(kinds, rates, nullptr, other).cycles != first.cycles);
}

}  // namespace
}  // namespace gridloom::study
