// Works that cannot begin yet: what waits for a known time or for the end of a work is not looked at before. Otherwise
// each event would cost a look at all that waits, and a program with many streams would take the time of all others.
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/timing/dispatch/dispatch_events.h"
#include "sim/timing/dispatch/stream_order.h"

namespace gridloom::timing {

/// Works by the time at which each of them is looked at first.
using WorksByTime = std::set<std::pair<Cycle, WorkId>>;

class ParkingLot {
 public:
  ParkingLot(const StreamOrder& works, const Ports& ports, DispatchEvents& events)
      : works_(works), ports_(ports), events_(events) {}

  /// From when on nothing holds the work back. If that is known and later than `now`, an event brings another look
  /// then. kNever: something has to end first. `launched`: the work is launched as kernels are.
  Cycle BeginOf(WorkId id, Cycle now, bool launched);
  bool MayBegin(WorkId id, Cycle now, bool launched) { return BeginOf(id, now, launched) <= now; }
  /// A part may let a work begin although nothing has ended: then nothing is parked.
  bool has_rules() const { return !ports_.start_rules.empty(); }

  /// Puts a work aside until what it waits for has ended. False when nothing is known to hold it back so long.
  bool Park(WorkId id);
  /// As Park, also where parts have rules.
  bool ParkBehindBlocker(WorkId id);
  /// The works that waited for one which has ended. They are not parked any more.
  std::vector<WorkId> Leave(WorkId blocker);

 private:
  const StreamOrder& works_;
  const Ports& ports_;
  DispatchEvents& events_;
  std::unordered_map<WorkId, std::vector<WorkId>> parked_;  // by the work that has to end
};

}  // namespace gridloom::timing
