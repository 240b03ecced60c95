// Kernels of the host's that software takes up (KernelPath) and that have not begun.
#pragma once

#include "sim/timing/dispatch/parking_lot.h"
#include "sim/timing/dispatch/work_reports.h"

namespace gridloom::timing {

class PathKernels {
 public:
  PathKernels(StreamOrder& works, const Ports& ports, ParkingLot& lot, WorkReports& reports)
      : works_(works), ports_(ports), lot_(lot), reports_(reports) {}

  /// Whether the part that takes kernels up wants this one. Asked once.
  bool Wants(WorkId kernel) const;
  void Add(WorkId kernel) { waiting_.emplace(works_.at(kernel).order.submitted, kernel); }
  /// Gives the part those kernels that nothing holds back any more.
  void Check(Cycle now);

 private:
  StreamOrder& works_;
  const Ports& ports_;
  ParkingLot& lot_;
  WorkReports& reports_;
  WorksByTime waiting_;
};

}  // namespace gridloom::timing
