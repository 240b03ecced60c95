// Random programs whose works overlap: nothing waits for ever, nobody touches memory out of order, all counts return to
// zero, and neither short cuts, windows nor threads change anything.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <variant>

#include "sim/hardware/catalog.h"
#include "tests/sim/hardware/random_program.h"
#include "tests/sim/timing/random_launch.h"

namespace gridloom::timing {
namespace {

/// GRIDLOOM_OVERLAP_SEEDS=FIRST-LAST for others.
std::pair<std::uint64_t, std::uint64_t> Seeds(std::uint64_t first, std::uint64_t last) {
  const char* const given = std::getenv("GRIDLOOM_OVERLAP_SEEDS");
  if (given == nullptr) return {first, last};
  char* end = nullptr;
  first = std::strtoull(given, &end, 10);
  return {first, *end == '-' ? std::strtoull(end + 1, nullptr, 10) : first};
}

struct Case {
  sim::DeviceSpec device;
  Program program;
  std::string keys;

  explicit Case(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    device = RandomDevice(random);
    device.sm.count = static_cast<std::uint32_t>(1 + random() % 6);
    device.grid.max_resident = std::initializer_list<std::uint32_t>{1, 4, 16, 32}.begin()[random() % 4];
    device.timing.launch.queues = static_cast<std::uint32_t>(1 + random() % 8);
    device.timing.host.storage_mb_s = std::initializer_list<std::uint32_t>{0, 2000, 20000}.begin()[random() % 3];
    device.timing.pcie.to_device_mb_s = device.timing.pcie.to_host_mb_s = random() % 2 == 0 ? 6000 : 40000;
    device.timing.pcie.latency_ns = 100;
    keys = RandomCrcsKeys(random);
    program = RandomProgram(random);
  }
  sim::DeviceSpec With(const std::string& parts, const std::string& more = "") const {
    sim::DeviceSpec made = device;
    const std::string text =
        "proposed: [" + parts + "]\nhardware: {crcs: {" + keys + more + "}, hazards: {first: count}}";
    const auto applied = sim::ApplyDeviceText(text, "test", made);
    INFO((applied.ok() ? "" : applied.error().message));
    REQUIRE(applied.ok());
    return made;
  }
};

std::uint64_t Hazards(const ProgramRun& run) {
  return run.Count("raw_hazards") + run.Count("war_hazards") + run.Count("waw_hazards") + run.Count("l2_hazards");
}

void CheckEnds(const ProgramRun& run) {
  INFO((run.status.ok() ? "" : run.status.error().message));
  REQUIRE(run.status.ok());
  CHECK(run.Count("unreleased_pages") == 0);
  CHECK(run.Count("ended_uses") == run.Count("uses"));
}

void CheckSame(const ProgramRun& a, const ProgramRun& b) {
  REQUIRE(b.status.ok());
  REQUIRE(Difference(a.outcome, b.outcome) == "");
  for (const CounterInfo& counter : hardware::CountersOf(a.device)) {
    INFO(counter.name);
    REQUIRE(counter.value(a.outcome.counters) == counter.value(b.outcome.counters));
  }
}

/// When all that the work waits for has ended. A copy whose pages went ahead may have nothing left to do then: it ends
/// at once, and its memory of the host's has been free since its pages had gone.
Cycle TurnOf(WorkId work, const Program& program, const ProgramRun& run) {
  const auto order_of = [&](WorkId of) -> const WorkOrder& {
    return std::visit([](const auto& any) -> const WorkOrder& { return any.order; }, program.works[of]);
  };
  const WorkOrder& order = order_of(work);
  Cycle turn = order.submitted;
  for (WorkId before = 0; before < work; ++before) {
    if (order_of(before).stream == order.stream || std::ranges::count(order.after, before) != 0)
      turn = std::max(turn, run.outcome.works[before].ended);
  }
  return turn;
}

TEST_CASE("Crcs_RandomPrograms_End_InOrder_AndAllCountsReturnToZero") {
  const auto [first, last] = Seeds(1, 60);
  std::uint64_t early = 0, tracked = 0, refills = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Case made(seed);
    for (const char* const policy : {"crcs-fifo", "crcs-ppcs", "crcs-ready", "leftover"}) {
      INFO("seed " << seed << " " << policy);
      const ProgramRun run = RunProgram(made.With("crcs, hazards"), made.program, {.policy = policy});
      CheckEnds(run);
      CHECK(Hazards(run) == 0);
      CHECK(run.Count("stale_reads") == 0);
      for (const auto& [later, earlier] : made.program.refills) {
        const Cycle ended = run.outcome.works[earlier].ended;
        if (ended == TurnOf(earlier, made.program, run)) continue;
        CHECK(run.outcome.works[later].ended >= ended);
        ++refills;
      }
      CHECK(BrokenLaw(made.device, run.outcome) == "");
      early += run.Count("early_accesses");
      tracked += run.Count("tracked_kernels");
    }
  }
  CHECK((early > 1000 && tracked > 100 && refills > 100));
}

TEST_CASE("Crcs_RandomPrograms_AreBitEqualInPlainMode_InAnyWindowOnAnyThreads") {
  const auto [first, last] = Seeds(100, 115);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Case made(seed);
    const sim::DeviceSpec device = made.With("crcs, hazards");
    const char* const policy = seed % 3 == 0 ? "crcs-fifo" : seed % 3 == 1 ? "crcs-ppcs" : "crcs-ready";
    INFO("seed " << seed << " " << policy);
    const ProgramRun run = RunProgram(device, made.program, {.policy = policy});
    CheckSame(run, RunProgram(device, made.program, {.policy = policy, .plain = true}));
    CheckSame(run, RunProgram(device, made.program, {.policy = policy, .threads = 2}));
    CheckSame(run, RunProgram(device, made.program, {.policy = policy, .window = 1}));
    CheckSame(run, RunProgram(device, made.program, {.policy = policy, .threads = 4, .window = 7}));
  }
}

TEST_CASE("Crcs_WithoutItsScoreboard_TouchesMemoryOutOfOrder_AndTheCheckerSeesIt") {
  const auto [first, last] = Seeds(200, 239);
  std::uint64_t found = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("seed " << seed);
    const Case made(seed);
    const ProgramRun run =
        RunProgram(made.With("crcs, hazards", ", scoreboard: off"), made.program, {.policy = "crcs-fifo"});
    CheckEnds(run);
    found += Hazards(run) != 0;
  }
  CHECK(4 * found > last - first);
}

TEST_CASE("Hazards_ChangeNoCycle") {
  for (std::uint64_t seed = 300; seed < 310; ++seed) {
    INFO("seed " << seed);
    const Case made(seed);
    const ProgramRun with = RunProgram(made.With("crcs, hazards"), made.program, {.policy = "crcs-fifo"});
    const ProgramRun without = RunProgram(made.With("crcs"), made.program, {.policy = "crcs-fifo"});
    REQUIRE(Difference(with.outcome, without.outcome) == "");
  }
}

}  // namespace
}  // namespace gridloom::timing
