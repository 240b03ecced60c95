// Copies, fills and works of storage that have not started, and the engines that they wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/timing/dispatch/copy_engines.h"
#include "sim/timing/dispatch/parking_lot.h"

namespace gridloom::timing {

/// Device memory that a copy or fill has written.
struct CopiedMemory {
  Cycle at = 0;
  std::uint32_t address_space = 0;
  std::uint64_t address = 0, bytes = 0;
};

class WaitingCopies {
 public:
  WaitingCopies(const Parameters& parameters, StreamOrder& works, const Ports& ports, ParkingLot& lot,
                DispatchEvents& events)
      : works_(works),
        ports_(ports),
        lot_(lot),
        events_(events),
        holds_copies_(parameters.timing().l2.holds_copies),
        engines_(parameters),
        copies_(engines_.count()) {}

  void Add(WorkId copy);
  /// Whether another part of the device does what a copy that is about to be given comes behind in its stream.
  bool FollowsElsewhere(const WorkState& copy) const;
  /// Starts those copies that may begin, where their engines or parts take them.
  void Check(Cycle now);
  /// The engine may take its next copy.
  void FreeEngine(std::size_t engine) { engines_.Free(engine); }
  /// Tells parts what a copy or fill of the engines has moved.
  void TellTransfer(WorkId id, Cycle now) const;
  /// The copy or fill has moved its bytes, whoever did it.
  void NoteEnd(WorkId id, Cycle now);
  /// What has been written so since the last call, where L2 holds it.
  std::vector<CopiedMemory> TakeCopied() { return std::exchange(copied_, {}); }

 private:
  bool Elsewhere(const WorkState& copy, const WorkState& before) const;
  bool HandsOver(const WorkState& copy) const;
  bool Start(WorkId id, Cycle now);

  StreamOrder& works_;
  const Ports& ports_;
  ParkingLot& lot_;
  DispatchEvents& events_;
  const bool holds_copies_;
  std::vector<CopiedMemory> copied_;
  CopyEngines engines_;
  // By engine, but for those that are parked: an engine takes them in the order in which hosts gave them.
  std::vector<WorksByTime> copies_;
};

}  // namespace gridloom::timing
