#include "sim/timing/dispatch/work_reports.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

TEST_CASE("WorkReports_AKernel_BeginsOnce_WithItsEarliestCta") {
  FrontEnd front;
  const WorkId kernel = front.AddKernel(0);
  front.reports.Started(kernel, 20);
  front.reports.Started(kernel, 15);
  front.reports.Ended(kernel);
  CHECK(front.reports.begun() == std::vector<WorkId>{kernel});
  CHECK(front.reports.finished() == std::vector<WorkId>{kernel});
  CHECK(front.works.at(kernel).result.started == 15);
  front.reports.Clear();
  CHECK(front.reports.begun().empty());
  CHECK(front.reports.finished().empty());
}

TEST_CASE("DeviceLaunches_ACall_LaunchesTheWorkThatExpectsIt_Once") {
  DeviceLaunches launches;
  launches.Expect(5, 1, {.parent = 2, .number = 77});
  CtaSignal call{.at = 10, .done = 30, .place = {}, .event = {}};
  call.event.data[0] = 77;
  CHECK_FALSE(launches.Call(0, call));  // another program's
  CHECK(launches.Call(1, call) == WorkId{5});
  CHECK_FALSE(launches.Call(1, call));
  CHECK(launches.EndCall(5).done == 30);
  CHECK(launches.NeverCalled(2).empty());
}

}  // namespace
}  // namespace gridloom::timing
