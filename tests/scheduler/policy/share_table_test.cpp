// The search for the shares of the multiprocessors of kernels that run side by side.
#include "scheduler/policy/share_table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace gridloom::policy {
namespace {

TEST_CASE("ShareTable_OfKernelsThatScaleLinearly_GivesEachItsPartOfTheWork") {
  // Of 24 SMs, a kernel with three times the work gets 18.
  CHECK(ShareTable(24, {3000, 1000}).Choose().front() == 18);
  CHECK(ShareTable(24, {1000, 3000}).Choose().front() == 6);
  CHECK(ShareTable(24, {1000, 1000}).Choose().front() == 12);
  // Neither goes without.
  CHECK(ShareTable(8, {1, 1000}).Choose().front() == 1);
  CHECK(ShareTable(8, {1000, 1}).Choose().front() == 7);
  CHECK(ShareTable(2, {5, 7}).Choose().front() == 1);
}

TEST_CASE("ShareTable_BetweenTwoWholeNumbers_TakesTheOneWhoseSlowerKernelIsFaster") {
  // P1(n) = n / 8, P2(n) = 2 n / 8 (in units of 1 / 8000): they cross at 16 / 3. With 5, the first is the slower one:
  // 5; with 6 the second: 4.
  const ShareTable table(8, {2000, 1000});
  CHECK(table.Choose().front() == 5);
  CHECK(table.StepTime({5, 3}) == Approx(3200));
  CHECK(table.StepTime({6, 2}) == Approx(4000));
}

TEST_CASE("ShareTable_GoesByWhatWasMeasured_AndByStraightLinesBetween") {
  ShareTable table(8, {1000, 1000});
  CHECK(table.Choose().front() == 4);
  CHECK_FALSE(table.converged());
  // The first one is as fast with 4 as with 8: it needs fewer.
  table.Measured({4, 4}, {1000, 2000});
  CHECK(table.StepTime({2, 6}) == Approx(2000));
  CHECK(table.Choose().front() == 3);
  CHECK_FALSE(table.converged());
  table.Measured({3, 5}, {1250, 1600});
  CHECK(table.Choose().front() == 3);
  CHECK(table.converged());
  // What was measured last counts.
  table.Measured({3, 5}, {1250, 2600});
  CHECK(table.Choose().front() == 2);
  CHECK(table.measured() == 2);
}

TEST_CASE("ShareTable_WithAShapeToExpect_StartsWhereThatSays") {
  ShareTable table(8, {1000, 1000});
  for (std::uint32_t n = 1; n <= 8; ++n) {
    table.Expect(0, n,
                 n < 2 ? 4000 : 2000);  // two SMs are all it can use; what was measured is half of what was expected
    table.Expect(1, n, 8000.0 / n);
  }
  CHECK(table.Choose().front() == 2);
  CHECK(table.StepTime({2, 6}) == Approx(8000.0 / 6));
}

/// Times that fall with the number of SMs, as kernels have them: serial part, parallel part, waves.
double TimeOf(double serial, double parallel, std::uint32_t sms) { return serial + std::ceil(parallel / sms) * 10; }

TEST_CASE("ShareTable_ForAnyMonotoneTimes_Converges_ToNoWorseThanTheNeighbours") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    const auto sms = static_cast<std::uint32_t>(2 + random() % 100);
    const double serial[] = {static_cast<double>(random() % 500), static_cast<double>(random() % 500)};
    const double parallel[] = {static_cast<double>(1 + random() % 2000), static_cast<double>(1 + random() % 2000)};
    const auto times = [&](std::uint32_t first) {
      return std::vector{TimeOf(serial[0], parallel[0], first), TimeOf(serial[1], parallel[1], sms - first)};
    };
    ShareTable table(sms, {TimeOf(serial[0], parallel[0], sms), TimeOf(serial[1], parallel[1], sms)});
    std::size_t steps = 0;
    for (; !table.converged(); ++steps) {
      REQUIRE(steps < sms);
      const std::vector<std::uint32_t> shares = table.Choose();
      REQUIRE((shares[0] >= 1 && shares[1] >= 1 && shares[0] + shares[1] == sms));
      table.Measured(shares, times(shares[0]));
    }
    const std::uint32_t chosen = table.Choose().front();
    const auto longest = [&](std::uint32_t first) { return std::ranges::max(times(first)); };
    INFO("round " << round << ", " << sms << " SMs, chosen " << chosen);
    // The search ends where straight lines promise no more: on the way, none that was tried was better.
    for (std::uint32_t first = 1; first < sms; ++first) {
      if (table.StepTime({first, sms - first}) < longest(chosen) * (1 - 1e-9)) FAIL("a better one is known: " << first);
    }
  }
}

TEST_CASE("ShareTable_OfThreeKernels_FindsTheBestOfAllWays") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto sms = static_cast<std::uint32_t>(3 + random() % 14);
    std::vector<double> alone(3);
    for (double& time : alone) time = static_cast<double>(1 + random() % 3000);
    ShareTable table(sms, alone);
    // Some points that were measured, so that speeds are no straight lines, nor rise everywhere.
    for (std::uint64_t i = random() % 4; i > 0; --i) {
      const auto first = static_cast<std::uint32_t>(1 + random() % (sms - 2));
      const auto second = static_cast<std::uint32_t>(1 + random() % (sms - first - 1));
      table.Measured({first, second, sms - first - second},
                     {static_cast<double>(1 + random() % 9000), static_cast<double>(1 + random() % 9000),
                      static_cast<double>(1 + random() % 9000)});
    }
    double least = 1e300;
    for (std::uint32_t first = 1; first + 2 <= sms; ++first) {
      for (std::uint32_t second = 1; first + second + 1 <= sms; ++second)
        least = std::min(least, table.StepTime({first, second, sms - first - second}));
    }
    const std::vector<std::uint32_t> chosen = table.Choose();
    REQUIRE(chosen.size() == 3);
    CHECK(std::ranges::min(chosen) >= 1);
    CHECK(chosen[0] + chosen[1] + chosen[2] == sms);
    CHECK(table.StepTime(chosen) == Approx(least));
  }
  CHECK(ShareTable(12, {1000, 2000, 3000}).Choose() == std::vector<std::uint32_t>{2, 4, 6});
  CHECK(ShareTable(3, {1, 1, 1000}).Choose() == std::vector<std::uint32_t>{1, 1, 1});
}

}  // namespace
}  // namespace gridloom::policy
