#include "scheduler/model/sharing.h"

#include <catch2/catch.hpp>
#include <vector>

namespace gridloom::model {
namespace {

TEST_CASE("Sharing_TwoPrograms_FiguresAreThoseOfTheirDefinitions") {
  // One at half of its speed, one at a quarter.
  const std::vector<SharedTime> times = {{.alone = 3, .shared = 6}, {.alone = 2, .shared = 8}};
  const auto figures = FiguresOf(times);
  REQUIRE(figures);
  CHECK(figures->stp == 0.75);
  CHECK(figures->antt == 3);
  CHECK(figures->fairness == 0.5);
}

TEST_CASE("Sharing_WhoeverIsSlowedDownAlike_IsTreatedFairly") {
  const std::vector<SharedTime> times = {
      {.alone = 1, .shared = 2}, {.alone = 50, .shared = 100}, {.alone = 4, .shared = 8}};
  const auto figures = FiguresOf(times);
  REQUIRE(figures);
  CHECK(figures->stp == 1.5);
  CHECK(figures->antt == 2);
  CHECK(figures->fairness == 1);
}

TEST_CASE("Sharing_WithoutATime_NothingIsKnown") {
  CHECK_FALSE(FiguresOf({}));
  const std::vector<SharedTime> times = {{.alone = 1, .shared = 2}, {.alone = 0, .shared = 3}};
  CHECK_FALSE(FiguresOf(times));
  CHECK(FiguresOf(std::span(times).first(1)));
}

}  // namespace
}  // namespace gridloom::model
