// What the part has decided to do later, in the order of time.
#pragma once

#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/work.h"

namespace gridloom::hardware::crcs {

/// In this order within a cycle.
enum class EventKind : std::uint8_t {
  kEntered,   ///< the counts of a kernel, the pages of a copy are in the table; what was given to storage begins
  kReleased,  ///< a CTA's release has reached the table
  kKernelEnd,
  kRead,      ///< storage has given a piece of a copy's source
  kSendable,  ///< a page of a copy's source is in the host's memory
  kArrived,   ///< a page has come to the device
  kBack,      ///< a page has come to the host
  kWritten,   ///< a piece of a result is on storage
  kMoved,     ///< a copy or fill on the device is done
  kDropped,   ///< of storage: it will not begin
};

struct Event {
  timing::Cycle at = 0;
  EventKind kind = EventKind::kEntered;
  timing::WorkId work = 0;
  std::uint64_t detail = 0;  ///< a page or piece of the work, a release
  // Nothing else may decide: in which order things were decided that come at one cycle depends on the length of
  // windows.
  bool operator>(const Event& other) const {
    return std::tie(at, kind, work, detail) > std::tie(other.at, other.kind, other.work, other.detail);
  }
};

class Agenda {
 public:
  void Add(timing::Cycle at, EventKind kind, timing::WorkId work, std::uint64_t detail = 0) {
    events_.push({at, kind, work, detail});
  }
  timing::Cycle next() const { return events_.empty() ? timing::kNever : events_.top().at; }
  Event Take() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace gridloom::hardware::crcs
