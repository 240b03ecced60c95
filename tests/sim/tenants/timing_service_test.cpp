// The broker's timing model as sessions see it: through their channels, in good order, lying, gone.
#include "sim/tenants/timing_service.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/sim/tenants/tenant_fixture.h"

namespace gridloom::tenants {
namespace {

TEST_CASE("TimingService_OneSession_WaitsAndIsToldWhenItsKernelEnded") {
  Fixture f;
  const auto program = f.Join(1);
  const std::uint64_t kernel = program->Kernel(4, 1000);
  const auto waited = program->Ask(FrameKind::kWait, {kernel});
  REQUIRE(waited);
  CHECK(waited->answer == FrameAnswer::kYes);
  const auto end = program->Ask(FrameKind::kEnd, {kernel});
  REQUIRE(end);
  CHECK(end->ns > 1000 * 4 / 1.6);  // 1000 additions, each of which waits 4 cycles for the last, at less than 1.6 GHz
  CHECK(end->ns < 100'000);
  CHECK(program->Ask(FrameKind::kAsk, {kernel})->answer == FrameAnswer::kYes);
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  REQUIRE(last->table.Kernels().size() == 1);
  CHECK(last->table.Kernels()[0].name == "adds");
  CHECK(last->table.Kernels()[0].ctas == 4);
  CHECK(last->table.Kernels()[0].warp_instructions == 4000);
  CHECK(f.service->usage(1).kernels == 1);
  CHECK(f.service->usage(1).seconds > 0);
  CHECK(f.violation_count() == 0);
}

/// When the programs' kernels end, by program; the second one submits its own before or after the first one's in real
/// time.
std::pair<double, double> TwoPrograms(bool second_first, const std::string& policy) {
  // Nobody is given up as gone, however slow the machine is: then times would depend on it.
  Fixture f({.policy = policy, .wait_for = 2, .patience_ms = 3'600'000});
  auto one = second_first ? nullptr : f.Join(1, "a");
  auto two = f.Join(2, "b");
  if (one == nullptr) one = f.Join(1, "a");
  Program* order[] = {one.get(), two.get()};
  if (second_first) std::swap(order[0], order[1]);
  for (Program* program : order) {
    program->Kernel(2000, 300);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // Whoever asks first waits until the other one has nothing to say before its end, too.
  std::optional<Program::Answer> ends[2];
  std::thread asks([&] { ends[1] = two->Ask(FrameKind::kFinish); });
  ends[0] = one->Ask(FrameKind::kFinish);
  asks.join();
  REQUIRE((ends[0] && ends[1]));
  CHECK(f.service->end_seconds() * 1e9 <= std::max(ends[0]->ns, ends[1]->ns));
  return {ends[0]->ns, ends[1]->ns};
}

TEST_CASE("TimingService_TwoSessions_TimesDoNotDependOnWhoComesFirst") {
  for (const std::string policy : {"serial", "leftover", "fair"}) {
    INFO(policy);
    const auto times = TwoPrograms(false, policy);
    CHECK(times == TwoPrograms(true, policy));
    if (policy == "serial") CHECK(times.first < times.second);  // "a" begins first
  }
}

TEST_CASE("TimingService_SessionThatSaysNothing_HoldsOthersBackNoLongerThanItsPatience") {
  Fixture f({.policy = "leftover", .patience_ms = 300});
  const auto quiet = f.Join(1), busy = f.Join(2);
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t kernel = busy->Kernel(4, 100);
  REQUIRE(busy->Ask(FrameKind::kWait, {kernel}));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  // Back again, at the time that has passed meanwhile.
  REQUIRE(quiet->Ask(FrameKind::kWait, {quiet->Kernel(4, 100)}));
  CHECK(quiet->Ask(FrameKind::kEnd, {1})->ns > busy->Ask(FrameKind::kEnd, {1})->ns);
}

TEST_CASE("TimingService_SessionGoneInTheMiddleOfAKernel_OthersGoOn") {
  Fixture f;
  const auto other = f.Join(2);
  auto victim = f.Join(1);
  victim->SayCtas(victim->Launch(10'000), 0, 100, 100);
  const std::uint64_t kernel = other->Kernel(10, 100);
  f.service->Leave(1);
  victim.reset();
  const auto waited = other->Ask(FrameKind::kWait, {kernel});
  REQUIRE(waited);
  CHECK(waited->answer == FrameAnswer::kYes);
  CHECK(f.service->problem().empty());
  CHECK(f.violation_count() == 0);
}

TEST_CASE("TimingService_ManyLaunches_WhatHasEndedIsLetGo_AndAllOfItWithItsSession") {
  constexpr int kBatches = 40, kKernels = 100;
  Fixture f({.policy = "fair"});
  auto program = f.Join(1);
  std::size_t works = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (int i = 1; i < kKernels; ++i) program->Kernel(1, 1);
    REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(1, 1)}));
    works = std::max(works, f.service->kept().works);
  }
  CHECK(works < 20);
  CHECK(f.service->kept().ends == kBatches * kKernels);  // the program may still ask for them
  CHECK(program->Ask(FrameKind::kEnd, {1})->ns > 0);
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  CHECK(last->table.Kernels()[0].launches == kBatches * kKernels);
  f.service->Leave(1);
  program.reset();
  for (int i = 0; i < 12000 && f.service->kept().ends != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(f.service->kept().ends == 0);
  CHECK(f.service->kept().streams == 0);
  CHECK(f.service->usage(1).kernels == kBatches * kKernels);
}

TEST_CASE("TimingService_TenantKilledInAGridOfManyMillions_LeavesNothingToSimulate") {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 28;
  Fixture f;
  const auto other = f.Join(2);
  auto victim = f.Join(1);
  victim->SayCtas(victim->Launch(kMany), 0, 100, 100);  // one that runs
  victim->stream = 2;
  victim->SayCtas(victim->Launch(kMany), 0, 100, 100);  // one that has ended in real time, and not in simulated time
  victim->EndLaunch(victim->works);
  for (int i = 0; i < 1000; ++i) victim->Launch(kMany);  // and many that have not begun
  f.service->Leave(1);
  victim.reset();
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(other->Ask(FrameKind::kWait, {other->Kernel(10, 100)}));
  const auto last = other->Ask(FrameKind::kFinish);
  REQUIRE(last);
  CHECK(last->ns < 1e6);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  CHECK(f.service->problem().empty());
}

TEST_CASE("TimingService_LaunchThatEndsEarly_HasTheCtasThatCame") {
  Fixture f;
  const auto program = f.Join(1);
  const std::uint64_t work = program->Launch(std::uint64_t{1} << 28);
  program->SayCtas(work, 0, 100, 100);
  program->EndLaunch(work);
  REQUIRE(program->Ask(FrameKind::kWait, {work}));
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  REQUIRE(last->table.Kernels().size() == 1);
  CHECK(last->table.Kernels()[0].ctas == 100);
}

/// Simulated time of kernels one after the other, each of one CTA and about 0.3 ms, of a tenant with that cap.
double TimeUnderCap(double cap) {
  constexpr int kKernels = 20;
  Fixture f;
  const auto program = f.Join(1, "tenant", {.cap = cap});
  for (int i = 0; i < kKernels; ++i) program->Kernel(1, 100'000);
  const auto last = program->Ask(FrameKind::kFinish);
  REQUIRE(last);
  return last->ns;
}

TEST_CASE("TimingService_Cap_HoldsInSimulatedTime") {
  const double alone = TimeUnderCap(1);
  CHECK(alone > 4e6);
  for (const double cap : {0.25, 0.5}) {
    // A part of a millisecond is there at first, and what the last kernel owes nobody waits for.
    const double last = alone / 20, saved = 1e6 * cap;
    CHECK(TimeUnderCap(cap) == Approx((alone - last - saved) / cap + last).epsilon(0.05));
  }
}

TEST_CASE("TimingService_InFlight_HoldsInSimulatedTime") {
  double ends[2] = {};
  for (const std::uint32_t in_flight : {1u, 2u}) {
    Fixture f;
    const auto program = f.Join(1, "tenant", {.in_flight = in_flight});
    const std::uint64_t first = program->Kernel(1, 10'000);
    program->stream = 2;
    const std::uint64_t second = program->Kernel(1, 10'000);
    REQUIRE(program->Ask(FrameKind::kWait, {first, second}));
    ends[in_flight - 1] = program->Ask(FrameKind::kEnd, {second})->ns;
  }
  CHECK(ends[0] > 1.6 * ends[1]);
}

TEST_CASE("TimingService_WhatMakesNoSense_EndsThatChannelAlone") {
  const std::pair<const char*, std::function<void(Program&)>> lies[] = {
      {"a work out of order", [](Program& p) { ++p.works, p.Launch(1); }},
      {"a kernel that was not said", [](Program& p) { p.Launch(1, 7); }},
      {"no CTAs", [](Program& p) { p.Launch(0); }},
      {"too many CTAs", [](Program& p) { p.Launch(std::uint64_t{1} << 40); }},
      {"a CTA that the launch does not have", [](Program& p) { p.SayCtas(p.Launch(4), 3, 2, 1); }},
      {"a CTA twice", [](Program& p) { p.Launch(4), p.SayCtas(1, 0, 1, 1), p.SayCtas(1, 0, 1, 1); }},
      {"CTAs of an ended launch", [](Program& p) { p.Kernel(4, 1), p.SayCtas(1, 0, 1, 1); }},
      {"CTAs of no launch", [](Program& p) { p.SayCtas(9, 0, 1, 1); }},
      {"a question about a work to come", [](Program& p) { p.Ask(FrameKind::kWait, {5}); }},
      {"a question that is cut off",
       [](Program& p) {
         ByteWriter out;
         out.Varint(1);
         out.Varint(1000);
         p.Send(FrameKind::kWait, out);
       }},
      {"a work of a group that is not there",
       [](Program& p) {
         HostAction action = p.Action(HostAction::Kind::kMarker);
         action.group = 1;
         ByteWriter out;
         trace::PutAction(action, out);
         p.Send(FrameKind::kAction, out);
       }},
      {"a launch as another work",
       [](Program& p) {
         ByteWriter out;
         trace::PutAction(p.Action(HostAction::Kind::kLaunch), out);
         p.Send(FrameKind::kAction, out);
       }},
      {"a damaged code table",
       [](Program& p) {
         ByteWriter out;
         out.Text("code");
         out.Varint(1);
         out.Varint(1000);
         p.Send(FrameKind::kCode, out);
       }},
      {"damaged CTAs",
       [](Program& p) {
         ByteWriter out;
         out.Varint(p.Launch(4));
         out.Varint(1);
         out.Signed(0);
         for (int i = 0; i < 50; ++i) out.Fixed(std::uint8_t{0xEE});
         p.Send(FrameKind::kCtas, out);
       }},
      {"a frame of no kind", [](Program& p) { p.Send(static_cast<FrameKind>(99), {}); }},
      {"an answer", [](Program& p) { p.Send(FrameKind::kAnswer, {}); }},
  };
  Fixture f;
  const auto good = f.Join(1000);
  std::uint64_t session = 0;
  for (const auto& [name, lie] : lies) {
    INFO(name);
    auto liar = f.Join(++session);
    lie(*liar);
    CHECK_FALSE(f.ViolationOf(session).empty());
    CHECK_FALSE(liar->Ask(FrameKind::kWait).has_value());
    f.service->Leave(session);
  }
  const auto waited = good->Ask(FrameKind::kWait, {good->Kernel(10, 100)});
  REQUIRE(waited);
  CHECK(waited->answer == FrameAnswer::kYes);
  CHECK(f.violation_count() == std::size(lies));
}

TEST_CASE("TimingService_CtasThatNeverCome_AreAViolationWhenNothingRuns") {
  Fixture f;
  const auto silent = f.Join(1);
  silent->Launch(4);
  const auto begin = std::chrono::steady_clock::now();
  while (f.violation_count() == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
    f.service->Watch(1, std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(300), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(f.violation_count() == 1);
  CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(1200));  // not while a launch of it ran
}

TEST_CASE("TimingService_PolicyChangedLive_ActsOnWhatComesThen") {
  Fixture f({.policy = "serial"});
  CHECK_FALSE(f.service->SetPolicy("no such policy").ok());
  CHECK(f.service->SetPolicy("leftover").ok());
  const auto program = f.Join(1);
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
}

TEST_CASE("TimingService_PolicyThatNeedsProfiles_GetsThemFromTheLaunchesThatComeThen") {
  Fixture f({.policy = "leftover"});
  const auto program = f.Join(1);
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
  CHECK(f.service->profiling().kernels == 0);
  CHECK(f.service->SetPolicy("kernelet").ok());
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(4, 100)}));
  CHECK(f.service->profiling().kernels == 1);
  CHECK(f.service->profiling().warp_instructions > 400);
}

TEST_CASE("Frames_LargerThanAllowed_AreAnError") {
  auto ends = protocol::MakeChannel();
  REQUIRE(ends.ok());
  const std::uint32_t header[] = {static_cast<std::uint32_t>(FrameKind::kCode), 0xffffffffu};
  REQUIRE(write(ends->first.get(), header, sizeof header) == sizeof header);
  CHECK_FALSE(protocol::ReceiveFrame(ends->second.get()).ok());
}

}  // namespace
}  // namespace gridloom::tenants
