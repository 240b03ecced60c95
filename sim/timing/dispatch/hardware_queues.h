// The hardware queues, through which a host's kernels come: streams share them, and a kernel that waits holds back
// those behind it in its queue.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/timing/dispatch/parking_lot.h"
#include "sim/timing/dispatch/ready_kernels.h"

namespace gridloom::timing {

class HardwareQueues {
 public:
  /// `count`: of the device.
  HardwareQueues(std::uint32_t count, StreamOrder& works, ParkingLot& lot, ReadyKernels& ready)
      : count_(count), works_(works), lot_(lot), ready_(ready) {}

  /// A kernel comes into the queue of its stream.
  void Add(WorkId id);
  /// What a kernel of a queue was parked behind has ended.
  void Open(WorkId id) { open_.insert(QueueOf(id)); }
  /// Makes those kernels ready that may begin now, queue by queue.
  void Check(Cycle now);

 private:
  std::uint32_t QueueOf(WorkId id) const { return works_.at(id).order.stream % count_; }
  std::optional<std::uint32_t> Take(std::uint32_t from);
  void CheckQueue(std::uint32_t number, Cycle now);

  const std::uint32_t count_;
  StreamOrder& works_;
  ParkingLot& lot_;
  ReadyKernels& ready_;
  std::unordered_map<std::uint32_t, std::deque<WorkId>> queues_;  // kernels that are not ready; none is empty
  std::set<std::uint32_t> open_;                                  // whose first kernel may have become ready
  // By tenant: queues whose first kernel is the tenant's, which has no room for one more.
  std::map<std::uint32_t, std::set<std::uint32_t>> full_;
  std::set<std::pair<Cycle, std::uint32_t>> waking_;  // whose first kernel is ready at that time
};

}  // namespace gridloom::timing
