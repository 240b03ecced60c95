// The search for the split of the multiprocessors between two kernels.
#include "scheduler/policy/pair_table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

namespace gridloom::policy {
namespace {

TEST_CASE("PairTable_OfKernelsThatScaleLinearly_GivesEachItsPartOfTheWork") {
  // Of 24 SMs, a kernel with three times the work gets 18.
  CHECK(PairTable(24, {3000, 1000}).Choose() == 18);
  CHECK(PairTable(24, {1000, 3000}).Choose() == 6);
  CHECK(PairTable(24, {1000, 1000}).Choose() == 12);
  // Neither goes without.
  CHECK(PairTable(8, {1, 1000}).Choose() == 1);
  CHECK(PairTable(8, {1000, 1}).Choose() == 7);
  CHECK(PairTable(2, {5, 7}).Choose() == 1);
}

TEST_CASE("PairTable_BetweenTwoWholeNumbers_TakesTheOneWhoseSlowerKernelIsFaster") {
  // P1(n) = n / 8, P2(n) = 2 n / 8 (in units of 1 / 8000): they cross at 16 / 3. With 5, the first is the slower one: 5; with 6 the
  // second: 4.
  const PairTable table(8, {2000, 1000});
  CHECK(table.Choose() == 5);
  CHECK(table.StepTime(5) == Approx(3200));
  CHECK(table.StepTime(6) == Approx(4000));
}

TEST_CASE("PairTable_GoesByWhatWasMeasured_AndByStraightLinesBetween") {
  PairTable table(8, {1000, 1000});
  CHECK(table.Choose() == 4);
  CHECK_FALSE(table.converged());
  // The first one is as fast with 4 as with 8: it needs fewer.
  table.Measured(4, {1000, 2000});
  CHECK(table.StepTime(2) == Approx(2000));
  CHECK(table.Choose() == 3);
  CHECK_FALSE(table.converged());
  table.Measured(3, {1250, 1600});
  CHECK(table.Choose() == 3);
  CHECK(table.converged());
  // What was measured last counts.
  table.Measured(3, {1250, 2600});
  CHECK(table.Choose() == 2);
  CHECK(table.measured() == 2);
}

TEST_CASE("PairTable_WithAShapeToExpect_StartsWhereThatSays") {
  PairTable table(8, {1000, 1000});
  for (std::uint32_t n = 1; n <= 8; ++n) {
    table.Expect(0, n, n < 2 ? 4000 : 2000);  // two SMs are all it can use; what was measured is half of what was expected
    table.Expect(1, n, 8000.0 / n);
  }
  CHECK(table.Choose() == 2);
  CHECK(table.StepTime(2) == Approx(8000.0 / 6));
}

/// Times that fall with the number of SMs, as kernels have them: serial part, parallel part, waves.
double TimeOf(double serial, double parallel, std::uint32_t sms) { return serial + std::ceil(parallel / sms) * 10; }

TEST_CASE("PairTable_ForAnyMonotoneTimes_Converges_ToNoWorseThanTheNeighbours") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    const auto sms = static_cast<std::uint32_t>(2 + random() % 100);
    const double serial[] = {static_cast<double>(random() % 500), static_cast<double>(random() % 500)};
    const double parallel[] = {static_cast<double>(1 + random() % 2000), static_cast<double>(1 + random() % 2000)};
    const auto times = [&](std::uint32_t first) {
      return std::array{TimeOf(serial[0], parallel[0], first), TimeOf(serial[1], parallel[1], sms - first)};
    };
    PairTable table(sms, {TimeOf(serial[0], parallel[0], sms), TimeOf(serial[1], parallel[1], sms)});
    std::size_t steps = 0;
    for (; !table.converged(); ++steps) {
      REQUIRE(steps < sms);
      const std::uint32_t first = table.Choose();
      REQUIRE((first >= 1 && first < sms));
      table.Measured(first, times(first));
    }
    const std::uint32_t chosen = table.Choose();
    const auto longest = [&](std::uint32_t first) { return std::ranges::max(times(first)); };
    INFO("round " << round << ", " << sms << " SMs, chosen " << chosen);
    // The search ends where straight lines promise no more: on the way, none that was tried was better.
    for (std::uint32_t first = 1; first < sms; ++first) {
      if (table.StepTime(first) < longest(chosen) * (1 - 1e-9)) FAIL("a better one is known: " << first);
    }
  }
}

}  // namespace
}  // namespace gridloom::policy
