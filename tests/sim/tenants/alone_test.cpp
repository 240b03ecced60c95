// What tenants are slowed down by: their programs on a device of their own beside the shared one.
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "sim/tenants/sharing_record.h"
#include "tests/sim/tenants/tenant_fixture.h"

namespace gridloom::tenants {
namespace {

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 12000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

/// A device on which few CTAs have to wait for each other.
constexpr const char* kSmall = "c2050";

TimingService::Options Options(std::uint32_t alone, unsigned wait_for = 0) {
  return {.policy = "leftover", .wait_for = wait_for, .patience_ms = 3'600'000, .alone = alone};
}

TEST_CASE("SharingRecord_CountsABeginningOfTheWorks_ThatHasEndedOnBoth") {
  const auto totals = std::make_shared<SharingTotals>();
  SharingRecord record(totals, 100, 10);
  record.SharedEnded(2, 400);
  record.AloneEnded(2, 60);
  CHECK(totals->sum().shared == 0);  // the first one has not ended
  record.SharedEnded(1, 300);
  CHECK(totals->sum().shared == 0);
  record.AloneEnded(1, 80);
  CHECK(record.counted() == 2);
  CHECK(totals->sum().shared == 300);  // from 100 to 400
  CHECK(totals->sum().alone == 70);    // from 10 to 80: the second one ended before the first
  record.SharedEnded(3, 500);
  record.Freeze();
  record.AloneEnded(3, 90);
  CHECK(totals->sum().shared == 300);
}

TEST_CASE("SharingRecord_TimeForWhichTheProgramWasAway_IsNotCounted") {
  const auto totals = std::make_shared<SharingTotals>();
  SharingRecord record(totals, 0, 0);
  record.SharedEnded(1, 100);
  record.AloneEnded(1, 50);
  const std::uint64_t back = record.Resumed(1, 1000);
  record.SharedEnded(2, 1200);
  record.AloneEnded(2, 150);
  CHECK(totals->sum().shared == 100);  // it is not known yet when the program is back where it is alone
  record.AloneResumed(back, 50);
  CHECK(totals->sum().shared == 300);
  CHECK(totals->sum().alone == 150);
}

/// What a program does in the tests below: kernels, copies and waits.
void Work(Program& program, std::uint64_t ctas) {
  const auto copy = [&](HostAction::Kind kind) {
    HostAction action = program.Action(kind);
    action.bytes = 100'000;
    ByteWriter out;
    trace::PutAction(action, out);
    program.Send(FrameKind::kAction, out);
    return action.work;
  };
  copy(HostAction::Kind::kCopyToDevice);
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t kernel = program.Kernel(ctas, 200);
    REQUIRE(program.Ask(FrameKind::kWait, {kernel}));
    program.Ask(FrameKind::kAsk, {kernel});
    program.Kernel(ctas / 2, 100);
  }
  REQUIRE(program.Ask(FrameKind::kWait, {copy(HostAction::Kind::kCopyToHost)}));
}

TEST_CASE("Alone_ATenantThatIsAlone_IsNotSlowedDown") {
  Fixture f(Options(1));
  const auto program = f.Join(1);
  CHECK(f.service->usage(1).alone_seconds == 0);  // nothing has ended: it is not known
  Work(*program, 2000);
  const double end = program->Ask(FrameKind::kEnd, {program->works})->ns / 1e9;
  CHECK(Eventually([&] { return f.service->usage(1).turnaround_seconds == Approx(end); }));
  CHECK(f.service->usage(1).alone_seconds == f.service->usage(1).turnaround_seconds);
  CHECK(f.violation_count() == 0);
}

/// Two tenants with different works at the same time; their usage when all is known.
std::pair<sched::SimulatedUsage, sched::SimulatedUsage> Together(const std::string& policy, bool second_first) {
  TimingService::Options options = Options(2, 2);
  options.policy = policy;
  Fixture f(std::move(options), kSmall);
  auto one = second_first ? nullptr : f.Join(1, "a");
  auto two = f.Join(2, "b");
  if (one == nullptr) one = f.Join(1, "a");
  std::thread works([&] {
    Work(*two, 600);
    two->Ask(FrameKind::kFinish);
  });
  Work(*one, 200);
  one->Ask(FrameKind::kFinish);
  works.join();
  // They go on alone when they have left.
  f.service->Leave(1);
  f.service->Leave(2);
  one.reset();
  two.reset();
  CHECK(Eventually([&] { return f.service->bytes(1) == 0 && f.service->bytes(2) == 0; }));
  return {f.service->usage(1), f.service->usage(2)};
}

double AloneSeconds(std::uint64_t ctas) {
  Fixture f(Options(1), kSmall);
  const auto program = f.Join(1);
  Work(*program, ctas);
  const double end = program->Ask(FrameKind::kEnd, {program->works})->ns / 1e9;
  CHECK(Eventually([&] { return f.service->usage(1).turnaround_seconds == Approx(end); }));
  return f.service->usage(1).alone_seconds;
}

TEST_CASE("Alone_TwoTenants_EachIsKnownAsIfItHadBeenThereAlone_WhoeverComesFirst") {
  const double one = AloneSeconds(200), two = AloneSeconds(600);
  for (const std::string policy : {"leftover", "serial", "fair"}) {
    INFO(policy);
    const auto usage = Together(policy, false);
    CHECK(usage.first.alone_seconds == one);
    CHECK(usage.second.alone_seconds == two);
    CHECK(usage.first.turnaround_seconds > one);
    CHECK(usage.second.turnaround_seconds >= two);
    const auto again = Together(policy, true);
    CHECK(again.first.turnaround_seconds == usage.first.turnaround_seconds);
    CHECK(again.second.turnaround_seconds == usage.second.turnaround_seconds);
    CHECK(again.second.alone_seconds == two);
  }
}

TEST_CASE("Alone_ASessionThatIsKilled_CountsWhatHadEnded_AndGivesAllBack") {
  Fixture f(Options(1));
  auto program = f.Join(1);
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(100, 100)}));
  REQUIRE(Eventually([&] { return f.service->usage(1).alone_seconds > 0; }));
  const double counted = f.service->usage(1).turnaround_seconds;
  program->SayCtas(program->Launch(10'000), 0, 100, 100);  // and then nothing
  f.service->Leave(1);
  program.reset();
  CHECK(Eventually([&] { return f.service->bytes(1) == 0; }));
  CHECK(f.service->usage(1).turnaround_seconds == counted);
  CHECK(f.service->usage(1).alone_seconds == counted);
  CHECK(f.service->problem().empty());
}

TEST_CASE("Alone_WhereTheTenantsMemoryIsTooLittle_NothingIsKnown_AndItsProgramsGoOn") {
  std::string told;
  std::mutex mutex;
  TimingService::Options options = Options(1);
  options.tenant.bytes = 64u << 20;
  options.tell = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    told = sentence;
  };
  Fixture f(std::move(options));
  const auto program = f.Join(1, "small");
  Work(*program, 2000);
  REQUIRE(program->Ask(FrameKind::kFinish));
  CHECK(f.service->usage(1).alone_seconds == 0);
  CHECK(f.service->usage(1).turnaround_seconds == 0);
  CHECK(f.violation_count() == 0);
  const std::lock_guard lock(mutex);
  CHECK(told ==
        "tenant small is not simulated alone, so that its slowdown is not known: its tenant has too little memory for "
        "a device of its own "
        "(timing_memory)");
}

