// Work given while the device is simulated: host time, streams, events, groups, several hosts, sources that are still
// running.
#include "sim/timing/live/live_timeline.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "scheduler/policy/builtin.h"
#include "sim/timing/live/live_source.h"
#include "sim/timing/live/trace_player.h"
#include "tests/sim/timing/live_fixture.h"
#include "tests/sim/timing/model_fixture.h"
#include "tests/sim/timing/test_part.h"

namespace gridloom::timing {
namespace {

TEST_CASE("LiveTimeline_HostTime_CallsCost_AnswersComeAfterTheEnd") {
  Fixture f;
  const sim::TimingSpec::Launch& launch = f.device.timing.launch;
  const NodeId first = f.Kernel(f.At(7), Adds(1, 1000));
  CHECK(f.timeline->HostTime(f.host) == f.call);
  REQUIRE(f.timeline->answers().WaitFor(f.host, first));
  // A chain of 1000 dependent additions of 4 cycles, the last of which is over when it has issued.
  const Cycle end = f.call + launch.kernel_cycles + launch.cta_cycles + 999 * 4;
  CHECK(f.timeline->EndOf(first) == end + 0);
  CHECK(f.timeline->HostTime(f.host) == end + f.answer);
  const NodeId second = f.Kernel(f.At(7), Adds(1, 1));
  REQUIRE(f.timeline->answers().WaitFor(f.host, second));
  CHECK(f.timeline->EndOf(second) == end + f.answer + f.call + launch.kernel_cycles + launch.cta_cycles);
  // Waiting for what has long ended costs the call alone.
  f.timeline->Advance(f.host, 100'000);
  const Cycle before = f.timeline->HostTime(f.host);
  REQUIRE(f.timeline->answers().WaitFor(f.host, first));
  CHECK(f.timeline->HostTime(f.host) == before + f.call);
}

TEST_CASE("LiveTimeline_HostTime_CallsThatCopy_CostWhatTheDeviceFileSaysOfThem") {
  sim::DeviceSpec device = Device();
  const Cycle copy_call = 37;
  for (const bool said : {true, false}) {
    device.timing.host.copy_call_ns =
        said ? static_cast<std::uint32_t>(copy_call * 1000 / device.timing.clock.sm_mhz) : 0;
    Fixture f(device);
    const Cycle copy =
        said ? (Cycle{device.timing.host.copy_call_ns} * device.timing.clock.sm_mhz + 999) / 1000 : f.call;
    REQUIRE((copy != f.call) == said);
    Cycle expected = 0;
    for (const CopyDirection direction :
         {CopyDirection::kToDevice, CopyDirection::kToHost, CopyDirection::kOnDevice, CopyDirection::kFill}) {
      f.timeline->AddCopy(f.At(1), direction, 4);
      CHECK(f.timeline->HostTime(f.host) == (expected += copy));
    }
    f.Kernel(f.At(1), Adds(1, 1));
    CHECK(f.timeline->HostTime(f.host) == (expected += f.call));
    // An event is no copy; nor is the launch of a graph, whose copies are no calls.
    f.timeline->AddMarker(f.At(1));
    CHECK(f.timeline->HostTime(f.host) == (expected += f.call));
    const NodeId group = f.timeline->OpenGroup(f.At(1));
    CHECK(f.timeline->HostTime(f.host) == (expected += f.call));
    Place in_group = f.At(0);
    in_group.group = group;
    f.timeline->AddCopy(std::move(in_group), CopyDirection::kToDevice, 4);
    f.timeline->CloseGroup(group);
    CHECK(f.timeline->HostTime(f.host) == expected);
  }
}

TEST_CASE("LiveTimeline_Markers_EndWithWhatIsBeforeThem_AcrossStreams") {
  Fixture f;
  const NodeId idle = f.timeline->AddMarker(f.At(1));
  const NodeId kernel = f.Kernel(f.At(1), Adds(1, 1000));
  const NodeId event = f.timeline->AddMarker(f.At(1));
  const NodeId wait = f.timeline->AddMarker(f.At(2, {event}));
  const NodeId other = f.Kernel(f.At(2), Adds(1, 1));
  REQUIRE(f.timeline->answers().WaitFor(f.host, other));
  CHECK(f.timeline->EndOf(idle) == f.call);
  CHECK(f.timeline->EndOf(event) == f.timeline->EndOf(kernel));
  CHECK(f.timeline->EndOf(wait) == f.timeline->EndOf(kernel));
  const sim::TimingSpec::Launch& launch = f.device.timing.launch;
  CHECK(f.timeline->EndOf(other) == *f.timeline->EndOf(kernel) + launch.dependent_cycles + launch.cta_cycles);
}

TEST_CASE("LiveTimeline_CopyThenKernelThenCopy_FollowEachOther") {
  Fixture f;
  const NodeId in = f.timeline->AddCopy(f.At(1), CopyDirection::kToDevice, 1 << 20);
  const NodeId fill = f.timeline->AddCopy(f.At(1), CopyDirection::kFill, 1 << 20);
  const NodeId out = f.timeline->AddCopy(f.At(1), CopyDirection::kToHost, 4);
  REQUIRE(f.timeline->answers().WaitFor(f.host, out));
  const sim::TimingSpec& timing = f.device.timing;
  const Cycle latency = (timing.pcie.latency_ns * timing.clock.sm_mhz + 999) / 1000;
  const Cycle moved =
      ((1ull << 20) * timing.clock.sm_mhz + timing.pcie.to_device_mb_s - 1) / timing.pcie.to_device_mb_s;
  CHECK(f.timeline->EndOf(in) == f.call + latency + moved);
  const std::uint64_t rate = 7ull * timing.dram.channels * timing.dram.bytes_per_cycle * timing.clock.dram_mhz;
  const Cycle filled = ((1ull << 20) * timing.clock.sm_mhz * 8 + rate - 1) / rate;
  CHECK(f.timeline->EndOf(fill) == *f.timeline->EndOf(in) + timing.launch.dependent_cycles + filled);
  CHECK(f.timeline->EndOf(out) == *f.timeline->EndOf(fill) + latency + 1);
}

TEST_CASE("LiveTimeline_Poll_AnswersAtTheHostsTime") {
  Fixture f;
  const NodeId kernel = f.Kernel(f.At(1), Adds(1, 10'000));
  int polls = 1;
  while (f.timeline->answers().Poll(f.host, kernel) == Answer::kNo) ++polls;
  const Cycle end = *f.timeline->EndOf(kernel);
  CHECK(f.timeline->HostTime(f.host) >= end);
  // Each poll is a call; the last window may not have been simulated when it was asked about.
  CHECK(f.timeline->HostTime(f.host) <= end + f.call + 64);
  CHECK(f.timeline->HostTime(f.host) == f.call * (static_cast<Cycle>(polls) + 1));
}

TEST_CASE("LiveTimeline_Groups_RunTheirWorksBeforeWhatFollows_InTheOrderOfRanks") {
  Cycle ends[2] = {};
  for (const bool reverse : {false, true}) {
    Fixture f;
    auto parent = f.timeline->OpenKernel(f.At(1), Adds(2, 100));
    REQUIRE(parent.ok());
    const NodeId after = f.Kernel(f.At(1), Adds(1, 1));
    const auto child = [&](std::uint64_t rank, std::uint32_t adds) {
      return f.Kernel({.host = f.host, .stream = 0, .after = {}, .group = *parent, .rank = rank, .profile = 0},
                      Adds(60, adds));
    };
    // The calls come in any order, the ranks tell.
    const NodeId a = reverse ? 0 : child(1, 500), b = child(2, 3000), c = reverse ? child(1, 500) : a;
    f.timeline->CloseGroup(*parent);
    REQUIRE(f.timeline->answers().WaitFor(f.host, after));
    CHECK(*f.timeline->EndOf(b) <= *f.timeline->EndOf(*parent));
    CHECK(*f.timeline->EndOf(c) < *f.timeline->EndOf(*parent));
    CHECK(*f.timeline->EndOf(after) > *f.timeline->EndOf(*parent));
    ends[reverse ? 1 : 0] = *f.timeline->EndOf(after);
  }
  CHECK(ends[0] == ends[1]);
}

/// What 300 kernels, copies and events in four streams end at.
std::vector<Cycle> RunMany(Fixture& f) {
  std::vector<NodeId> nodes, events;
  std::uint32_t random = 12345;
  const auto next = [&random](std::uint32_t below) { return (random = random * 1664525 + 1013904223) / 65536 % below; };
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t stream = next(4);
    switch (next(6)) {
      case 0:
        nodes.push_back(f.timeline->AddCopy(f.At(stream), static_cast<CopyDirection>(next(4)), 1000 + next(60000)));
        break;
      case 1: events.push_back(f.timeline->AddMarker(f.At(stream))); break;
      case 2:
        if (!events.empty())
          nodes.push_back(
              f.timeline->AddMarker(f.At(stream, {events[next(static_cast<std::uint32_t>(events.size()))]})));
        break;
      case 3:
        if (next(4) == 0 && !nodes.empty()) REQUIRE(f.timeline->answers().WaitFor(f.host, nodes[nodes.size() - 1]));
        break;
      default: nodes.push_back(f.Kernel(f.At(stream), Adds(1 + next(400), 1 + next(300)))); break;
    }
  }
  REQUIRE(f.timeline->Finish().ok());
  std::vector<Cycle> ends;
  for (const NodeId node : nodes) ends.push_back(*f.timeline->EndOf(node));
  return ends;
}

TEST_CASE("LiveTimeline_SameCalls_SameTimes_WhateverTheThreads") {
  Fixture one, again, two(Device(), 2), forgets(Device(), 1, 3000, false);
  const std::vector<Cycle> expected = RunMany(one);
  CHECK(RunMany(again) == expected);
  CHECK(RunMany(two) == expected);
  CHECK(RunMany(forgets) == expected);
  CHECK(one.timeline->engine().counters() == again.timeline->engine().counters());
  CHECK(one.timeline->engine().counters() == forgets.timeline->engine().counters());
  CHECK(one.timeline->engine().counters() == two.timeline->engine().counters());
  const auto a = one.timeline->Kernels().Kernels(), b = two.timeline->Kernels().Kernels();
  REQUIRE(a.size() == 1);
  CHECK(a[0].cycles == b[0].cycles);
  CHECK(a[0].during == b[0].during);
}

/// Kernels, two streams that wait for each other, and every so often a kernel that launches others. The last of them.
NodeId SubmitBatch(Fixture& f, std::uint64_t stream, std::uint32_t kernels,
                   const std::shared_ptr<trace::CtaSource>& source) {
  NodeId last = 0;
  for (std::uint32_t i = 0; i < kernels; ++i) {
    last = f.Kernel(f.At(stream + i % 2, {last}), source);
    if (i % 50 != 0) continue;
    const auto parent = f.timeline->OpenKernel(f.At(stream), source);
    REQUIRE(parent.ok());
    for (std::uint64_t child = 0; child < 3; ++child) {
      f.Kernel({.host = f.host, .stream = 0, .after = {}, .group = *parent, .rank = child, .profile = 0}, source);
    }
    f.timeline->CloseGroup(*parent);
  }
  return f.timeline->AddMarker(f.At(stream + 2, {last}));
}

TEST_CASE("LiveTimeline_ManyLaunches_WhatHasEndedIsLetGo") {
  constexpr std::uint32_t kBatches = 200, kKernels = 250;
  Fixture f(Device(), 1, 3000, false);
  const HostId other = f.timeline->AddHost();
  f.timeline->SetAway(other, true);
  const auto source = Adds(1, 1);
  const NodeId first = f.Kernel(f.At(1), source);
  REQUIRE(f.timeline->answers().WaitFor(f.host, first));
  const Cycle end = *f.timeline->EndOf(first);
  std::size_t works = 0, streams = 0;
  for (std::uint32_t batch = 0; batch < kBatches; ++batch) {
    const NodeId last = SubmitBatch(f, 1, kKernels, source);
    REQUIRE(f.timeline->answers().WaitFor(f.host, last));
    const LiveTimeline::Kept kept = f.timeline->kept();
    works = std::max(works, kept.works);
    streams = std::max(streams, kept.streams);
  }
  CHECK(f.timeline->Kernels().Kernels()[0].launches > kBatches * kKernels);
  CHECK(works < 50);    // those of the last windows, and the last batch's of the stream that nobody waited for
  CHECK(streams < 20);  // three of the host, and those of the last groups
  // What a program may still ask for is known, as long as it is there.
  CHECK(f.timeline->EndOf(first) == end);
  CHECK(f.timeline->kept().ends > kBatches * kKernels);
  REQUIRE(f.timeline->Finish().ok());
  f.timeline->DropHost(f.host);
  CHECK(f.timeline->kept().ends == 0);
  CHECK(f.timeline->kept().streams == 0);
  CHECK(f.timeline->EndOf(first) == std::nullopt);
  const Cycle before = f.timeline->HostTime(other);
  CHECK(f.timeline->answers().WaitFor(other, first));
  CHECK(f.timeline->answers().Poll(other, first) == Answer::kYes);
  CHECK(f.timeline->HostTime(other) <= std::max(before, f.answer) + 2 * f.call);
}

TEST_CASE("LiveTimeline_DroppedHost_IsForgottenWhenItsLastWorkHasEnded") {
  Fixture f(Device(), 1, 3000, false);
  const HostId other = f.timeline->AddHost();
  const NodeId mine = f.Kernel(f.At(1), Adds(1, 100'000)), dropped = f.Kernel(f.At(1), Adds(1, 1));
  f.timeline->Advance(f.host, 20'000);
  const NodeId marker =
      f.timeline->AddMarker({.host = other, .stream = 1, .after = {}, .group = 0, .rank = 0, .profile = 0});
  f.timeline->Advance(other, 10'000);
  REQUIRE(f.timeline->answers().Poll(other, marker) == Answer::kYes);  // the device has the host's works
  f.timeline->DropHost(f.host);
  CHECK(f.timeline->kept().ends == 3);
  CHECK_FALSE(f.timeline->EndOf(mine));
  REQUIRE(f.timeline->Finish().ok());
  CHECK(f.timeline->kept().ends == 1);
  CHECK(f.timeline->kept().hosts == 1);
  CHECK(f.timeline->end() < 4 * 99'999);  // its warps ended with the instructions that they were at
  CHECK(f.timeline->EndOf(marker));
  CHECK_FALSE(f.timeline->EndOf(dropped));
}

TEST_CASE("LiveTimeline_TwoHosts_TimesDoNotDependOnWhoIsFaster") {
  std::vector<Cycle> expected;
  for (const int slow : {-1, 0, 1}) {
    Fixture f;
    const HostId hosts[] = {f.host, f.timeline->AddHost()};
    std::vector<Cycle> ends[2];
    const auto run = [&](int h) {
      for (int i = 0; i < 10; ++i) {
        if (h == slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const Place place{.host = hosts[h], .stream = 1, .after = {}, .group = 0, .rank = 0, .profile = 0};
        const auto node = f.timeline->AddKernel(place, Adds(200 + 100 * static_cast<unsigned>(h), 300));
        f.timeline->answers().WaitFor(hosts[h], *node);
        ends[h].push_back(*f.timeline->EndOf(*node));
        f.timeline->Advance(hosts[h], 1000 * static_cast<Cycle>(1 + h));
      }
      f.timeline->RemoveHost(hosts[h]);
    };
    std::thread other([&] { run(1); });
    run(0);
    other.join();
    ends[0].insert(ends[0].end(), ends[1].begin(), ends[1].end());
    if (expected.empty()) expected = ends[0];
    CHECK(ends[0] == expected);
  }
}

TEST_CASE("LiveTimeline_KernelThatDoesNotFit_IsRefusedWithTheReason") {
  Fixture f;
  const auto refused = f.timeline->AddKernel(
      f.At(1),
      SameCtas(AddsCode(), {.ctas = 1, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 200'000},
               AddsCta(1)));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.starts_with("kernel adds: a CTA takes "));
}

TEST_CASE("LiveTimeline_WaitFor_GivesUpWhenTheKernelWaitsItself") {
  Fixture f(Device(), 1, 50);
  const auto store = std::make_shared<TraceStore>(1 << 20);
  const trace::KernelCode code = AddsCode();
  const auto source = std::make_shared<LiveSource>(
      code, trace::LaunchShape{.ctas = 1, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0}, store);
  const NodeId node = f.Kernel(f.At(1), source);
  const Cycle before = f.timeline->HostTime(f.host);
  CHECK_FALSE(f.timeline->answers().WaitFor(f.host, node));
  CHECK(f.timeline->HostTime(f.host) == before + f.call);
  source->Push(0, {AddsCta(10), {}});
  CHECK(f.timeline->answers().WaitFor(f.host, node));
}

TEST_CASE("LiveSource_AnyOrder_PackedOrNot_GivesTheTimesOfTheSameCtas") {
  const trace::LaunchShape shape{.ctas = 500, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0};
  const trace::KernelCode code = AddsCode();
  const auto make = [](std::uint64_t index) { return AddsCta(static_cast<std::uint32_t>(20 + index % 37)); };
  Fixture whole;
  const NodeId expected =
      whole.Kernel(whole.At(1), std::make_shared<SyntheticSource>(code, shape, [&](std::uint64_t index) {
                     return trace::LoadedCta{make(index), {}};
                   }));
  REQUIRE(whole.timeline->answers().WaitFor(whole.host, expected));
  for (const std::uint64_t memory : {std::uint64_t{1} << 30, std::uint64_t{0}}) {
    Fixture f;
    const auto store = std::make_shared<TraceStore>(memory);
    const auto source = std::make_shared<LiveSource>(code, shape, store);
    std::thread program([&] {
      for (std::uint64_t i = 0; i < shape.ctas; ++i) {
        const std::uint64_t index = i * 7 % shape.ctas;
        source->Push(index, {make(index), {}});
      }
      source->Close();
    });
    const NodeId node = f.Kernel(f.At(1), source);
    REQUIRE(f.timeline->answers().WaitFor(f.host, node));
    program.join();
    CHECK(f.timeline->EndOf(node) == whole.timeline->EndOf(expected));
    CHECK(store->file_bytes() == 0);  // everything was read, and given back
  }
}

TEST_CASE("LiveSource_Closed_CtasThatDidNotCome_TakeNoTime") {
  Fixture f;
  const trace::KernelCode code = AddsCode();
  const auto source = std::make_shared<LiveSource>(
      code, trace::LaunchShape{.ctas = 3, .threads_per_cta = 64, .registers_per_thread = 16, .shared_bytes = 0},
      std::make_shared<TraceStore>(0));
  source->Close();
  const NodeId node = f.Kernel(f.At(1), source);
  REQUIRE(f.timeline->answers().WaitFor(f.host, node));
  const sim::TimingSpec::Launch& launch = f.device.timing.launch;
  CHECK(*f.timeline->EndOf(node) <= f.call + launch.kernel_cycles + launch.cta_cycles + 3 * launch.cta_interval + 2);
}

/// A trace of a copy, a kernel, one in another stream that waits for it, a wait of the host, a kernel that launched two
/// others, and a launch that was not kept.
std::shared_ptr<trace::TraceFile> WriteTrace(const std::string& path) {
  using trace::HostAction;
  auto writer = trace::TraceWriter::Create(path, "test");
  REQUIRE(writer.ok());
  const trace::KernelCode code = AddsCode();
  const std::uint32_t kernel = (*writer)->AddKernel(code);
  const auto act = [&](HostAction::Kind kind, std::uint64_t work, std::uint64_t stream,
                       std::vector<std::uint64_t> after, std::uint64_t group = 0) {
    HostAction action;
    action.kind = kind;
    action.work = work;
    action.stream = stream;
    action.after = std::move(after);
    action.group = group;
    action.bytes = kind == HostAction::Kind::kCopyToDevice ? 100'000 : 0;
    (*writer)->Add(action);
  };
  const auto launch = [&](std::uint64_t work, std::uint64_t ctas) {
    trace::LaunchInfo info;
    info.kernel = kernel;
    info.shape = {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0};
    info.work = work;
    const auto to = (*writer)->BeginLaunch(info, code);
    for (std::uint64_t cta = 0; cta < ctas; ++cta) to->Add(cta, {AddsCta(200), {}});
    to->End(0);
  };
  act(HostAction::Kind::kCopyToDevice, 1, 1, {});
  act(HostAction::Kind::kLaunch, 2, 1, {});
  act(HostAction::Kind::kLaunch, 3, 2, {2});
  launch(3, 5);
  launch(2, 4);
  act(HostAction::Kind::kWait, 0, 0, {3});
  act(HostAction::Kind::kLaunch, 4, 1, {});
  act(HostAction::Kind::kLaunch, 5, 1, {});
  act(HostAction::Kind::kLaunch, 6, 0, {}, 4);
  act(HostAction::Kind::kLaunch, 7, 0, {6}, 4);
  act(HostAction::Kind::kLaunch, 8, 1, {});
  for (const std::uint64_t work : {4, 7, 6, 5}) launch(work, work);
  REQUIRE((*writer)->Close().ok());
  auto file = trace::TraceFile::Open(path);
  REQUIRE(file.ok());
  REQUIRE((*file)->problem().empty());
  return *file;
}

TEST_CASE("TracePlayer_MakesTheSameCalls_GivesTheSameTimes") {
  char path[] = "/tmp/gridloom-player-XXXXXX";
  REQUIRE(mkdtemp(path) != nullptr);
  const std::string file = std::string(path) + "/trace";
  const auto trace = WriteTrace(file);
  std::remove(file.c_str());
  rmdir(path);

  Fixture direct;
  const NodeId copy = direct.timeline->AddCopy(direct.At(1), CopyDirection::kToDevice, 100'000);
  const NodeId first = direct.Kernel(direct.At(1), Adds(4, 200));
  const NodeId second = direct.Kernel(direct.At(2, {first}), Adds(5, 200));
  REQUIRE(direct.timeline->answers().WaitFor(direct.host, second));
  const auto parent = direct.timeline->OpenKernel(direct.At(1), Adds(4, 200));
  const NodeId after = direct.Kernel(direct.At(1), Adds(5, 200));
  const Place inside{
      .host = direct.host, .stream = 0, .after = {}, .group = *parent, .rank = 0, .number = 6, .profile = 0};
  const NodeId child = direct.Kernel(inside, Adds(6, 200));
  Place behind = inside;
  behind.after = {child};
  behind.number = 7;
  const NodeId grandchild = direct.Kernel(behind, Adds(7, 200));
  direct.timeline->CloseGroup(*parent);
  direct.timeline->AddMarker(direct.At(1));
  direct.timeline->RemoveHost(direct.host);
  REQUIRE(direct.timeline->Finish().ok());
  CHECK(direct.timeline->EndOf(copy) < direct.timeline->EndOf(first));
  CHECK(direct.timeline->EndOf(child) < direct.timeline->EndOf(grandchild));
  CHECK(direct.timeline->EndOf(grandchild) == direct.timeline->EndOf(*parent));
  CHECK(direct.timeline->EndOf(*parent) < direct.timeline->EndOf(after));

  auto played = LiveTimeline::Create(Device(), policy::MakePolicy("leftover").value(), {});
  REQUIRE(played.ok());
  REQUIRE(PlayTraces(**played, {trace}).ok());
  CHECK((*played)->end() == direct.timeline->end());
  CHECK((*played)->engine().counters() == direct.timeline->engine().counters());
  CHECK((*played)->Kernels().Kernels()[0].launches == 6);
  CHECK((*played)->Kernels().Kernels()[0].cycles == direct.timeline->Kernels().Kernels()[0].cycles);
}

TEST_CASE("TracePlayer_GroupsInTenThousandGroups_ArePlayed") {
  constexpr std::uint64_t kGroups = 10'000;
  char path[] = "/tmp/gridloom-player-XXXXXX";
  REQUIRE(mkdtemp(path) != nullptr);
  const std::string name = std::string(path) + "/trace";
  auto writer = trace::TraceWriter::Create(name, "test");
  REQUIRE(writer.ok());
  for (std::uint64_t work = 1; work <= kGroups + 1; ++work) {
    trace::HostAction action;
    action.kind = work <= kGroups ? trace::HostAction::Kind::kGroup : trace::HostAction::Kind::kFill;
    action.bytes = work <= kGroups ? 0 : 4096;
    action.work = work;
    action.group = work - 1;
    (*writer)->Add(action);
  }
  REQUIRE((*writer)->Close().ok());
  const auto file = trace::TraceFile::Open(name);
  std::remove(name.c_str());
  rmdir(path);
  REQUIRE(file.ok());
  REQUIRE((*file)->problem().empty());
  auto played = LiveTimeline::Create(Device(), policy::MakePolicy("leftover").value(), {});
  REQUIRE(played.ok());
  REQUIRE(PlayTraces(**played, {*file}).ok());
  CHECK((*played)->end() > 0);
  CHECK((*played)->problem().empty());
}

TEST_CASE("LiveTimeline_AHostThatIsGone_MayLeaveGroupsInTenThousandGroups") {
  Fixture f;
  f.Kernel(f.At(1), Adds(1, 10));
  Place place = f.At(2);
  for (int i = 0; i < 10'000; ++i) {
    place.group = f.timeline->OpenGroup(place);
  }
  f.timeline->DropHost(f.host);
  f.timeline->AddHost();
  CHECK(f.timeline->Finish().ok());
}

/// A trace of a kernel, before it its profiler and itself with release code, of 32 and 40 registers.
std::shared_ptr<trace::TraceFile> WriteRangesTrace(const std::string& path) {
  using Role = trace::LaunchInfo::Role;
  auto writer = trace::TraceWriter::Create(path, "test");
  REQUIRE(writer.ok());
  const trace::KernelCode code = AddsCode();
  const std::uint32_t kernel = (*writer)->AddKernel(code);
  trace::HostAction action;
  action.kind = trace::HostAction::Kind::kLaunch;
  action.work = action.stream = 1;
  (*writer)->Add(action);
  for (const Role role : {Role::kProfiler, Role::kReleasing, Role::kKernel}) {
    trace::LaunchInfo info;
    info.kernel = kernel;
    info.shape = {.ctas = 4,
                  .threads_per_cta = 32,
                  .registers_per_thread = role == Role::kReleasing ? 40U : 32U,
                  .shared_bytes = 0};
    info.work = 1;
    info.role = role;
    if (role != Role::kKernel) info.ranges = trace::LaunchInfo::Ranges::kInterval;
    const auto to = (*writer)->BeginLaunch(info, code);
    for (std::uint64_t cta = 0; cta < 4; ++cta) to->Add(cta, {AddsCta(200), {}});
    to->End(0);
  }
  REQUIRE((*writer)->Close().ok());
  auto file = trace::TraceFile::Open(path);
  REQUIRE(file.ok());
  return *file;
}

TEST_CASE("TracePlayer_AKernelThatDoesNotFitWithReleaseCode_RunsAsItIs") {
  char path[] = "/tmp/gridloom-player-XXXXXX";
  REQUIRE(mkdtemp(path) != nullptr);
  const std::string file = std::string(path) + "/trace";
  const auto trace = WriteRangesTrace(file);
  std::remove(file.c_str());
  rmdir(path);
  std::vector<std::string> told;
  const auto ctas = [&](std::uint32_t most_registers, bool overlapped) {
    PlayOptions options{.profile_of = {}, .overlapped = overlapped};
    options.tell = [&](const std::string& sentence) { told.push_back(sentence); };
    options.fits = [=](const trace::LaunchShape& shape) -> Status {
      if (shape.registers_per_thread > most_registers) return Error{"too many registers"};
      return {};
    };
    auto timeline = LiveTimeline::Create(Device(), policy::MakePolicy("leftover").value(), {});
    REQUIRE(timeline.ok());
    REQUIRE(PlayTraces(**timeline, {trace}, options).ok());
    return (*timeline)->engine().counters().sm.ctas;
  };
  CHECK(ctas(40, false) == 4);
  CHECK(ctas(40, true) == 8);
  CHECK(told.empty());
  CHECK(ctas(32, true) == 4);
  const std::string why = "with release code, too many registers";
  CHECK(told == std::vector<std::string>{
                    "kernel adds does not overlap with others: " + why,
                    "no kernel of " + file + " overlaps with others: adds: " + why,
                });
}

/// A part's works are nobody's: they are simulated, stand in the table, and no host is told of them.
TEST_CASE("LiveTimeline_WorksThatAPartLaunches_BelongToNoHost") {
  struct Follower final : CtaEvents {
    void Attach(Ports& ports, DeviceInput& device) {
      ports.cta_events.push_back(this);
      input = &device;
    }
    void OnCtaEnd(const CtaEnd& end) override {
      if (launched++ != 0) return;
      KernelWork work;
      work.order.stream = input->NewStream();
      work.order.submitted = end.at;
      work.source = Adds(3, 50);
      if (!input->Add(std::move(work)).ok()) input->Fail(Error{"not taken"});
    }
    DeviceInput* input = nullptr;
    int launched = 0;
  } follower;
  int told = 0;
  LiveTimeline::Options options;
  options.engine.parts = {Borrow(follower)};
  options.on_ended = [&](HostId, const WorkResult&, const Counters&) { ++told; };
  auto timeline = LiveTimeline::Create(Device(), policy::MakePolicy("leftover").value(), options);
  REQUIRE(timeline.ok());
  const HostId host = (*timeline)->AddHost();
  Place place;
  place.host = host;
  REQUIRE((*timeline)->AddKernel(std::move(place), Adds(1, 100)).ok());
  REQUIRE((*timeline)->Finish().ok());
  CHECK(told == 1);
  REQUIRE((*timeline)->Kernels().Kernels().size() == 1);
  CHECK((*timeline)->Kernels().Kernels()[0].launches == 2);
  CHECK((*timeline)->Kernels().Kernels()[0].ctas == 4);
}

}  // namespace
}  // namespace gridloom::timing
