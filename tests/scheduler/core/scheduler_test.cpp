#include "scheduler/core/scheduler.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "scheduler/policy/builtin.h"

namespace gridloom::sched {
namespace {

/// Notes what is granted; time stands still unless a test moves it.
struct Recorder final : Engine {
  std::uint64_t time = 0;
  std::map<LaunchId, std::uint64_t> granted;
  std::uint64_t now() override { return time; }
  void Grant(LaunchId launch, std::uint64_t end) override {
    CHECK(end > granted[launch]);
    granted[launch] = end;
  }
};

constexpr policy::SmView kSm{.free_ctas = 2, .free_warps = 64, .free_registers = 65536, .free_shared_bytes = 65536};

struct Fixture {
  Recorder engine;
  Scheduler scheduler;

  explicit Fixture(std::string_view policy = "leftover", std::uint64_t quantum = 0)
      : Fixture({.sms = 4, .empty_sm = kSm, .quantum = quantum, .burst = 2000}, policy) {}
  Fixture(const Scheduler::Options& options, std::string_view policy, const policy::PolicyInputs& inputs = {})
      : scheduler(options, engine, policy::MakePolicy(policy, inputs).value()) {
    scheduler.SetTenant(1, {});
    scheduler.SetTenant(2, {});
  }
  LaunchId Submit(std::uint64_t ctas, std::uint32_t tenant = 1, std::uint64_t stream = 0, bool divisible = true) {
    return SubmitKernel(tenant, ctas, tenant, stream, divisible);
  }
  LaunchId SubmitKernel(std::uint64_t kernel, std::uint64_t ctas, std::uint32_t tenant, std::uint64_t stream = 0,
                        bool divisible = true) {
    return scheduler.Submit({.tenant = tenant,
                             .owner = tenant,
                             .stream = stream,
                             .kernel = kernel,
                             .ctas = ctas,
                             .needs = {.warps = 1},
                             .divisible = divisible,
                             .name = "k"});
  }
};

TEST_CASE("Pump_GridLargerThanTheDevice_IsGrantedAsRoomGetsFree") {
  Fixture f;
  const LaunchId id = f.Submit(20);
  f.scheduler.Pump();
  CHECK(f.engine.granted[id] == 8);
  REQUIRE(f.scheduler.Progress(id, 8).ok());
  f.scheduler.Pump();
  CHECK(f.engine.granted[id] == 16);
  REQUIRE(f.scheduler.Progress(id, 16).ok());
  f.scheduler.Pump();
  CHECK(f.engine.granted[id] == 20);
  REQUIRE(f.scheduler.Progress(id, 20).ok());
  REQUIRE(f.scheduler.End(id, false).ok());
  CHECK(f.scheduler.launches() == 0);
  CHECK(f.scheduler.usage(1).ctas == 20);
  CHECK(f.scheduler.usage(1).slices == 3);
}

TEST_CASE("Pump_IndivisibleGrid_IsGrantedWhole") {
  Fixture f;
  const LaunchId id = f.Submit(1000, 1, 0, false);
  f.scheduler.Pump();
  CHECK(f.engine.granted[id] == 1000);
}

TEST_CASE("Pump_LaunchesOfOneStream_GoOneAfterTheOther") {
  Fixture f;
  const LaunchId first = f.Submit(1, 1, 7), second = f.Submit(1, 1, 7), other = f.Submit(1, 2, 7);
  f.scheduler.Pump();
  CHECK(f.engine.granted.contains(first));
  CHECK_FALSE(f.engine.granted.contains(second));
  CHECK(f.engine.granted.contains(other));  // a stream of another owner
  REQUIRE(f.scheduler.Progress(first, 1).ok());
  REQUIRE(f.scheduler.End(first, false).ok());
  f.scheduler.Pump();
  CHECK(f.engine.granted.contains(second));
}

TEST_CASE("Progress_WhatCannotHaveRun_IsAnErrorAndChangesNothing") {
  Fixture f;
  const LaunchId id = f.Submit(20);
  CHECK_FALSE(f.scheduler.Progress(id, 1).ok());
  f.scheduler.Pump();
  CHECK_FALSE(f.scheduler.Progress(id, 9).ok());
  CHECK_FALSE(f.scheduler.Progress(id + 1, 1).ok());
  REQUIRE(f.scheduler.Progress(id, 8).ok());
  CHECK_FALSE(f.scheduler.Progress(id, 7).ok());
  CHECK(f.scheduler.usage(1).ctas == 8);
}

TEST_CASE("End_WhileASliceRuns_FreesItsRoomAtOnce") {
  Fixture f;
  const LaunchId first = f.Submit(100), second = f.Submit(100, 2);
  f.scheduler.Pump();
  CHECK_FALSE(f.engine.granted.contains(second));
  REQUIRE(f.scheduler.End(first, true).ok());
  f.scheduler.Pump();
  CHECK(f.engine.granted[second] == 8);
  CHECK(f.scheduler.usage(1).faults == 1);
}

TEST_CASE("Withdraw_WhatIsGrantedStays_AndNothingElseStarts") {
  Fixture f;
  const LaunchId runs = f.Submit(20), waits = f.Submit(20);
  f.scheduler.Pump();
  REQUIRE(f.engine.granted[runs] == 8);
  REQUIRE(f.scheduler.Withdraw(waits).ok());
  CHECK_FALSE(f.scheduler.End(waits, false).ok());  // nothing of it ran: it has ended
  REQUIRE(f.scheduler.Withdraw(runs).ok());
  const LaunchId other = f.Submit(20, 2);
  f.scheduler.Pump();
  CHECK(f.engine.granted[other] == 8);  // nobody waits for its room
  f.engine.time = 1000;
  f.scheduler.Pump();
  CHECK(f.scheduler.usage(1).device_time == 500);  // it pays as long as it runs
  CHECK_FALSE(f.scheduler.Progress(runs, 9).ok());
  REQUIRE(f.scheduler.Progress(runs, 8).ok());
  f.scheduler.Pump();
  CHECK(f.engine.granted[runs] == 8);
  REQUIRE(f.scheduler.End(runs, false).ok());
  REQUIRE(f.scheduler.Progress(other, 8).ok());
  f.scheduler.Pump();
  CHECK(f.engine.granted[other] == 16);
  REQUIRE(f.scheduler.End(other, false).ok());
  CHECK(f.scheduler.launches() == 0);
}

/// The clock's steps until the launch is granted, or 100.
unsigned StepsUntilGranted(Fixture& f, LaunchId launch, std::uint64_t step) {
  for (unsigned steps = 0; steps < 100; ++steps) {
    f.scheduler.Pump();
    if (f.engine.granted.contains(launch)) return steps;
    f.engine.time += step;
  }
  return 100;
}

TEST_CASE("Patience_WhatAProgramsStandingLaunchesMayWaitFor_Starts") {
  const Scheduler::Options options{.sms = 4, .empty_sm = kSm, .burst = 2000, .patience = 500, .resident_kernels = 3};
  SECTION("beyond in_flight") {
    Fixture f(options, "leftover");
    f.scheduler.SetTenant(1, {.in_flight = 1});
    f.Submit(1);
    CHECK(StepsUntilGranted(f, f.Submit(1), 100) == 5);
    CHECK(StepsUntilGranted(f, f.Submit(1), 100) <= 5);
    CHECK(StepsUntilGranted(f, f.Submit(1), 100) == 100);  // no device runs so many
  }
  SECTION("though the policy would do one after the other") {
    Fixture f(options, "serial");
    f.Submit(1);
    CHECK(StepsUntilGranted(f, f.Submit(1), 100) == 5);
  }
  SECTION("of a tenant that is over its cap") {
    Fixture f(options, "fair");
    f.scheduler.SetTenant(1, {.cap = 0.1});
    f.Submit(1);
    f.scheduler.Pump();
    f.engine.time = 400;  // its burst is 200
    CHECK(StepsUntilGranted(f, f.Submit(1), 100) == 1);
  }
  SECTION("where another program has the room") {
    Fixture f(options, "leftover");
    f.Submit(1);
    f.Submit(1000, 2, 0, false);
    CHECK(StepsUntilGranted(f, f.Submit(1), 100) == 5);
  }
  SECTION("but not where its own launches have it") {
    Fixture f(options, "leftover");
    f.Submit(8, 1, 0, false);
    CHECK(StepsUntilGranted(f, f.Submit(1), 100) == 100);
  }
  SECTION("not while something moves") {
    Fixture f(options, "serial");
    const LaunchId first = f.Submit(20), second = f.Submit(1);
    for (std::uint64_t done = 1; done < 9; ++done) {
      f.scheduler.Pump();
      f.engine.time += 400;
      REQUIRE(f.scheduler.Progress(first, done).ok());
    }
    CHECK_FALSE(f.engine.granted.contains(second));
    CHECK(f.scheduler.Pump() == f.engine.time + 500);
  }
}

TEST_CASE("Residency_IsEachOwners") {
  Fixture f({.sms = 4, .empty_sm = kSm, .resident_kernels = 2}, "leftover");
  const LaunchId first[] = {f.Submit(1), f.Submit(1), f.Submit(1)},
                 second[] = {f.Submit(1, 2), f.Submit(1, 2), f.Submit(1, 2)};
  f.scheduler.Pump();
  for (const auto* const own : {first, second}) {
    CHECK(f.engine.granted.contains(own[0]));
    CHECK(f.engine.granted.contains(own[1]));
    CHECK_FALSE(f.engine.granted.contains(own[2]));
  }
}

/// Launches of two tenants of weights 3 and 1, each of which launches again as soon as its launch has ended, on
/// processors that those that run share: the first one's part of the time.
double PartOfHeavier(std::uint64_t ctas, std::uint32_t processors) {
  constexpr std::uint64_t kStep = 50'000;
  Fixture f({.sms = 4, .empty_sm = kSm}, "fair", {.processors = processors});
  f.scheduler.SetTenant(1, {.weight = 3});
  struct Running {
    LaunchId id = 0;
    double left = 0;
  };
  std::map<std::uint32_t, Running> launches;
  for (unsigned step = 0; step < 40'000; ++step) {
    for (const std::uint32_t tenant : {1u, 2u}) {
      Running& launch = launches[tenant];
      if (launch.left <= 0) launch = {.id = f.Submit(ctas, tenant, 0, false), .left = 1e6};
    }
    f.scheduler.Pump();
    f.engine.time += kStep;
    const auto runs = [&](const auto& entry) { return f.engine.granted.contains(entry.second.id); };
    const auto count = std::ranges::count_if(launches, runs);
    for (auto& entry : launches) {
      if (!runs(entry) || (entry.second.left -= static_cast<double>(kStep) / static_cast<double>(count)) > 0) continue;
      REQUIRE(f.scheduler.Progress(entry.second.id, ctas).ok());
      REQUIRE(f.scheduler.End(entry.second.id, false).ok());
    }
  }
  const double heavy = f.scheduler.usage(1).device_time, light = f.scheduler.usage(2).device_time;
  CHECK(heavy + light > 40'000 * kStep * 0.99);  // the device is never idle
  return heavy / (heavy + light);
}

TEST_CASE("Fair_WeightsAreSharesOfTheTime_WhateverRoomLaunchesLeave") {
  CHECK(PartOfHeavier(8, 2) == Approx(0.75).margin(0.03));  // fills the device
  CHECK(PartOfHeavier(2, 2) == Approx(0.75).margin(0.03));  // both would have room
  CHECK(PartOfHeavier(2, 4) ==
        Approx(0.5).margin(0.03));  // there are processors left: nobody takes anything from the other
}

TEST_CASE("SetTenant_InFlight_HoldsLaunchesBackUntilItIsRaised") {
  Fixture f;
  f.scheduler.SetTenant(1, {.in_flight = 1});
  const LaunchId first = f.Submit(1), second = f.Submit(1);
  f.scheduler.Pump();
  CHECK(f.engine.granted.contains(first));
  CHECK_FALSE(f.engine.granted.contains(second));
  CHECK(f.scheduler.waiting(1) == 1);
  f.scheduler.SetTenant(1, {.in_flight = 2});
  f.scheduler.Pump();
  CHECK(f.engine.granted.contains(second));
}

TEST_CASE("SetPolicy_Live_DecidesTheNextSlice") {
  Fixture f("serial");
  const LaunchId first = f.Submit(4), second = f.Submit(4, 2);
  f.scheduler.Pump();
  CHECK_FALSE(f.engine.granted.contains(second));
  f.scheduler.SetPolicy(policy::MakePolicy("leftover").value());
  f.scheduler.Pump();
  CHECK(f.engine.granted[first] == 4);
  CHECK(f.engine.granted[second] == 4);
}

/// Programs that always have a launch ready, on a processor that all running slices share equally.
struct ClosedLoop : Fixture {
  std::map<std::uint32_t, std::uint64_t> time_per_cta;
  std::map<std::uint32_t, LaunchId> launch;
  std::map<LaunchId, std::uint64_t> done;
  std::map<LaunchId, double> progress;  ///< CTAs

  explicit ClosedLoop(std::string_view policy) : Fixture(policy, 1000) {}

  void Start(std::uint32_t tenant, std::uint64_t ns_per_cta) {
    time_per_cta[tenant] = ns_per_cta;
    launch[tenant] = Submit(500, tenant);
  }

  void Run(std::uint64_t until) {
    while (engine.time < until) {
      scheduler.Pump();
      std::vector<std::uint32_t> running;
      for (const auto& [tenant, id] : launch) {
        if (engine.granted[id] > done[id]) running.push_back(tenant);
      }
      engine.time += 10;
      for (const std::uint32_t tenant : running) {
        const LaunchId id = launch[tenant];
        progress[id] += 10.0 / static_cast<double>(running.size()) / static_cast<double>(time_per_cta[tenant]);
        if (progress[id] < static_cast<double>(engine.granted[id])) continue;
        done[id] = engine.granted[id];
        REQUIRE(scheduler.Progress(id, done[id]).ok());
        if (done[id] < 500) continue;
        REQUIRE(scheduler.End(id, false).ok());
        launch[tenant] = Submit(500, tenant);
      }
    }
  }

  double ShareOf(std::uint32_t tenant) const {
    return scheduler.usage(tenant).device_time / static_cast<double>(engine.time);
  }
  /// Processor time that the CTAs which ran were worth: what the tenant has got, whatever the scheduler thinks.
  double WorkOf(std::uint32_t tenant) {
    return static_cast<double>(scheduler.usage(tenant).ctas * time_per_cta[tenant]) / static_cast<double>(engine.time);
  }
};

TEST_CASE("Fair_ThreeToOne_IsThreeToOneInWorkDone") {
  ClosedLoop loop("fair");
  loop.scheduler.SetTenant(1, {.weight = 3});
  loop.Start(1, 20);
  loop.Start(2, 300);
  loop.Run(1'000'000);
  CHECK(loop.ShareOf(1) == Approx(0.75).margin(0.02));
  CHECK(loop.WorkOf(1) == Approx(0.75).margin(0.02));
  CHECK(loop.WorkOf(2) == Approx(0.25).margin(0.02));
}

TEST_CASE("Cap_HoldsAlsoWhereNobodyElseWantsTheDevice") {
  for (const std::string_view policy : {"fair", "leftover", "priority"}) {
    ClosedLoop loop(policy);
    loop.scheduler.SetTenant(1, {.cap = 0.3});
    loop.scheduler.SetTenant(2, {.cap = 0.45});
    loop.Start(1, 20);
    loop.Start(2, 300);
    loop.Run(1'000'000);
    INFO(policy);
    CHECK(loop.WorkOf(1) == Approx(0.3).margin(0.02));
    CHECK(loop.WorkOf(2) == Approx(0.45).margin(0.02));
  }
}

/// Keeps the device free for tenant 1 where it is not there, and starts its launches.
struct Keeper final : policy::Policy {
  static constexpr std::uint32_t kFor[] = {1};
  bool keeps = false;
  std::string_view name() const override { return "keeper"; }
  std::optional<policy::Slice> Next(const policy::Snapshot& snapshot) override {
    keeps = true;
    for (const policy::KernelView& kernel : snapshot.kernels) {
      if (kernel.tenant != 1 || kernel.all_started()) continue;
      keeps = false;
      return policy::Slice{.kernel = kernel.id, .ctas = 1};
    }
    return std::nullopt;
  }
  std::span<const std::uint32_t> KeptFor() const override {
    return keeps ? std::span(kFor) : std::span<const std::uint32_t>();
  }
};

TEST_CASE("Cap_IsPaidForWhatIsKeptFree_AsForWhatRuns") {
  Fixture f;
  f.scheduler.SetPolicy(std::make_unique<Keeper>());
  f.scheduler.SetTenant(1, {.cap = 0.5});  // may save up 1000
  f.scheduler.Pump();
  f.engine.time += 10'000;  // nothing runs, and that is tenant 1's doing
  f.scheduler.Pump();
  const LaunchId id = f.Submit(1);
  const auto again = f.scheduler.Pump();
  CHECK_FALSE(f.engine.granted.contains(id));  // it owes 4000
  REQUIRE(again);
  CHECK(*again >= f.engine.time + 8000);
}

/// A slice of the tenant's kernel runs and takes `ns`; answers how many CTAs it had.
std::uint64_t RunSlice(Fixture& f, std::uint32_t tenant, std::uint64_t kernel, std::uint64_t ctas, std::uint64_t ns) {
  const LaunchId id = f.SubmitKernel(kernel, ctas, tenant);
  f.scheduler.Pump();
  const std::uint64_t granted = f.engine.granted[id];
  f.engine.time += ns;
  REQUIRE(f.scheduler.Progress(id, granted).ok());
  REQUIRE(f.scheduler.End(id, false).ok());
  return granted;
}

TEST_CASE("Estimates_OfATenant_AreItsOwnWhateverOthersCallTheirKernels") {
  constexpr std::uint64_t kKernel = 12345, kOften = 0x9e3779b97f4a7c15ULL;
  // Newton: kOften * inverse == 1, so that kernels of two tenants could be given one mixed number.
  std::uint64_t inverse = kOften;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kOften * inverse;
  Fixture f("leftover", 1000);
  RunSlice(f, 1, kKernel, 100, 40);  // 4 CTAs, as nothing is known of it: 10 ns each
  CHECK(RunSlice(f, 1, kKernel, 1000, 1000) == 100);
  for (const std::uint64_t kernel : {kKernel, kKernel - inverse, kKernel + inverse, kKernel ^ 1}) {
    for (int i = 0; i < 20; ++i) RunSlice(f, 2, kernel, 1, 1'000'000);
  }
  CHECK(RunSlice(f, 1, kKernel, 1000, 1000) == 100);
}

TEST_CASE("Estimates_OfATenant_OutliveAFloodOfOthersKernelsAndOfItsOwn") {
  Fixture f("leftover", 1000);
  RunSlice(f, 1, 7, 100, 40);
  for (std::uint64_t kernel = 100; kernel < 10'100; ++kernel) RunSlice(f, 2, kernel, 1, 1);
  CHECK(RunSlice(f, 1, 7, 1000, 1000) == 100);
  for (std::uint64_t kernel = 100; kernel < 10'100; ++kernel) {
    RunSlice(f, 1, kernel, 1, 1);
    if (kernel % 300 == 0) CHECK(RunSlice(f, 1, 7, 1000, 1000) == 100);  // what runs now and then stays known
  }
  CHECK(RunSlice(f, 1, 101, 1000, 1000) == 4);  // what has not run for long is forgotten
}

TEST_CASE("KernelTimes_KeepsNoMoreThanItMay_AndWhatIsUsed") {
  KernelTimes times;
  CHECK(times.Find(1) == nullptr);
  times.Learn(1, 100);
  CHECK(*times.Find(1) == 100);
  times.Learn(1, 200);
  CHECK(*times.Find(1) == 125);
  for (std::uint64_t kernel = 2; kernel < 100'000; ++kernel) {
    times.Learn(kernel, 5);
    REQUIRE(times.size() <= KernelTimes::kMost);
    if (kernel % 400 == 0) times.Learn(1, 125);
  }
  REQUIRE(times.Find(1) != nullptr);
  CHECK(*times.Find(1) == 125);
  CHECK(times.Find(2) == nullptr);
}

TEST_CASE("Priority_MoreUrgentTenant_HasTheDevice") {
  ClosedLoop loop("priority");
  loop.scheduler.SetTenant(2, {.priority = 5});
  loop.Start(1, 20);
  loop.Start(2, 20);
  loop.Run(200'000);
  CHECK(loop.ShareOf(2) > 0.95);
}

}  // namespace
}  // namespace gridloom::sched
