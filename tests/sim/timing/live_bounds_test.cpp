// What hosts may cost a live timeline and each other: memory, threads, time, also where they mean harm.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "sim/timing/live/live_timeline.h"
#include "tests/sim/timing/live_fixture.h"

namespace gridloom::timing {
namespace {

TEST_CASE("LiveTimeline_HostThatIsDropped_LeavesNoEndlessKernelBehind") {
  Fixture f;
  const HostId other = f.timeline->AddHost();
  // Thread blocks that wait for each other at barriers, have loads on their way, and a next wave to start.
  CodeBuilder code("endless");
  code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  code.Op(OpClass::kBarrier, {}, {});
  CtaBuilder cta;
  for (int w = 0; w < 4; ++w) {
    cta.Warp();
    cta.Visit(0, kAllLanes, 20'000'000);
  }
  const auto endless =
      SameCtas(code.code(), {.ctas = 100'000, .threads_per_cta = 128, .registers_per_thread = 16, .shared_bytes = 0},
               cta.Finish());
  const NodeId kernel = f.Kernel(f.At(1), endless);
  f.timeline->answers().AskForEnd(f.host, {kernel}, [](Answer) {});
  // Whoever comes while only that kernel is waited for begins beside it, and is simulated.
  const auto place = [](HostId host) {
    return Place{.host = host, .stream = 1, .after = {}, .group = 0, .rank = 0, .profile = 0};
  };
  const NodeId copy = f.timeline->AddCopy(place(other), CopyDirection::kToDevice, 64 << 10);
  REQUIRE(f.timeline->answers().WaitFor(other, copy));
  f.timeline->DropHost(f.host);
  const auto mine = f.timeline->AddKernel(place(other), Adds(1000, 100));
  const bool waited = f.timeline->answers().WaitFor(other, *mine);
  CHECK(f.timeline->problem() == "");
  REQUIRE(waited);
  CHECK(*f.timeline->EndOf(*mine) - *f.timeline->EndOf(copy) < 1'000'000);
  CHECK(f.timeline->kept().hosts == 1);
}

TEST_CASE("LiveTimeline_Questions_NeedNoThreads_AndAreAnsweredInTheEnd") {
  constexpr int kQuestions = 2000;
  Fixture f;
  std::vector<NodeId> kernels;
  for (std::uint64_t stream = 1; stream <= 8; ++stream) kernels.push_back(f.Kernel(f.At(stream), Adds(1, 10'000)));
  std::atomic<int> ended{0}, asked{0}, whole{0};
  for (int i = 0; i < kQuestions; ++i) {
    f.timeline->answers().AskForEnd(f.host, kernels, [&](Answer answer) { ended += answer == Answer::kYes ? 1 : 0; });
    f.timeline->answers().AskWhether(f.host, kernels, [&](Answer) { ++asked; });
  }
  f.timeline->answers().AskForEndOfAll(f.host, [&](Answer answer) { whole += answer == Answer::kYes ? 1 : 0; });
  REQUIRE(f.timeline->answers().WaitFor(f.host, kernels));
  REQUIRE(f.timeline->Finish().ok());
  CHECK(ended == kQuestions);
  CHECK(asked == kQuestions);
  CHECK(whole == 1);
}

TEST_CASE("LiveTimeline_HostThatNeverStopsSubmitting_KeepsNobodyFromItsAnswer") {
  Fixture f;
  const HostId other = f.timeline->AddHost();
  std::atomic<bool> stop{false};
  std::thread flood([&] {
    while (!stop) f.timeline->AddMarker({.host = other, .stream = 1, .after = {}, .group = 0, .rank = 0, .profile = 0});
  });
  const NodeId kernel = f.Kernel(f.At(1), Adds(1, 100));
  while (f.timeline->answers().Poll(f.host, kernel) != Answer::kYes) f.timeline->Advance(f.host, 100);
  stop = true;
  flood.join();
  f.timeline->DropHost(other);
}

/// Seconds of this thread and the simulation's for so many markers that nothing but an unfinished kernel holds back,
/// and their end.
double SecondsOfMarkers(std::size_t count) {
  Fixture f;
  const auto begin = std::chrono::steady_clock::now();
  f.Kernel(f.At(1), Adds(1, 1'000'000));
  NodeId last = 0;
  for (std::size_t i = 0; i < count; ++i) last = f.timeline->AddMarker(f.At(1));
  REQUIRE(f.timeline->answers().WaitFor(f.host, last));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST_CASE("LiveTimeline_MarkersThatWait_CostOnlyWhenSomethingHappensToThem") {
  // Looked at with each further one, eight times as many would cost sixty-four times as much.
  const double few = std::min(SecondsOfMarkers(5'000), SecondsOfMarkers(5'000)), many = SecondsOfMarkers(40'000);
  CHECK(many < 30 * few);
}

TEST_CASE("LiveTimeline_WorksOfLastRank_WaitForAllBeforeThem_WithoutNamingThem") {
  constexpr std::size_t kMembers = 20'000;
  Fixture f;
  const NodeId group = f.timeline->OpenGroup(f.At(1));
  const auto member = [&](std::uint64_t rank) {
    return f.timeline->AddMarker(
        {.host = f.host, .stream = 0, .after = {}, .group = group, .rank = rank, .profile = 0});
  };
  Place place{.host = f.host, .stream = 0, .after = {}, .group = group, .rank = 1, .profile = 0};
  const auto kernel = f.timeline->AddKernel(place, Adds(1, 1000));
  REQUIRE(kernel.ok());
  std::vector<NodeId> last;
  for (std::size_t i = 0; i < kMembers; ++i) last.push_back(member(Place::kLastRank));
  f.timeline->CloseGroup(group);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  REQUIRE(f.timeline->answers().WaitFor(f.host, group));
  getrusage(RUSAGE_SELF, &after);
  const Cycle end = *f.timeline->EndOf(*kernel);
  CHECK(*f.timeline->EndOf(last.front()) >= end);
  CHECK(*f.timeline->EndOf(last.back()) >= *f.timeline->EndOf(last.front()));
  CHECK(*f.timeline->EndOf(group) >= *f.timeline->EndOf(last.back()));
  CHECK(after.ru_maxrss - before.ru_maxrss < 200 << 10);  // of KiB; each naming all before it they took 800 MiB
}

TEST_CASE("HostEnds_WorksThatHaveEndedBeforeTheHostsTime_AreLetGo_ButNotEvents") {
  HostEnds ends;
  for (std::size_t i = 0; i < 3 * HostEnds::kChunk; ++i) ends.Add(i == HostEnds::kChunk + 7);
  for (std::size_t i = 0; i < 3 * HostEnds::kChunk; ++i) ends.Set(i, 100 + i);
  CHECK(ends.has_complete());
  ends.LetGo(100 + HostEnds::kChunk - 2);
  CHECK(ends.kept() == 3 * HostEnds::kChunk);
  ends.LetGo(1'000'000);
  CHECK(ends.kept() == HostEnds::kChunk);
  CHECK_FALSE(ends.known(0));
  CHECK(ends[0] == 0);
  CHECK(ends[HostEnds::kChunk + 7] == 100 + HostEnds::kChunk + 7);
  CHECK(ends.last() == 99 + 3 * HostEnds::kChunk);
}

TEST_CASE("LiveTimeline_StreamsWithoutEnd_KeepNoMoreThanAreInUse") {
  Fixture f(Device(), 1, 3000, false);
  for (std::uint64_t stream = 1; stream <= 20'000; ++stream) {
    const NodeId kernel = f.Kernel(f.At(stream), Adds(1, 1));
    if (stream % 100 == 0) REQUIRE(f.timeline->answers().WaitFor(f.host, kernel));
  }
  REQUIRE(f.timeline->Finish().ok());
  CHECK(f.timeline->kept().streams < 2000);
  CHECK(f.timeline->Kernels().Kernels()[0].launches == 20'000);
}

}  // namespace
}  // namespace gridloom::timing
