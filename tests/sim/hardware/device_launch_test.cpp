// Kernels that kernels launch: when they begin, in which order, what calls take of a warp's time; and thread blocks
// that join kernels.
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "scheduler/policy/builtin.h"
#include "sim/hardware/catalog.h"
#include "sim/hardware/dtbl/distributor.h"
#include "sim/hardware/dtbl/group_table.h"
#include "sim/timing/dispatch/device_launches.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;

CtaSignal CallOf(std::uint64_t number) {
  CtaSignal call;
  call.event.data[0] = number;
  return call;
}

TEST_CASE("DeviceLaunches_KnowWhoWasCalled_AndWhatPendingLaunchesTake") {
  DeviceLaunches launches;
  launches.Expect(1, 0, {.parent = 0, .number = 7});
  launches.Expect(2, 0, {.parent = 0, .number = 8});
  launches.Expect(3, 1, {.parent = 9, .number = 7});  // another process
  CHECK(launches.Call(0, CallOf(7)) == WorkId{1});
  CHECK_FALSE(launches.Call(0, CallOf(7)).has_value());
  CHECK_FALSE(launches.Call(2, CallOf(8)).has_value());
  launches.SetPending(1, 100, 64);
  launches.SetPending(2, 120, 36);
  CHECK(launches.pending_bytes() == 100);
  launches.SetStarted(1, 150);
  launches.SetStarted(1, 170);  // was not pending any more
  CHECK(launches.pending_bytes() == 36);
  launches.SetStarted(2, 130);
  CHECK(launches.NeverCalled(0) == std::vector<WorkId>{2});
  CHECK(launches.NeverCalled(0).empty());
  CHECK(launches.NeverCalled(9) == std::vector<WorkId>{3});
  CHECK(launches.idle());
  CHECK(launches.pending_bytes() == 0);
  CHECK(launches.counters().device_launches == 2);
  CHECK(launches.counters().device_launch_wait_cycles == 60);
  CHECK(launches.counters().device_launch_byte_cycles == 50 * 64 + 10 * 36);
  CHECK(launches.counters().device_launch_most_bytes == 100);
  CHECK(launches.counters().device_launch_most_pending == 2);
}

TEST_CASE("GroupTable_HasOneEntryForAHardwareThread") {
  hardware::GroupTable table(8);
  CHECK(table.Take(3) == 3u);
  CHECK_FALSE(table.Take(11).has_value());
  CHECK(table.Take(12) == 4u);
  table.Free(3);
  CHECK(table.Take(19) == 3u);
  CHECK(table.taken() == 2);
  CHECK(table.most_taken() == 2);
  hardware::GroupTable one(1);
  CHECK(one.Take(77) == 0u);
  CHECK_FALSE(one.Take(78).has_value());
}

TEST_CASE("Distributor_ChainsGroupsBehindEachOther") {
  using hardware::Distributor;
  Distributor running;
  running.Add({.kernel = 5, .code = 1, .native_ctas = 2, .ctas = 2});
  running.Add({.kernel = 6, .code = 2, .native_ctas = 1, .ctas = 1});
  CHECK(running.FindLike(2, 0)->kernel == 6);
  CHECK(running.FindLike(3, 0) == nullptr);
  CHECK(running.FindLike(2, 1) == nullptr);
  hardware::RunningKernel& kernel = *running.Find(5);
  Distributor::Join(kernel, {.launch = 10, .ctas = 2});
  Distributor::Join(kernel, {.launch = 11, .ctas = 1});
  CHECK(Distributor::Next(kernel) == nullptr);
  Distributor::Start(kernel);
  Distributor::Start(kernel);
  CHECK(Distributor::Next(kernel)->launch == 10);
  Distributor::Start(kernel);
  CHECK(Distributor::Next(kernel)->launch == 10);
  Distributor::Start(kernel);
  CHECK(Distributor::Next(kernel)->launch == 11);
  Distributor::Start(kernel);
  CHECK(Distributor::Next(kernel) == nullptr);
  CHECK(kernel.ctas == 5);
  running.Remove(5);
  CHECK(running.Find(5) == nullptr);
  running.Add({.kernel = 7, .code = 1, .native_ctas = 2, .ctas = 2});
  CHECK(running.FindLike(1, 0)->kernel == 7);  // in the first entry again
  CHECK(running.entries() == 2);
}

/// A launch that a CTA makes: in which visit of its block, by which lane.
struct Call {
  std::uint64_t cta = 0;
  std::uint32_t visit = 0, lane = 0;
  std::uint64_t number = 0;
  std::uint8_t flags = 0;
};

