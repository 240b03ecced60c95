#include "sim/timing/dispatch/parking_lot.h"

namespace gridloom::timing {

Cycle ParkingLot::BeginOf(WorkId id, Cycle now, bool launched) {
  const Cycle submitted = works_.at(id).order.submitted;
  if (submitted > now) return submitted;  // whoever gave the work has seen to it that it is looked at then
  const Cycle start = launched ? works_.MayLaunch(id, now) : works_.MayStart(id, now);
  if (start > now && start < kNever) events_.Check(start);
  return start;
}

bool ParkingLot::Park(WorkId id) { return !has_rules() && ParkBehindBlocker(id); }

bool ParkingLot::ParkBehindBlocker(WorkId id) {
  const auto blocker = works_.Blocker(id);
  if (!blocker) return false;
  parked_[*blocker].push_back(id);
  return true;
}

std::vector<WorkId> ParkingLot::Leave(WorkId blocker) {
  auto parked = parked_.extract(blocker);
  return parked.empty() ? std::vector<WorkId>() : std::move(parked.mapped());
}

}  // namespace gridloom::timing
