#include "sim/timing/dispatch/dispatch_events.h"

#include <catch2/catch.hpp>

namespace gridloom::timing {
namespace {

using Kind = DispatchEvents::Kind;

TEST_CASE("DispatchEvents_ComeByTime_WithinACycleByKind") {
  DispatchEvents events;
  CHECK(events.next() == kNever);
  events.Check(20);
  events.Add(10, Kind::kKernelEnd, 3);
  events.Add(10, Kind::kLaunch, 4);
  events.EndCopy(5, 10);
  events.Check(20);  // the same event once more
  std::vector<std::pair<Cycle, Kind>> seen;
  while (events.next() != kNever) {
    const DispatchEvents::Event event = events.Take();
    seen.emplace_back(event.at, event.kind);
  }
  CHECK(seen == std::vector<std::pair<Cycle, Kind>>{
                    {10, Kind::kLaunch}, {10, Kind::kCopyEnd}, {10, Kind::kKernelEnd}, {20, Kind::kCheck}});
}

TEST_CASE("DispatchEvents_CtasThatEnd_ComeBySmAndSlot_WhateverTheirOrderInTheLists") {
  DispatchEvents events;
  std::vector<CtaEnd> ended = {{.at = 7, .cta = 0, .sm = 2, .slot = 0},
                               {.at = 7, .cta = 1, .sm = 1, .slot = 5},
                               {.at = 7, .cta = 2, .sm = 1, .slot = 3},
                               {.at = 6, .cta = 3, .sm = 9, .slot = 9}};
  events.Ended(ended);
  CHECK(ended.empty());
  std::vector<std::uint64_t> ctas;
  while (events.next() != kNever) ctas.push_back(events.EndOf(events.Take()).cta);
  CHECK(ctas == std::vector<std::uint64_t>{3, 2, 1, 0});
}

TEST_CASE("DispatchEvents_Signals_ComeBySm_ThoseOfOneSmInTheirOrder") {
  DispatchEvents events;
  const auto signal = [](std::uint32_t sm, Cycle done) {
    return CtaSignal{.at = 5, .done = done, .place = {.launch = 0, .sm = sm, .slot = 0, .cta = 0}, .event = {}};
  };
  std::vector<CtaSignal> signals = {signal(4, 40), signal(4, 41), signal(3, 30)};
  events.Signalled(signals);
  std::vector<Cycle> done;
  while (events.next() != kNever) done.push_back(events.SignalOf(events.Take()).done);
  CHECK(done == std::vector<Cycle>{30, 40, 41});
  // The next window counts anew.
  events.ForgetWindow();
  signals = {signal(1, 99)};
  events.Signalled(signals);
  CHECK(events.SignalOf(events.Take()).done == 99);
}

TEST_CASE("DispatchEvents_EndOfACopy_TellsWhetherAnEngineDidIt") {
  DispatchEvents events;
  events.EndCopy(7, 10);
  CHECK_FALSE(events.Take().of_engine());
  events.EndCopy(7, 0, 10);
  const DispatchEvents::Event event = events.Take();
  CHECK(event.of_engine());
  CHECK(event.work() == 7);
}

}  // namespace
}  // namespace gridloom::timing