/// CTAs of a warp whose block of two instructions is visited so often; a call is made by the first of them.
std::shared_ptr<trace::CtaSource> Kernel(const std::string& name, std::uint64_t ctas, std::uint32_t visits,
                                         std::vector<Call> calls = {}, std::uint16_t register_number = 1) {
  CodeBuilder code(name);
  code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  code.Op(OpClass::kInt, {register_number}, {1});
  std::ranges::stable_sort(calls, {}, &Call::visit);
  return std::make_shared<SyntheticSource>(
      code.code(), trace::LaunchShape{.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 32},
      [=](std::uint64_t index) {
        CtaBuilder cta;
        cta.Warp();
        cta.Visit(0, kAllLanes, visits);
        trace::CtaTrace made = *cta.Finish();
        for (const Call& call : calls) {
          if (call.cta != index) continue;
          made.events.push_back({.kind = trace::EventKind::kDeviceLaunch,
                                 .flags = call.flags,
                                 .visit = call.visit,
                                 .instruction = 0,
                                 .lanes = 1u << call.lane,
                                 .data = {call.number, 1, 32, 16}});
        }
        return trace::LoadedCta{.trace = std::make_shared<const trace::CtaTrace>(std::move(made)), .shifts = {}};
      });
}

sim::DeviceSpec DeviceWith(bool free) {
  sim::DeviceSpec device = TestDevice("k20c");
  if (free) {
    device.timing.device_launch.percent = 0;
    device.timing.launch.kernel_cycles = device.timing.launch.dependent_cycles = 0;
  }
  return device;
}

/// A work to give to an engine.
struct Given {
  std::shared_ptr<trace::CtaSource> source;
  std::vector<WorkId> after;
  LaunchedBy by;
};

struct Ran {
  std::vector<WorkResult> works;
  Counters counters;
};

Ran Run(const sim::DeviceSpec& device, const std::vector<Given>& works, EngineOptions options = {}) {
  const auto policy = policy::MakePolicy("leftover").value();
  options.parts = hardware::Build(device).value();
  auto engine = Engine::Create(device, *policy, std::move(options));
  REQUIRE(engine.ok());
  std::uint32_t stream = 0;
  for (const Given& work : works) {
    REQUIRE((*engine)
                ->Add(KernelWork{
                    .order = {.stream = stream++, .after = work.after}, .source = work.source, .launched_by = work.by})
                .ok());
  }
  const Status status = (*engine)->Run();
  INFO((status.ok() ? "" : status.error().message));
  REQUIRE(status.ok());
  return {(*engine)->results(), (*engine)->counters()};
}

TEST_CASE("DeviceLaunch_BeginsAfterItsCall_WhichHoldsUpTheWarp") {
  const sim::DeviceSpec device = DeviceWith(false);
  const auto& costs = device.timing.device_launch;
  // Lanes 0 and 5 launch with the same instruction.
  const Ran ran = Run(
      device, {{Kernel("parent", 1, 100, {{.visit = 10, .number = 1}, {.visit = 10, .lane = 5, .number = 2}}), {}, {}},
               {Kernel("child", 2, 10), {}, {.parent = 0, .number = 1}},
               {Kernel("child", 2, 10), {}, {.parent = 0, .number = 2}}});
  const auto& works = ran.works;
  const Cycle call =
      costs.buffer_cycles + costs.call_cycles + 2 * (costs.buffer_thread_cycles + costs.call_thread_cycles);
  const Ran plain = Run(device, {{Kernel("parent", 1, 100), {}, {}}});
  // The instruction behind the call waits for it instead of for the call's result.
  const Cycle alone = plain.works[0].ended - plain.works[0].started, took = works[0].ended - works[0].started;
  CHECK(took >= alone + call - 16);
  CHECK(took <= alone + call);
  for (const std::size_t child : {1, 2}) {
    CHECK(works[child].started >= works[child].submitted + call + costs.dispatch_cycles);
    CHECK(works[child].started <=
          works[child].submitted + call + costs.dispatch_cycles + device.timing.launch.cta_cycles + 4);
    CHECK(works[child].submitted > works[0].started);
    CHECK(works[child].started < works[0].ended);
  }
  CHECK(ran.counters.launches.device_launches == 2);
  CHECK(ran.counters.launches.device_launch_most_bytes == 2 * (16 + costs.record_bytes));
  CHECK(ran.counters.launches.device_launch_wait_cycles ==
        works[1].started + works[2].started - 2 * works[1].submitted);
}

