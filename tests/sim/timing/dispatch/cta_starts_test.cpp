#include "sim/timing/dispatch/cta_starts.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

using Placed = CtaStarts::Placed;

struct Starts : FrontEnd {
  using FrontEnd::FrontEnd;
  Placed Place(WorkId kernel) {
    policy::KernelView& view = *ready.Find(kernel);
    const auto start = [this](std::uint32_t sm, CtaStart cta) { started.emplace_back(sm, std::move(cta)); };
    return starts.Place(10, view, policy::Rest(view), start).value();
  }
  CtaStarts starts{works, ports, nullptr, placement, reports};
  std::vector<std::pair<std::uint32_t, CtaStart>> started;
};

TEST_CASE("CtaStarts_Ctas_StartOnSmsRoundRobin_UntilNoneHasRoom") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 2;
  device.sm.max_blocks = 1;
  Starts front(device);
  const WorkId kernel = front.AddKernel(OneInstruction(5));
  front.ready.Add(kernel, 0);
  CHECK(front.Place(kernel) == Placed::kYes);
  CHECK(front.Place(kernel) == Placed::kYes);
  CHECK(front.Place(kernel) == Placed::kNoRoom);
  REQUIRE(front.started.size() == 2);
  CHECK(front.started[0].first == 0);
  CHECK(front.started[1].first == 1);
  CHECK(front.started[1].second.cta == 1);
  CHECK(front.reports.begun() == std::vector<WorkId>{kernel});
  front.starts.Release({.at = 90, .launch = kernel, .sm = 1, .slot = front.started[1].second.slot});
  CHECK(front.Place(kernel) == Placed::kYes);
  CHECK(front.started[2].first == 1);
}

TEST_CASE("CtaStarts_KernelThatNobodyWants_HasNoMoreCtas") {
  Starts front;
  const WorkId kernel = front.AddKernel(OneInstruction(5));
  front.ready.Add(kernel, 0);
  front.works.at(kernel).kernel.cancelled = true;
  CHECK(front.Place(kernel) == Placed::kNoMore);
  CHECK(front.started.empty());
}

TEST_CASE("CtaStarts_LimitOfAPart_IsToldFromNoRoom") {
  struct None final : CtaLimit {
    bool MayHold(Cycle, std::uint32_t, std::uint32_t, std::uint32_t) override { return false; }
  } limit;
  Starts front;
  front.ports.cta_limits.push_back(&limit);
  const WorkId kernel = front.AddKernel(OneInstruction(5));
  front.ready.Add(kernel, 0);
  CHECK(front.Place(kernel) == Placed::kLimited);
}

}  // namespace
}  // namespace gridloom::timing
