#include "sim/timing/dispatch/hardware_queues.h"

namespace gridloom::timing {

void HardwareQueues::Add(WorkId id) {
  works_.at(id).queued = true;
  const std::uint32_t number = QueueOf(id);
  std::deque<WorkId>& queue = queues_[number];
  if (queue.empty()) open_.insert(number);
  queue.push_back(id);
}

void HardwareQueues::Check(Cycle now) {
  while (!waking_.empty() && waking_.begin()->first <= now) {
    open_.insert(waking_.begin()->second);
    waking_.erase(waking_.begin());
  }
  // Each queue once, in the order of their numbers.
  for (auto queue = Take(0); queue; queue = Take(*queue + 1)) CheckQueue(*queue, now);
}

/// The next queue to look at, from a number on: it is taken from those that are to be.
std::optional<std::uint32_t> HardwareQueues::Take(std::uint32_t from) {
  std::optional<std::uint32_t> first;
  std::set<std::uint32_t>* with = nullptr;
  const auto look = [&](std::set<std::uint32_t>& queues) {
    const auto at = queues.lower_bound(from);
    if (at == queues.end() || (first && *first <= *at)) return;
    first = *at;
    with = &queues;
  };
  look(open_);
  for (auto& [tenant, queues] : full_) {
    if (ready_.HasRoomFor(tenant)) look(queues);
  }
  if (first) with->erase(*first);
  return first;
}

/// Makes the queue's first kernels ready that may begin. The next one wakes the queue when its time is known, what
/// holds it back has ended, or its tenant has room.
void HardwareQueues::CheckQueue(std::uint32_t number, Cycle now) {
  const auto found = queues_.find(number);
  if (found == queues_.end()) return;
  std::deque<WorkId>& queue = found->second;
  while (!queue.empty()) {
    const WorkId id = queue.front();
    const std::uint32_t tenant = works_.at(id).kernel.owner.tenant;
    if (!ready_.HasRoomFor(tenant)) {
      full_[tenant].insert(number);
      return;
    }
    if (const Cycle begin = lot_.BeginOf(id, now, true); begin > now) {
      if (lot_.Park(id)) return;
      // With rules a kernel may become ready although nothing has ended.
      if (lot_.has_rules()) open_.insert(number);
      else waking_.emplace(begin, number);
      return;
    }
    queue.pop_front();
    ready_.Add(id, now);  // who hears of it may add works: the queue stays where it is, iterators need not
  }
  queues_.erase(number);
}

}  // namespace gridloom::timing