TEST_CASE("DeviceLaunch_ThatNobodyCalls_BeginsWhenItsParentHasEnded") {
  const Ran ran = Run(DeviceWith(true),
                      {{Kernel("parent", 1, 100), {}, {}}, {Kernel("child", 1, 10), {}, {.parent = 0, .number = 1}}});
  CHECK(ran.works[1].started >= ran.works[0].ended);
  CHECK(ran.counters.launches.device_launches == 0);
}

TEST_CASE("DeviceLaunch_BehindAnother_WaitsForItsEnd_AndNotForItsParent") {
  const Ran ran = Run(DeviceWith(true),
                      {{Kernel("parent", 1, 9000, {{.visit = 1, .number = 1}, {.visit = 2, .number = 2}}), {}, {}},
                       {Kernel("first", 1, 500), {}, {.parent = 0, .number = 1}},
                       {Kernel("second", 1, 10), {1}, {.parent = 0, .number = 2}}});
  CHECK(ran.works[2].started >= ran.works[1].ended);
  CHECK(ran.works[2].ended < ran.works[0].ended);
}

TEST_CASE("DeviceLaunch_OfMoreThanTheDistributorHolds_IsInTheOrderOfCalls") {
  sim::DeviceSpec device = DeviceWith(true);
  device.grid.max_resident = 2;
  std::vector<Call> calls;
  for (std::uint32_t i = 0; i < 6; ++i) calls.push_back({.visit = 2 * i, .number = i + 1});
  std::vector<Given> works = {{Kernel("parent", 1, 100000, calls), {}, {}}};
  // Given in another order than that of the calls.
  for (std::uint32_t i = 6; i > 0; --i) works.push_back({Kernel("child", 1, 500), {}, {.parent = 0, .number = i}});
  const Ran ran = Run(device, works);
  for (std::size_t number = 1; number < 6; ++number)
    CHECK(ran.works[7 - number].ended <= ran.works[6 - number].started);
}

TEST_CASE("Dtbl_GroupsJoinAKernelOfTheirCode_AndStartWhereKernelsWouldHaveToWait") {
  sim::DeviceSpec device = DeviceWith(true);
  device.grid.max_resident = 2;
  std::vector<Call> calls;
  std::vector<Given> works = {{nullptr, {}, {}}};
  for (std::uint32_t i = 0; i < 40; ++i) {
    calls.push_back({.visit = i, .lane = i % 32, .number = i + 1});
    works.push_back({Kernel("child", 1, 3000), {}, {.parent = 0, .number = i + 1}});
  }
  works[0].source = Kernel("parent", 1, 2000, calls);
  const Ran kernels = Run(device, works);
  device.proposed.emplace_back("dtbl");
  const Ran groups = Run(device, works);
  const auto value = [&](const Ran& ran, std::string_view name) {
    for (const CounterInfo& info : hardware::CountersOf(device)) {
      if (info.name == name) return info.value(ran.counters);
    }
    FAIL("no counter " << name);
    return std::uint64_t{0};
  };
  CHECK(value(groups, "dtbl_unmatched") == 1);  // the first one, which the others join
  CHECK(value(groups, "dtbl_joined") == 39);
  const auto end = [](const Ran& ran) {
    Cycle last = 0;
    for (const WorkResult& work : ran.works) last = std::max(last, work.ended);
    return last;
  };
  CHECK(end(groups) * 10 < end(kernels));
  std::uint64_t instructions[2] = {};
  for (std::size_t i = 0; i < works.size(); ++i) {
    CHECK(groups.works[i].ctas == kernels.works[i].ctas);
    CHECK(groups.works[i].warp_instructions == kernels.works[i].warp_instructions);
    instructions[0] += groups.works[i].warp_instructions;
    instructions[1] += kernels.works[i].warp_instructions;
  }
  CHECK(instructions[0] == groups.counters.sm.warp_instructions);
}

TEST_CASE("Dtbl_OfKernelsThatHaveOneNameAndOtherCode_JoinsNone") {
  sim::DeviceSpec device = DeviceWith(true);
  device.proposed.emplace_back("dtbl");
  for (const std::uint16_t other : {1, 2}) {
    const Ran ran =
        Run(device, {{Kernel("parent", 1, 4000, {{.visit = 1, .number = 1}, {.visit = 2000, .number = 2}}), {}, {}},
                     {Kernel("child", 1, 9000), {}, {.parent = 0, .number = 1}},
                     {Kernel("child", 1, 10, {}, other), {}, {.parent = 0, .number = 2}}});
    for (const CounterInfo& info : hardware::CountersOf(device)) {
      if (info.name == "dtbl_joined") CHECK(info.value(ran.counters) == (other == 1 ? 1u : 0u));
    }
    CHECK(ran.works[2].done());
  }
}

