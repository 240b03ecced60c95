// Copies, fills and works of storage that have not started, and the engines that they wait for.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/timing/dispatch/copy_engines.h"
#include "sim/timing/dispatch/parking_lot.h"

namespace gridloom::timing {

class WaitingCopies {
 public:
  WaitingCopies(const Parameters& parameters, StreamOrder& works, const Ports& ports, ParkingLot& lot,
                DispatchEvents& events)
      : works_(works), ports_(ports), lot_(lot), events_(events), engines_(parameters), copies_(engines_.count()) {}

  void Add(WorkId copy);
  /// Whether another part of the device does what a copy that is about to be given comes behind in its stream.
  bool FollowsElsewhere(const WorkState& copy) const;
  /// Starts those copies that may begin, where their engines or parts take them.
  void Check(Cycle now);
  /// The engine may take its next copy.
  void FreeEngine(std::size_t engine) { engines_.Free(engine); }
  /// Tells parts what a copy or fill of the engines has moved.
  void TellTransfer(WorkId id, Cycle now) const;

 private:
  bool Elsewhere(const WorkState& copy, const WorkState& before) const;
  bool HandsOver(const WorkState& copy) const;
  bool Start(WorkId id, Cycle now);

  StreamOrder& works_;
  const Ports& ports_;
  ParkingLot& lot_;
  DispatchEvents& events_;
  CopyEngines engines_;
  // By engine, but for those that are parked: an engine takes them in the order in which hosts gave them.
  std::vector<WorksByTime> copies_;
};

}  // namespace gridloom::timing
