// Kernels of which it turns out later what runs, and what comes with a program's works (ProgramWorks).
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "sim/timing/live/overlap_outcome.h"
#include "sim/timing/live/program_works.h"
#include "tests/sim/timing/live_fixture.h"

namespace gridloom::timing {
namespace {

using trace::HostAction;

constexpr auto kSoon = std::chrono::milliseconds(30);

/// A kernel, one behind it, an event, and polls for that; the first kernel is decided while the host waits for an
/// answer.
Cycle PolledEnd(Fixture& f, bool later, int* polls) {
  const NodeId first = later ? f.timeline->AddUndecided(f.At(1)) : f.Kernel(f.At(1), Adds(100, 2000));
  std::thread decides([&] {
    if (!later) return;
    std::this_thread::sleep_for(kSoon);
    CHECK(f.timeline->Decide(first, Tracking::kNone, Adds(100, 2000)).ok());
  });
  f.Kernel(f.At(1), Adds(3, 50));
  const NodeId event = f.timeline->AddMarker(f.At(1));
  for (*polls = 1; f.timeline->answers().Poll(f.host, event) == Answer::kNo;) ++*polls;
  decides.join();
  return *f.timeline->EndOf(event);
}

TEST_CASE("LiveTimeline_KernelThatIsDecidedLater_TakesNoOtherTime_NorDoAnswers") {
  Fixture known, decided;
  int polls = 0, polls_again = 0;
  CHECK(PolledEnd(known, false, &polls) == PolledEnd(decided, true, &polls_again));
  CHECK(polls == polls_again);
  CHECK(polls > 1);
}

TEST_CASE("LiveTimeline_KernelOfWhichNothingRuns_TakesNoTime") {
  Fixture f;
  const NodeId nothing = f.timeline->AddUndecided(f.At(1)), large = f.timeline->AddUndecided(f.At(1));
  const NodeId behind = f.Kernel(f.At(1), Adds(1, 1));
  CHECK(f.timeline->Decide(nothing, Tracking::kNone, nullptr).ok());
  const auto huge = SameCtas(
      AddsCode(), {.ctas = 1, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 1u << 30}, AddsCta(1));
  CHECK_FALSE(f.timeline->Decide(large, Tracking::kNone, huge).ok());
  REQUIRE(f.timeline->answers().WaitFor(f.host, behind));
  CHECK(f.timeline->EndOf(nothing) == f.call);
  CHECK(f.timeline->EndOf(large) == 2 * f.call);
  CHECK(f.timeline->Decide(nothing, Tracking::kNone, Adds(1, 1)).ok());  // too late
  REQUIRE(f.timeline->Finish().ok());
  CHECK(f.timeline->Kernels().Kernels()[0].launches == 1);
}

TEST_CASE("LiveTimeline_KernelThatNobodyDecides_KeepsTheHostForAWhileOnly") {
  LiveTimeline::Options options;
  options.patience_ms = 10;
  options.decision_patience_ms = 50;
  auto timeline = LiveTimeline::Create(Device(), policy::MakePolicy("leftover").value(), options);
  REQUIRE(timeline.ok());
  Place place;
  place.host = (*timeline)->AddHost();
  const NodeId kernel = (*timeline)->AddUndecided(place);
  CHECK_FALSE((*timeline)->answers().WaitFor(place.host, kernel));
  CHECK((*timeline)->Finish().ok());  // at the end it is not waited for
}

/// The calls of a program: a copy, a kernel with its profiler, a wait that sees nothing, a copy back, and a wait that
/// sees.
Cycle Played(bool overlapped, std::uint64_t storage_mb_s) {
  sim::DeviceSpec device = Device();
  device.timing.host.storage_mb_s = storage_mb_s;
  Fixture f(device);
  ProgramWorks works(*f.timeline, f.host, overlapped, [](std::uint64_t) { return NodeId{0}; });
  HostAction in, out;
  in.kind = HostAction::Kind::kCopyToDevice;
  out.kind = HostAction::Kind::kCopyToHost;
  in.bytes = out.bytes = 1 << 20;
  const auto copy = [&](const HostAction& action) {
    Place place = f.At(1);
    CHECK(works.BeforeCopy(action, place));
    return works.Add(std::move(place), action);
  };
  copy(in);
  Place kernel = f.At(1);
  const auto profiler = works.AddProfiler(kernel, Adds(1, 10));
  REQUIRE(profiler.ok());
  REQUIRE(kernel.after == std::vector{*profiler});
  const auto run = works.AddKernel(std::move(kernel), Tracking::kNone, Adds(10, 1000));
  REQUIRE(run.ok());
  CHECK(works.Wait(std::vector{*run}, false));
  CHECK(f.timeline->EndOf(*run).has_value() == !overlapped);
  CHECK(works.Wait(std::vector{copy(out)}, true));
  CHECK(f.timeline->EndOf(*profiler) <= *f.timeline->EndOf(*run));
  CHECK(works.Finish());
  f.timeline->RemoveHost(f.host);
  REQUIRE(f.timeline->Finish().ok());
  return f.timeline->end();
}

/// A copy comes behind the earlier ones whose memory of the host's it touches, where parts of the program overlap; else
/// its host has waited.
TEST_CASE("ProgramWorks_ReusedHostMemory_PutsACopyBehindTheEarlierOnes_WhereProgramsOverlap") {
  for (const bool overlapped : {false, true}) {
    Fixture f;
    std::vector<NodeId> nodes;
    ProgramWorks works(*f.timeline, f.host, overlapped,
                       [&](std::uint64_t work) { return work <= nodes.size() ? nodes[work - 1] : 0; });
    HostAction copy;
    copy.kind = HostAction::Kind::kCopyToDevice;
    copy.bytes = 1 << 20;
    nodes.push_back(works.Add(f.At(1), copy));
    copy.reuses = {{.work = 1, .begin = 0}, {.work = 9, .begin = 0}};  // of a work that did not come to be, too
    copy.kind = HostAction::Kind::kCopyToHost;
    copy.bytes = 1;
    nodes.push_back(works.Add(f.At(2), copy));
    f.timeline->RemoveHost(f.host);
    REQUIRE(f.timeline->Finish().ok());
    CHECK((*f.timeline->EndOf(nodes[1]) > *f.timeline->EndOf(nodes[0])) == overlapped);
  }
}

/// Where parts of a program overlap, its host goes on without waiting, but what it gives then comes behind what it
/// would have waited for, once in each stream.
TEST_CASE("ProgramWorks_WaitThatSeesNothing_OrdersWhatComesLater_InWhateverStream") {
  for (const bool overlapped : {false, true}) {
    Fixture f;
    ProgramWorks works(*f.timeline, f.host, overlapped, [](std::uint64_t) { return NodeId{0}; });
    const auto give = [&](std::uint64_t stream) {
      Place place = f.At(stream);
      works.PutBehindWaits(place);
      const std::size_t behind = place.after.size();
      const auto node = works.AddKernel(std::move(place), Tracking::kNone, Adds(1, 1000));
      REQUIRE(node.ok());
      return std::pair(*node, behind);
    };
    const NodeId first = give(1).first, beside = give(2).first;
    CHECK(works.Wait(std::vector{first}, false));
    const auto [second, behind_first] = give(3);
    CHECK(works.Wait(std::vector{second}, false));
    const auto [third, behind_both] = give(2);
    const std::size_t again = give(3).second, once_more = give(3).second;
    if (overlapped) CHECK((behind_first == 1 && behind_both == 2 && again == 1 && once_more == 0));
    else CHECK(behind_first + behind_both + again + once_more == 0);
    f.timeline->RemoveHost(f.host);
    REQUIRE(f.timeline->Finish().ok());
    const auto end = [&](NodeId node) { return *f.timeline->EndOf(node); };
    CHECK(end(beside) < end(first) + 2000);
    CHECK(end(second) > end(first) + 4000);
    CHECK(end(third) > end(second) + 4000);
  }
}

TEST_CASE("ProgramWorks_StorageBeforeAndBehindCopies_TakesItsTime_OverlappedOrNot") {
  const Fixture f;
  const Cycle megabyte = (Cycle{1} << 20) * f.device.timing.clock.sm_mhz / 1000;  // at 1000 MB/s
  const Cycle without = Played(false, 0), with = Played(false, 1000);
  CHECK(with > without + 2 * megabyte);
  CHECK(with < without + 2 * megabyte + 20 * (f.call + f.answer));
  CHECK(Played(true, 0) < without);  // a wait less
  CHECK(Played(true, 1000) <
        with);  // the device of this test follows no pages: reading and writing stand beside the copies
  CHECK(Played(true, 1000) >= megabyte);  // one after the other of a drive
}

TEST_CASE("OverlapOutcome_NothingOverlaps_SaysWhyOfTheFirstKernels") {
  OverlapOutcome outcome;
  CHECK(outcome.WhyNothingOverlaps("a program").empty());  // it has launched nothing
  CHECK(outcome.AddUntracked("_Z4addsPf", "it prints"));
  CHECK_FALSE(outcome.AddUntracked("_Z4addsPf", "it prints"));
  CHECK(outcome.WhyNothingOverlaps("a\x1b program") ==
        "no kernel of a\\x1b program overlaps with others: adds(float*): it prints");
  CHECK(outcome.AddUntracked("b", "it is\nirregular"));
  CHECK(outcome.AddUntracked("b", "it is too large"));
  CHECK(outcome.AddUntracked("c", "why"));
  CHECK(outcome.AddUntracked("d", "why"));
  CHECK(outcome.WhyNothingOverlaps("p") ==
        "no kernel of p overlaps with others: adds(float*): it prints; b: it is\\x0airregular; b: it is too large; and "
        "2 more");
  outcome.AddTracked();
  CHECK(outcome.WhyNothingOverlaps("p").empty());
}

}  // namespace
}  // namespace gridloom::timing
