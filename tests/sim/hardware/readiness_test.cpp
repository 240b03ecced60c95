// Which CTAs of a kernel have their pages.
#include "sim/hardware/crcs/readiness.h"

#include <catch2/catch.hpp>

namespace gridloom::hardware::crcs {
namespace {

constexpr std::uint8_t kReads = trace::kRangeRead, kWrites = trace::kRangeWrite;

TEST_CASE("Readiness_ACtaIsReady_WithItsLastPage_AndMayBegin_WithHalfOfThoseItReads") {
  Readiness readiness;
  readiness.Announce(0, {{10, 14}}, kReads);
  readiness.Announce(0, {{100, 104}}, kWrites);
  readiness.Build(1);
  CHECK((readiness.ready() == 0 && readiness.begun() == 0));
  for (std::uint64_t page = 100; page < 104; ++page) readiness.Own(page);  // what it writes is not what it waits for
  readiness.Own(12);
  CHECK(readiness.begun() == 0);
  readiness.Own(10);
  CHECK((readiness.ready() == 0 && readiness.begun() == 1 && readiness.FirstBegun() == 0));
  readiness.Own(11);
  CHECK(readiness.ready() == 0);
  readiness.Own(13);
  CHECK((readiness.ready() == 1 && readiness.FirstReady() == 0));
}

TEST_CASE("Readiness_OfCtasThatReadNothing_WaitsForAllThatTheyWrite") {
  Readiness readiness;
  readiness.Announce(0, {{5, 7}}, kWrites);
  readiness.Build(2);
  CHECK((readiness.ready() == 1 && readiness.FirstReady() == 1));  // the other one touches nothing
  readiness.Own(5);
  CHECK(readiness.begun() == 1);
  readiness.Own(6);
  CHECK((readiness.ready() == 2 && readiness.begun() == 2));
}

TEST_CASE("Readiness_SharedPages_CountForEachOfTheirCtas_AndStartedOnesAreGone") {
  Readiness readiness;
  for (std::uint64_t cta = 0; cta < 3; ++cta) readiness.Announce(cta, {{cta, cta + 2}}, kReads);  // 0-1, 1-2, 2-3
  readiness.Build(3);
  readiness.Own(1);
  CHECK((readiness.ready() == 0 && readiness.begun() == 2));
  readiness.Own(2);
  CHECK((readiness.ready() == 1 && readiness.FirstReady() == 1 && readiness.begun() == 3));
  readiness.Start(1);
  CHECK((readiness.ready() == 0 && readiness.begun() == 2 && readiness.FirstLeft() == 0));
  readiness.Own(0);
  readiness.Own(3);
  CHECK((readiness.ready() == 2 && readiness.FirstReady() == 0));
  readiness.Own(3);  // again, and one that nobody announced: nothing changes
  readiness.Own(77);
  CHECK(readiness.ready() == 2);
}

TEST_CASE("Readiness_OfCtasThatTheKernelDoesNotHave_IsLeftOut") {
  Readiness readiness;
  readiness.Announce(0, {{1, 2}}, kReads);
  readiness.Announce(7, {{1, 3}}, kReads);
  readiness.Announce(~std::uint64_t{0}, {{1, 3}}, kWrites);
  readiness.Build(2);
  readiness.Own(1);
  CHECK((readiness.ready() == 2 && readiness.begun() == 2));
}

}  // namespace
}  // namespace gridloom::hardware::crcs
