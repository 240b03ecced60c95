// Narrow tasks in the model: kernels that run under the MasterKernel, against the same kernels alone and against the
// model's plain mode.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "sim/hardware/catalog.h"
#include "tests/sim/hardware/random_program.h"
#include "tests/sim/hardware/with_parts.h"
#include "tests/sim/timing/random_launch.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

sim::DeviceSpec PagodaDevice(const std::string& values = "", std::uint32_t sms = 2) {
  sim::DeviceSpec device = TestDevice("titanx-maxwell");
  device.sm.count = sms;
  REQUIRE(sim::ApplyDeviceText("proposed: pagoda\nhardware: {pagoda: {" + values + "}}", "test", device).ok());
  return device;
}

/// CTAs of some warps that add, wait for each other, load and store.
std::shared_ptr<trace::CtaSource> Kernel(const std::string& name, std::uint64_t ctas, std::uint32_t warps,
                                         std::uint32_t adds, bool waits, std::uint32_t shared = 0,
                                         bool together = false) {
  CodeBuilder code(name);
  code.Block();
  for (std::uint16_t i = 0; i < 8; ++i) code.Op(OpClass::kInt, {1}, {1});
  code.Block();
  code.Load(Space::kGlobal, 2);
  code.Op(OpClass::kInt, {3}, {2});
  if (waits) code.Barrier();
  code.Store(Space::kGlobal, 3);
  code.Block();
  code.Exit();
  CtaBuilder cta;
  for (std::uint32_t w = 0; w < warps; ++w) {
    cta.Warp();
    cta.Visit(0, kAllLanes, adds / 8);
    cta.Visit(1);
    cta.Access(std::uint64_t{w} * 128);
    cta.Access((std::uint64_t{1} << 20) + w * 128);
    cta.Visit(2);
  }
  const trace::LaunchShape shape{.ctas = ctas,
                                 .threads_per_cta = warps * 32,
                                 .registers_per_thread = 32,
                                 .shared_bytes = shared,
                                 .together = together};
  return SameCtas(code.code(), shape, cta.Finish(), 4096);
}

TEST_CASE("Pagoda_NarrowKernels_RunAsTasks_EachOnce") {
  const sim::DeviceSpec device = PagodaDevice();
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  for (int i = 0; i < 100; ++i) {
    launches.push_back(Kernel("a", 1, 4, 80, true));
    launches.push_back(Kernel("b", 3, 2, 160, false));
    launches.push_back(Kernel("c", 2, 3, 40, true, 1000));
  }
  const Outcome outcome = RunLaunches(device, launches, WithParts(device), 32);
  CHECK(Count(device, outcome, "pagoda_tasks") == 300);
  CHECK(Count(device, outcome, "pagoda_starts") == 1);
  sim::DeviceSpec plain = TestDevice("titanx-maxwell");
  plain.sm.count = 2;
  const Outcome alone = RunLaunches(plain, launches, {}, 32);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    INFO(i);
    REQUIRE(outcome.works[i].done());
    CHECK(outcome.works[i].warp_instructions == alone.works[i].warp_instructions);
    CHECK(outcome.works[i].thread_instructions == alone.works[i].thread_instructions);
  }
}

TEST_CASE("Pagoda_TasksOfOneStream_FollowEachOther") {
  const sim::DeviceSpec device = PagodaDevice();
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  for (int i = 0; i < 20; ++i) launches.push_back(Kernel("a", 1, 4, 400, true));
  const Outcome outcome = RunLaunches(device, launches, WithParts(device), 1);
  for (std::size_t i = 1; i < launches.size(); ++i) CHECK(outcome.works[i].started > outcome.works[i - 1].ended);
}

