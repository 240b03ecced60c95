#include "sim/timing/dispatch/hardware_queues.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

TEST_CASE("HardwareQueues_AKernelThatWaits_HoldsBackThoseBehindItInItsQueue") {
  for (const std::uint32_t count : {1u, 2u}) {
    FrontEnd front(QuickDevice());
    HardwareQueues queues(count, front.works, front.lot, front.ready);
    const WorkId first = front.AddKernel(0), second = front.AddKernel(0), other = front.AddKernel(1);
    for (const WorkId kernel : {first, second, other}) queues.Add(kernel);
    queues.Check(0);
    CHECK(front.Running(3) == (count == 1 ? std::vector<WorkId>{first} : std::vector<WorkId>{first, other}));
    // Nobody looks at the queue before what the second kernel waits for has ended.
    queues.Check(10);
    CHECK_FALSE(front.Runs(second));
    front.ready.Remove(front.ready.Find(first));
    front.works.Finish(first, 20);
    for (const WorkId kernel : front.lot.Leave(first)) queues.Open(kernel);
    queues.Check(20);
    CHECK(front.Runs(second));
    CHECK(front.Runs(other));
  }
}

TEST_CASE("HardwareQueues_KernelWhoseTimeIsKnown_WakesItsQueueThen") {
  sim::DeviceSpec device = QuickDevice();
  device.timing.launch.kernel_cycles = 30;
  FrontEnd front(device);
  HardwareQueues queues(4, front.works, front.lot, front.ready);
  const WorkId kernel = front.AddKernel(5, 100);
  queues.Add(kernel);
  queues.Check(100);
  queues.Check(129);
  CHECK_FALSE(front.Runs(kernel));
  queues.Check(130);
  CHECK(front.Runs(kernel));
}

TEST_CASE("HardwareQueues_TenantWithoutRoom_HoldsBackOnlyItsOwnQueues") {
  sim::DeviceSpec device = QuickDevice();
  device.grid.max_resident = 1;
  FrontEnd front(device);
  HardwareQueues queues(8, front.works, front.lot, front.ready);
  const WorkId first = front.AddKernel(0), second = front.AddKernel(1), other = front.AddKernel(2, 0, {}, 7);
  for (const WorkId kernel : {first, second, other}) queues.Add(kernel);
  queues.Check(0);
  CHECK(front.Running(3) == std::vector<WorkId>{first, other});
  front.ready.Remove(front.ready.Find(other));
  queues.Check(1);
  CHECK_FALSE(front.Runs(second));
  front.ready.Remove(front.ready.Find(first));
  queues.Check(2);
  CHECK(front.Runs(second));
}

}  // namespace
}  // namespace gridloom::timing