/// Launches within launches, of few codes, some behind others.
std::vector<Given> RandomNest(std::mt19937_64& random, std::size_t most) {
  std::vector<Given> works;
  struct Open {
    WorkId id;
    unsigned depth;
  };
  std::vector<std::vector<Call>> calls;
  std::vector<std::tuple<std::string, std::uint64_t, std::uint32_t>> kinds;
  std::vector<Open> open;
  const auto add = [&](std::vector<WorkId> after, LaunchedBy by, unsigned depth) {
    const auto id = static_cast<WorkId>(works.size());
    works.push_back({nullptr, std::move(after), by});
    calls.emplace_back();
    kinds.emplace_back("kernel" + std::to_string(random() % 3), 1 + random() % 4, 20 + random() % 200);
    open.push_back({id, depth});
  };
  for (std::uint64_t i = 1 + random() % 3; i > 0; --i) add({}, {}, 0);
  for (std::size_t at = 0; at < open.size() && works.size() < most; ++at) {
    const auto [parent, depth] = open[at];
    if (depth > 24) continue;
    std::optional<WorkId> last;
    for (std::uint64_t left = random() % 9; left > 0; --left) {
      const std::uint64_t number = works.size();
      const auto& [name, ctas, visits] = kinds[parent];
      if (random() % 10 != 0) {  // some are never called
        calls[parent].push_back({.cta = random() % ctas,
                                 .visit = static_cast<std::uint32_t>(random() % visits),
                                 .lane = static_cast<std::uint32_t>(random() % 32),
                                 .number = number,
                                 .flags = static_cast<std::uint8_t>(random() % 3 == 0 ? trace::kDefaultStream : 0)});
      }
      std::vector<WorkId> after;
      if (last && random() % 3 == 0) after.push_back(*last);
      last = static_cast<WorkId>(number);
      add(std::move(after), {.parent = parent, .number = number}, depth + 1);
    }
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    const auto& [name, ctas, visits] = kinds[i];
    works[i].source = Kernel(name, ctas, visits, calls[i]);
  }
  return works;
}

bool Same(const Ran& a, const Ran& b) {
  if (a.counters != b.counters || a.works.size() != b.works.size()) return false;
  for (std::size_t i = 0; i < a.works.size(); ++i) {
    const WorkResult &x = a.works[i], &y = b.works[i];
    if (x.submitted != y.submitted || x.started != y.started || x.ended != y.ended ||
        x.warp_instructions != y.warp_instructions)
      return false;
  }
  return true;
}

TEST_CASE("DeviceLaunch_OfRandomNests_IsTheSamePlainAndFast_AndEverythingEnds") {
  std::mt19937_64 random(17);
  std::uint64_t joined = 0, spilled = 0;
  for (int round = 0; round < 24; ++round) {
    sim::DeviceSpec device = DeviceWith(round % 3 == 0);
    device.sm.count = 1 + random() % 4;
    device.grid.max_resident = 1 + random() % 5;
    device.timing.launch.queues = 1 + random() % 3;
    if (round % 2 == 1) {
      device.proposed.emplace_back("dtbl");
      device.part_values.push_back(
          {.part = "dtbl", .key = "agt_entries", .value = std::to_string(1 + random() % 3 * 31), .where = ""});
    }
    const std::vector<Given> works = RandomNest(random, 60 + random() % 300);
    INFO("round " << round << ", " << works.size() << " works");
    const Ran fast = Run(device, works);
    for (const WorkResult& work : fast.works) {
      REQUIRE(work.done());
      CHECK(work.started >= work.submitted);
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      for (const WorkId before : works[i].after) CHECK(fast.works[i].started >= fast.works[before].ended);
    }
    CHECK(Same(fast, Run(device, works, {.plain = true})));
    CHECK(Same(fast, Run(device, works, {.window = 7})));
    CHECK(Same(fast, Run(device, works, {.threads = 2})));
    if (device.proposed.empty()) continue;
    for (const CounterInfo& info : hardware::CountersOf(device)) {
      if (info.name == "dtbl_joined") joined += info.value(fast.counters);
      if (info.name == "dtbl_loads") spilled += info.value(fast.counters);
    }
  }
  CHECK(joined > 100);
  CHECK(spilled > 10);
}

}  // namespace
}  // namespace gridloom::timing
