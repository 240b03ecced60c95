#include "sim/timing/dispatch/management_unit.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

/// A unit that takes 10 cycles for a launch, and sends one on every 4.
sim::DeviceSpec DeviceOfLaunches() {
  sim::DeviceSpec device = QuickDevice();
  device.timing.device_launch.dispatch_cycles = 10;
  device.timing.device_launch.dispatch_interval = 4;
  device.grid.max_resident = 2;
  return device;
}

TEST_CASE("ManagementUnit_Launches_LeaveOneByOne") {
  FrontEnd front(DeviceOfLaunches());
  ManagementUnit unit(front.parameters, front.works, front.lot, front.ready, front.events);
  const WorkId first = front.AddKernel(0), second = front.AddKernel(1);
  unit.Launch(first, 100);
  unit.Launch(second, 100);
  CHECK(front.works.at(first).order.submitted == 110);
  CHECK(front.works.at(second).order.submitted == 114);
  CHECK(front.events.next() == 110);
  unit.Check(109);
  CHECK_FALSE(front.Runs(first));
  unit.Check(110);
  CHECK(front.Running(2) == std::vector<WorkId>{first});
  unit.Check(114);
  CHECK(front.Runs(second));
}

TEST_CASE("ManagementUnit_TenantWithoutRoom_DoesNotHoldBackOthers") {
  FrontEnd front(DeviceOfLaunches());
  ManagementUnit unit(front.parameters, front.works, front.lot, front.ready, front.events);
  for (std::uint32_t stream = 0; stream < 3; ++stream) unit.Launch(front.AddKernel(stream), 0);
  const WorkId other = front.AddKernel(3, 0, {}, 7);
  unit.Launch(other, 0);
  unit.Check(1000);
  CHECK(front.Running(4) == std::vector<WorkId>{0, 1, other});
  front.ready.Remove(front.ready.Find(0));
  unit.Check(1001);
  CHECK(front.Runs(2));
}

TEST_CASE("ManagementUnit_LaunchBehindAnother_ComesToTheUnitWhenThatHasEnded") {
  FrontEnd front(DeviceOfLaunches());
  ManagementUnit unit(front.parameters, front.works, front.lot, front.ready, front.events);
  const WorkId first = front.AddKernel(0), second = front.AddKernel(1, 0, {first});
  unit.Launch(first, 0);
  unit.Launch(second, 0);
  unit.Check(1000);
  CHECK_FALSE(front.Runs(second));
  front.works.Finish(first, 1000);
  for (const WorkId launch : front.lot.Leave(first)) unit.LaunchParked(launch, 1000);
  CHECK(front.works.at(second).order.submitted == 1010);
  unit.Check(1010);
  CHECK(front.Runs(second));
}

TEST_CASE("ManagementUnit_KernelPastTheQueues_TakesTheTimeOfALaunch") {
  sim::DeviceSpec device = DeviceOfLaunches();
  device.timing.launch.kernel_cycles = 30;
  FrontEnd front(device);
  ManagementUnit unit(front.parameters, front.works, front.lot, front.ready, front.events);
  const WorkId kernel = front.AddKernel(0, 100);
  unit.LaunchPastQueues(kernel);
  CHECK(front.events.next() == 130);
  unit.Check(129);
  CHECK_FALSE(front.Runs(kernel));
  unit.Check(130);
  CHECK(front.Runs(kernel));
}

}  // namespace
}  // namespace gridloom::timing
