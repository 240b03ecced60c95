#include "sim/timing/live/stop_conditions.h"

namespace gridloom::timing {

void StopConditions::Begin() {
  left_.clear();
  stops_ = false;
}

void StopConditions::Ended(WorkId work, const GivenWorks& works) {
  if (awaited_.erase(work) != 0) stops_ = true;
  if (left_.empty()) return;
  const auto node = works.NodeOf(work);
  if (!node) return;
  const auto left = left_.find(HostOf(*node));
  if (left != left_.end() && --left->second == 0) stops_ = true;
}

}  // namespace gridloom::timing
