#include "sim/timing/live/given_works.h"

#include <catch2/catch.hpp>

#include "sim/timing/live/stop_conditions.h"

namespace gridloom::timing {
namespace {

TEST_CASE("GivenWorks_AGroup_EndsWithItsLastWork") {
  GivenWorks works;
  const NodeId node = NodeOf(2, 1);
  works.Add(node, {.begin = 10, .work = 14, .waits = 3});
  CHECK(works.WorkOf(node) == WorkId{14});
  CHECK(works.NodeOf(14) == node);
  CHECK_FALSE(works.NodeOf(10));
  CHECK_FALSE(works.Take(10));
  CHECK(works.BeginsOf(2) == std::vector<WorkId>{10});
  CHECK(works.BeginsOf(1).empty());
  const auto ended = works.Take(14);
  REQUIRE(ended);
  CHECK(ended->node == node);
  CHECK(ended->waits == 3);
  CHECK_FALSE(works.WorkOf(node));
  CHECK(works.empty());
}

TEST_CASE("StopConditions_AWorkThatIsAwaited_StopsTheDevice") {
  GivenWorks works;
  StopConditions stops;
  stops.Await(4);
  stops.Begin();
  stops.Ended(3, works);
  CHECK_FALSE(stops.stops());
  stops.Ended(4, works);
  CHECK(stops.stops());
  stops.Begin();
  CHECK_FALSE(stops.stops());
  stops.Ended(4, works);
  CHECK_FALSE(stops.stops());
}

TEST_CASE("StopConditions_AsManyWorksOfAHost_StopTheDevice") {
  GivenWorks works;
  for (const WorkId work : {1u, 2u}) works.Add(NodeOf(5, work), {.begin = work, .work = work});
  works.Add(NodeOf(6, 1), {.begin = 3, .work = 3});
  StopConditions stops;
  stops.Begin();
  stops.AwaitAll(5, 2);
  stops.Ended(3, works);
  stops.Ended(1, works);
  stops.Ended(9, works);  // a part's
  CHECK_FALSE(stops.stops());
  stops.Ended(2, works);
  CHECK(stops.stops());
}

}  // namespace
}  // namespace gridloom::timing