TEST_CASE("Pagoda_ParkedSchedulers_StartTheSameTasks_AtNearlyTheSameTimes_WithFewerInstructions") {
  const auto run = [](const char* schedulers, const RunOptions& options) {
    const sim::DeviceSpec device = PagodaDevice(std::string("rows: 4, schedulers: ") + schedulers);
    std::vector<std::shared_ptr<trace::CtaSource>> launches;
    for (int i = 0; i < 24; ++i) launches.push_back(Kernel("k", 1, 2, 2000, true));
    Outcome outcome = RunLaunches(device, launches, WithParts(device, options), 3);
    CHECK(Count(device, outcome, "pagoda_tasks") == 24);
    Cycle end = 0;
    for (const WorkResult& work : outcome.works) end = std::max(end, work.ended);
    return std::pair(std::move(outcome), end);
  };
  const auto [exact, exact_end] = run("polling", {});
  const auto [parked, parked_end] = run("parked", {});
  CHECK(static_cast<double>(parked_end) == Approx(static_cast<double>(exact_end)).epsilon(0.01));
  CHECK(parked.counters.sm.warp_instructions < exact.counters.sm.warp_instructions * 9 / 10);
  CHECK(Count(PagodaDevice("rows: 4"), exact, "pagoda_skipped_looks") == 0);
  CHECK(Count(PagodaDevice("rows: 4"), parked, "pagoda_skipped_looks") > 0);
  CHECK(Difference(parked, run("parked", {.threads = 2, .window = 7}).first) == "");
  CHECK(Difference(parked, run("parked", {.plain = true}).first) == "");
}

TEST_CASE("Pagoda_MoreTasksThanEntries_AllEnd") {
  const sim::DeviceSpec device = PagodaDevice("rows: 1, warps: 5, timeout_ns: 1000000");
  std::vector<std::shared_ptr<trace::CtaSource>> launches(200, Kernel("a", 1, 4, 800, true, 600));
  const Outcome outcome = RunLaunches(device, launches, WithParts(device), 100);
  CHECK(Count(device, outcome, "pagoda_tasks") == 200);
  CHECK(Count(device, outcome, "pagoda_full") > 0);
  for (const WorkResult& work : outcome.works) CHECK(work.done());
}

TEST_CASE("Pagoda_WideKernels_GetTheDeviceToo") {
  const sim::DeviceSpec device = PagodaDevice();
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  for (int i = 0; i < 40; ++i)
    launches.push_back(i % 10 == 5 ? Kernel("wide", 64, 8, 80, true) : Kernel("narrow", 1, 4, 80, false));
  const Outcome outcome = RunLaunches(device, launches, WithParts(device), 8);
  CHECK(Count(device, outcome, "pagoda_tasks") == 36);
  for (const WorkResult& work : outcome.works) CHECK(work.done());
}

TEST_CASE("Pagoda_KernelsThatItHasNoRoomFor_AreLaunchedAsTheyWere") {
  const sim::DeviceSpec device = PagodaDevice("warps: 4, pool_bytes: 1024");
  const Outcome outcome =
      RunLaunches(device,
                  {Kernel("many_warps", 1, 4, 80, true), Kernel("much_memory", 1, 2, 80, true, 2000),
                   Kernel("fits", 1, 3, 80, true, 1000)},
                  WithParts(device), 3);
  CHECK(Count(device, outcome, "pagoda_refused") == 2);
  CHECK(Count(device, outcome, "pagoda_tasks") == 1);
  for (std::size_t i = 0; i < 3; ++i) CHECK(outcome.works[i].done());
}

TEST_CASE("Tasks_LaunchesWhoseCtasMayWaitForEachOther_AreNone") {
  const std::vector<std::shared_ptr<trace::CtaSource>> launches = {Kernel("together", 4, 2, 80, true, 0, true),
                                                                   Kernel("narrow", 4, 2, 80, true)};
  for (const std::string part : {"pagoda", "gemtc"}) {
    INFO(part);
    sim::DeviceSpec device = TestDevice("titanx-maxwell");
    device.sm.count = 2;
    REQUIRE(sim::ApplyDeviceText("proposed: " + part, "test", device).ok());
    const Outcome outcome = RunLaunches(device, launches, WithParts(device), 2);
    CHECK(Count(device, outcome, part + "_tasks") == 1);
    for (const WorkResult& work : outcome.works) CHECK(work.done());
    sim::DeviceSpec without = TestDevice("titanx-maxwell");
    without.sm.count = 2;
    CHECK(KernelCycles(RunLaunches(device, {launches[0]}, WithParts(device))) ==
          KernelCycles(RunLaunches(without, {launches[0]})));
  }
}

