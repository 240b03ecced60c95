// The kernel management unit: kernels that come through no hardware queue, as a kernel launched them or as they wait
// for no other.
#pragma once

#include <cstdint>
#include <map>

#include "sim/timing/dispatch/parking_lot.h"
#include "sim/timing/dispatch/ready_kernels.h"

namespace gridloom::timing {

class ManagementUnit {
 public:
  ManagementUnit(const Parameters& parameters, StreamOrder& works, ParkingLot& lot, ReadyKernels& ready,
                 DispatchEvents& events)
      : parameters_(parameters), works_(works), lot_(lot), ready_(ready), events_(events) {}

  /// DeviceInput::Launch: the kernel comes to the unit then, or when the launch that it comes behind has ended.
  void Launch(WorkId launch, Cycle at);
  /// What the launch was parked behind has ended.
  void LaunchParked(WorkId launch, Cycle now);
  /// A kernel of the host's that waits for no other.
  void LaunchPastQueues(WorkId id);
  /// Makes those kernels ready that leave the unit now: in the order in which they came to it, as far as their tenants
  /// have room.
  void Check(Cycle now);

 private:
  const Parameters& parameters_;
  StreamOrder& works_;
  ParkingLot& lot_;
  ReadyKernels& ready_;
  DispatchEvents& events_;
  std::map<std::uint32_t, WorksByTime> launched_;  // by tenant, then by the time at which they may go on
  Cycle next_dispatch_ = 0;                        // when the next of them may leave the unit
};

}  // namespace gridloom::timing
