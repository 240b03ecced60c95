#include "sim/timing/dispatch/dispatch_events.h"

namespace gridloom::timing {

void DispatchEvents::Signalled(std::vector<CtaSignal>& signals) {
  for (const CtaSignal& signal : signals) {
    // Within a cycle by SM, and those of one SM in the order in which they were issued.
    Add(signal.at, Kind::kCtaSignal, std::uint64_t{signal.place.sm} << 48 | signals_.size());
    signals_.push_back(signal);
  }
  signals.clear();
}

void DispatchEvents::Ended(std::vector<CtaEnd>& ended) {
  for (const CtaEnd& end : ended) {
    // Within a cycle by SM and slot.
    Add(end.at, Kind::kCtaEnd, std::uint64_t{end.sm} << 48 | std::uint64_t{end.slot} << 32 | ended_.size());
    ended_.push_back(end);
  }
  ended.clear();
}

void DispatchEvents::ForgetWindow() {
  signals_.clear();
  ended_.clear();
}

}  // namespace gridloom::timing