TEST_CASE("Gemtc_NarrowKernels_RunInBatches_EachOnce") {
  sim::DeviceSpec device = TestDevice("titanx-maxwell");
  device.sm.count = 2;
  REQUIRE(sim::ApplyDeviceText("proposed: gemtc\nhardware: {gemtc: {batch: 30}}", "test", device).ok());
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  for (int i = 0; i < 50; ++i) {
    launches.push_back(Kernel("a", 1, 4, 80, true));
    launches.push_back(Kernel("b", 2, 3, 160, false));
  }
  launches.push_back(Kernel("wide", 64, 8, 80, true));
  const Outcome outcome = RunLaunches(device, launches, WithParts(device), 40);
  CHECK(Count(device, outcome, "gemtc_tasks") == 100);
  CHECK(Count(device, outcome, "gemtc_batches") >= 5);
  CHECK(Count(device, outcome, "gemtc_lock_tries") >= 150);
  sim::DeviceSpec plain = TestDevice("titanx-maxwell");
  plain.sm.count = 2;
  const Outcome alone = RunLaunches(plain, launches, {}, 40);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    INFO(i);
    REQUIRE(outcome.works[i].done());
    CHECK(outcome.works[i].warp_instructions == alone.works[i].warp_instructions);
  }
}

TEST_CASE("Gemtc_BatchOfFewTasks_HasAsManyBlocksOfTheSuperKernel") {
  sim::DeviceSpec device = TestDevice("titanx-maxwell");
  device.sm.count = 2;
  REQUIRE(sim::ApplyDeviceText("proposed: gemtc", "test", device).ok());
  const std::vector<std::shared_ptr<trace::CtaSource>> launches(3, Kernel("a", 1, 4, 80, true));
  const Outcome outcome = RunLaunches(device, launches, WithParts(device), 3);
  REQUIRE(Count(device, outcome, "gemtc_tasks") == 3);
  std::uint64_t blocks = 0;
  for (std::size_t i = launches.size(); i < outcome.works.size(); ++i) blocks += outcome.works[i].ctas;
  CHECK(blocks == 3);
}

/// Tasks with copies of their own, each in a stream.
Program WithCopies(int tasks, std::uint32_t streams) {
  Program program;
  const auto order = [&](int i) {
    return WorkOrder{.stream = static_cast<std::uint32_t>(i) % streams, .submitted = Cycle(i) * 700, .after = {}};
  };
  for (int i = 0; i < tasks; ++i) {
    program.Add(CopyWork{.order = order(i), .direction = CopyDirection::kToDevice, .bytes = 10000});
    KernelWork kernel;
    kernel.order = order(i);
    kernel.source = Kernel("a", 1, 4, 80, i % 2 == 0);
    program.Add(std::move(kernel));
    program.Add(CopyWork{.order = order(i), .direction = CopyDirection::kToHost, .bytes = 5000});
  }
  return program;
}

TEST_CASE("Pagoda_TasksWithCopies_BeginBehindTheirInputs_AndEndBeforeTheirResults_ForAllWindows") {
  for (const char* const part : {"pagoda", "gemtc"}) {
    for (const std::uint32_t streams : {60u, 8u}) {
      INFO(part << " " << streams);
      sim::DeviceSpec device = TestDevice("titanx-maxwell");
      device.sm.count = 2;
      device.timing.pcie.engine_ns = 1500;
      device.timing.pcie.handover_ns = streams == 8 ? 700 : 0;
      REQUIRE(sim::ApplyDeviceText(std::string("proposed: ") + part, "test", device).ok());
      const Program program = WithCopies(60, streams);
      const auto run = [&](const RunOptions& options) {
        ProgramRun ran = RunProgram(device, program, options);
        REQUIRE(ran.status.ok());
        return std::move(ran.outcome);
      };
      const Outcome fast = run({});
      for (std::size_t i = 0; i < 180; i += 3) {
        REQUIRE(fast.works[i + 2].done());
        CHECK(fast.works[i + 1].started > fast.works[i].ended);
        CHECK(fast.works[i + 2].started >= fast.works[i + 1].ended);
      }
      REQUIRE(Difference(fast, run({.window = 1})) == "");
      REQUIRE(Difference(fast, run({.threads = 2, .window = 13})) == "");
    }
  }
}

