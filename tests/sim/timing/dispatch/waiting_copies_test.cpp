#include "sim/timing/dispatch/waiting_copies.h"

#include <catch2/catch.hpp>

#include "tests/sim/timing/dispatch/front_end.h"

namespace gridloom::timing {
namespace {

TEST_CASE("WaitingCopies_AnEngine_TakesThemInTheOrderInWhichTheyWereGiven") {
  FrontEnd front;
  WaitingCopies copies(front.parameters, front.works, front.ports, front.lot, front.events);
  const WorkId first = front.AddCopy(0, WorkKind::kCopyToDevice), second = front.AddCopy(1, WorkKind::kCopyToDevice);
  const WorkId third = front.AddCopy(2, WorkKind::kCopyToDevice), out = front.AddCopy(3, WorkKind::kCopyToHost);
  for (const WorkId copy : {first, second, third, out}) copies.Add(copy);
  copies.Check(0);
  CHECK(front.Running(4) == std::vector<WorkId>{first, out});
  std::vector<std::size_t> engines;
  while (front.events.next() != kNever) {
    const DispatchEvents::Event event = front.events.Take();
    if (event.kind == DispatchEvents::Kind::kEngineFree) engines.push_back(event.detail);
    else CHECK(event.of_engine());
  }
  REQUIRE(engines.size() == 2);
  copies.FreeEngine(0);
  copies.Check(10);
  CHECK(front.Running(4) == std::vector<WorkId>{first, second, out});
}

TEST_CASE("WaitingCopies_APartThatTakesACopy_NeedsNoEngine") {
  struct SevenBytes final : CopyPath {
    bool Takes(Cycle, const WorkView& copy) override { return copy.bytes == 7; }
  } path;
  FrontEnd front;
  front.ports.copy_paths.push_back(&path);
  WaitingCopies copies(front.parameters, front.works, front.ports, front.lot, front.events);
  copies.Add(front.AddCopy(0, WorkKind::kCopyToDevice));
  copies.Add(front.AddCopy(1, WorkKind::kCopyToDevice));
  copies.Add(front.AddCopy(2, WorkKind::kCopyToDevice, 0, 7));
  copies.Check(0);
  CHECK(front.Running(3) == std::vector<WorkId>{0, 2});
}

TEST_CASE("WaitingCopies_CopyBehindAnotherPartOfTheDevice_IsToldFromOneBehindItsOwnEngine") {
  FrontEnd front;
  const WaitingCopies copies(front.parameters, front.works, front.ports, front.lot, front.events);
  WorkState copy;
  copy.kind = WorkKind::kCopyToHost;
  copy.order.stream = 0;
  CHECK_FALSE(copies.FollowsElsewhere(copy));
  front.AddCopy(0, WorkKind::kCopyToHost);
  CHECK_FALSE(copies.FollowsElsewhere(copy));
  front.AddCopy(0, WorkKind::kCopyToDevice);
  CHECK(copies.FollowsElsewhere(copy));
  front.AddKernel(0);
  CHECK(copies.FollowsElsewhere(copy));
  front.AddCopy(0, WorkKind::kMarker);
  CHECK_FALSE(copies.FollowsElsewhere(copy));
}

TEST_CASE("WaitingCopies_Checkers_AreToldWhatMoved") {
  struct Hears final : AccessEvents {
    void OnTransfer(Cycle, WorkId, std::uint32_t, std::uint64_t address, std::uint64_t bytes, bool writes) override {
      moved.emplace_back(address, bytes, writes);
    }
    std::vector<std::tuple<std::uint64_t, std::uint64_t, bool>> moved;
  } hears;
  FrontEnd front;
  front.ports.access_events.push_back(&hears);
  const WaitingCopies copies(front.parameters, front.works, front.ports, front.lot, front.events);
  const WorkId copy = front.AddCopy(0, WorkKind::kCopyOnDevice, 0, 100);
  front.works.at(copy).use = {.address = 4096, .span = 100, .source = 8192, .source_span = 100};
  copies.TellTransfer(copy, 0);
  REQUIRE(hears.moved.size() == 2);
  CHECK(hears.moved[0] == std::tuple<std::uint64_t, std::uint64_t, bool>(8192, 100, false));
  CHECK(hears.moved[1] == std::tuple<std::uint64_t, std::uint64_t, bool>(4096, 100, true));
}

}  // namespace
}  // namespace gridloom::timing
