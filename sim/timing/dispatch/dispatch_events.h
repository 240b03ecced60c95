// What is known to happen at the front end of a device, in the order of time.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/timing/cta.h"
#include "sim/timing/cycle.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

class DispatchEvents {
 public:
  /// Within a cycle events come in this order.
  enum class Kind : std::uint8_t {
    kCtaSignal,
    kLaunch,
    kCtaEnd,
    kEngineFree,
    kCopyEnd,
    kKernelEnd,
    kCheck,  ///< nothing has happened; what waits is looked at
  };
  struct Event {
    Cycle at = 0;
    Kind kind = Kind::kCheck;
    std::uint64_t detail = 0;
    auto operator<=>(const Event&) const = default;
    WorkId work() const { return static_cast<WorkId>(detail); }
    /// Of kCopyEnd: an engine did the copy; otherwise a part did.
    bool of_engine() const { return detail >> kEngineAt != 0; }
  };

  void Add(Cycle at, Kind kind, std::uint64_t detail) { events_.insert({at, kind, detail}); }
  void Check(Cycle at) { Add(at, Kind::kCheck, 0); }
  /// The end of a copy that a part does; with `engine`, of one that an engine does.
  void EndCopy(WorkId copy, Cycle at) { Add(at, Kind::kCopyEnd, copy); }
  void EndCopy(WorkId copy, std::size_t engine, Cycle at) {
    Add(at, Kind::kCopyEnd, std::uint64_t{engine + 1} << kEngineAt | copy);
  }
  /// What CTAs said, and CTAs that ended, in the window just simulated. They are taken out of the lists.
  void Signalled(std::vector<CtaSignal>& signals);
  void Ended(std::vector<CtaEnd>& ended);

  /// Time of the next event; kNever when none is known.
  Cycle next() const { return events_.empty() ? kNever : events_.begin()->at; }
  Event Take() { return events_.extract(events_.begin()).value(); }
  /// Of an event of kind kCtaSignal, and of kind kCtaEnd. Valid until ForgetWindow.
  const CtaSignal& SignalOf(const Event& event) const { return signals_[event.detail & 0xffffffffffffu]; }
  const CtaEnd& EndOf(const Event& event) const { return ended_[event.detail & 0xffffffffu]; }
  /// All that Signalled and Ended brought has been taken.
  void ForgetWindow();

 private:
  static constexpr unsigned kEngineAt = 32;  // a copy's engine stands above its number

  std::set<Event> events_;
  std::vector<CtaSignal> signals_;  // kCtaSignal events refer to them
  std::vector<CtaEnd> ended_;       // kCtaEnd events likewise
};

}  // namespace gridloom::timing
