#include "sim/timing/dispatch/parking_lot.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

TEST_CASE("ParkingLot_WorkBehindAnother_IsParkedUntilThatHasEnded") {
  FrontEnd front(QuickDevice());
  const WorkId first = front.AddKernel(0), second = front.AddKernel(0), free = front.AddKernel(1);
  CHECK(front.lot.MayBegin(first, 0, true));
  CHECK_FALSE(front.lot.Park(free));
  CHECK(front.lot.BeginOf(second, 0, true) == kNever);
  CHECK(front.lot.Park(second));
  CHECK(front.lot.Leave(free).empty());
  front.works.Finish(first, 50);
  CHECK(front.lot.Leave(first) == std::vector<WorkId>{second});
  CHECK(front.lot.Leave(first).empty());
  CHECK(front.lot.MayBegin(second, 50, true));
}

TEST_CASE("ParkingLot_TimeThatIsKnown_BringsAnotherLookThen") {
  sim::DeviceSpec device = QuickDevice();
  device.timing.launch.kernel_cycles = 30;
  FrontEnd front(device);
  const WorkId kernel = front.AddKernel(0, 100);
  CHECK(front.lot.BeginOf(kernel, 99, true) == 100);
  CHECK(front.events.next() == kNever);  // whoever gave it looks at it then
  CHECK(front.lot.BeginOf(kernel, 100, true) == 130);
  CHECK(front.events.next() == 130);
  CHECK(front.lot.MayBegin(kernel, 100, false));
  CHECK_FALSE(front.lot.Park(kernel));
}

TEST_CASE("ParkingLot_WhereAPartHasRules_NothingIsParked") {
  struct AtOnce final : StartRule {
    Cycle MayStart(Cycle now, const WorkView&, const WorkView&) override { return now; }
  } rule;
  FrontEnd front(QuickDevice());
  front.ports.start_rules.push_back(&rule);
  const WorkId first = front.AddKernel(0), second = front.AddKernel(0);
  CHECK(front.lot.has_rules());
  CHECK_FALSE(front.lot.Park(second));
  CHECK(front.lot.MayBegin(second, 10, false));
  CHECK(front.lot.ParkBehindBlocker(second));
  CHECK(front.lot.Leave(first) == std::vector<WorkId>{second});
}

}  // namespace
}  // namespace gridloom::timing