std::pair<std::uint64_t, std::uint64_t> Seeds() {
  const char* text = std::getenv("GRIDLOOM_TIMING_SEEDS");
  if (text == nullptr) return {1, 8};
  char* rest = nullptr;
  const std::uint64_t first = std::strtoull(text, &rest, 10);
  return {first, *rest == '-' ? std::strtoull(rest + 1, nullptr, 10) : first};
}

TEST_CASE("Pagoda_RandomKernelsOnRandomDevices_AreBitEqualToThePlainMode_AndForAllWindows") {
  const auto [first, last] = Seeds();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    sim::DeviceSpec device = RandomDevice(random);
    device.sm.count = std::min(device.sm.count, 2u);
    // Warps that poll would keep the few active places to themselves.
    if (device.timing.sm.warp_order == sim::WarpOrder::kTwoLevel)
      device.timing.sm.warp_order = sim::WarpOrder::kLooseRoundRobin;
    device.timing.pcie.latency_ns = 300;
    device.timing.pcie.engine_ns = random() % 2 == 0 ? 0 : 50;
    device.timing.host.call_ns = 200;
    if (random() % 2 == 0) device.timing.host.copy_call_ns = 20 + random() % 300;
    if (random() % 2 == 0) {
      device.timing.pcie.engine_ns = random() % 300;
      device.timing.pcie.to_host_engine_ns = random() % 2 == 0 ? random() % 300 : 0;
      device.timing.pcie.handover_ns = random() % 300;
    }
    const std::string workers = std::to_string(random() % 4), copies = random() % 2 == 0 ? "task" : "batch";
    const std::string warps = std::to_string(2 + random() % 7), rows = std::to_string(1 + random() % 8);
    const std::string batch = std::to_string(random() % 3 == 0 ? 2 : 0);
    const bool gemtc = random() % 4 == 0;
    if (gemtc)
      REQUIRE(sim::ApplyDeviceText(
                  "proposed: gemtc\nhardware: {gemtc: {batch: 5, wait_ns: 2000, threads: 2048, workers: " + workers +
                      ", copies: " + copies + "}}",
                  "test", device)
                  .ok());
    else
      REQUIRE(sim::ApplyDeviceText(
                  "proposed: pagoda\nhardware: {pagoda: {warps: " + warps + ", rows: " + rows + ", batch: " + batch +
                      ", idle: " + (random() % 2 == 0 ? "parked" : "polling") +
                      ", schedulers: " + (random() % 2 == 0 ? "parked" : "polling") +
                      ", pool_bytes: 4096, flush_ns: 500, timeout_ns: 3000, linger_ns: 2000, threads: 2048}}",
                  "test", device)
                  .ok());
    std::vector<std::shared_ptr<trace::CtaSource>> launches;
    for (int i = 0; i < 12; ++i) launches.push_back(RandomLaunch(random));
    const auto run = [&](const RunOptions& options) {
      Outcome outcome = RunLaunches(device, launches, WithParts(device, options), 4);
      // Copies that the part makes have numbers in the order in which it thought of them; that is no matter of time.
      std::ranges::sort(outcome.works.begin() + static_cast<std::ptrdiff_t>(launches.size()), outcome.works.end(), {},
                        [](const WorkResult& work) { return std::pair(work.started, work.ended); });
      return outcome;
    };
    const Outcome fast = run({});
    CHECK((gemtc ? Count(device, fast, "gemtc_tasks")
                 : Count(device, fast, "pagoda_tasks") + Count(device, fast, "pagoda_refused")) > 0);
    REQUIRE(Difference(fast, run({.threads = 2})) == "");
    REQUIRE(Difference(fast, run({.threads = 3, .window = 7})) == "");
    REQUIRE(Difference(fast, run({.window = 1})) == "");
    REQUIRE(Difference(fast, run({.step = 1001})) == "");
    REQUIRE(Difference(fast, run({.plain = true})) == "");
  }
}

}  // namespace
}  // namespace gridloom::timing
