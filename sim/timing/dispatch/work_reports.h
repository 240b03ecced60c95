// What became of works since the dispatcher last ran, for whoever looks between windows.
#pragma once

#include <vector>

#include "sim/timing/dispatch/device_launches.h"
#include "sim/timing/dispatch/stream_order.h"

namespace gridloom::timing {

class WorkReports {
 public:
  WorkReports(StreamOrder& works, DeviceLaunches& launches) : works_(works), launches_(launches) {}

  /// A CTA of the kernel starts, or a part has taken the kernel up.
  void Started(WorkId id, Cycle at);
  void Ended(WorkId id) { finished_.push_back(id); }
  void Clear();
  /// Kernels that got their first CTA, and works that ended; in the order of time.
  const std::vector<WorkId>& begun() const { return begun_; }
  const std::vector<WorkId>& finished() const { return finished_; }

 private:
  StreamOrder& works_;
  DeviceLaunches& launches_;
  std::vector<WorkId> begun_, finished_;
};

}  // namespace gridloom::timing