TEST_CASE("Alone_WhoNeedsTheMemory_IsGivenUpBeforeItsSessionIs") {
  std::string told;
  std::mutex mutex;
  TimingService::Options options = Options(1, 2);
  options.tenant.bytes = 512u << 20;
  options.tell = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    told += sentence;
  };
  Fixture f(std::move(options));
  const auto program = f.Join(1), other = f.Join(2);  // the other one holds simulated time back
  // Works that have not ended, and wait for many, take more than half of the memory.
  HostAction marker = program->Action(HostAction::Kind::kMarker);
  for (int i = 0; i < 60; ++i) {
    ByteWriter out;
    trace::PutAction(marker, out);
    program->Send(FrameKind::kAction, out);
    marker = program->Action(HostAction::Kind::kMarker);
    marker.after.assign(1u << 16, 1);
  }
  program->works -= 1;
  REQUIRE(program->Ask(FrameKind::kEnd, {1}));  // answered when all of them have come
  {
    const std::lock_guard lock(mutex);
    CHECK(told.find("need the memory that is left") != std::string::npos);
  }
  REQUIRE(other->Ask(FrameKind::kFinish));
  REQUIRE(program->Ask(FrameKind::kWait, {program->Kernel(1, 100)}));
  CHECK(f.violation_count() == 0);
  CHECK(f.service->usage(1).alone_seconds == 0);
}

TEST_CASE("Alone_MoreTenantsThanMayBe_AreNotKnown") {
  Fixture f(Options(1, 2));
  const auto one = f.Join(1, "a"), two = f.Join(2, "b");
  std::thread works([&] {
    Work(*two, 500);
    two->Ask(FrameKind::kFinish);
  });
  Work(*one, 500);
  one->Ask(FrameKind::kFinish);
  works.join();
  CHECK(Eventually([&] { return f.service->usage(1).alone_seconds > 0; }));
  CHECK(f.service->usage(2).alone_seconds == 0);
}

}  // namespace
}  // namespace gridloom::tenants
