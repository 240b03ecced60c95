// Micro-benchmarks of throughput: issue rates, bandwidth, occupancy.
#include <catch2/catch.hpp>

#include "sim/timing/sm/occupancy.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

/// Instructions per cycle of an SM full of warps that execute independent instructions.
double IssueRate(const sim::DeviceSpec& device, const std::vector<OpClass>& ops) {
  CodeBuilder code("rate");
  code.Block();
  std::uint16_t next = 1;
  for (const OpClass op : ops) code.Op(op, {next++}, {});
  CtaBuilder cta;
  for (int w = 0; w < 8; ++w) {
    cta.Warp();
    cta.Visit(0, kAllLanes, 200);
  }
  sim::DeviceSpec one_sm = device;
  one_sm.sm.count = 1;
  const std::uint64_t ctas = std::min(device.sm.max_blocks, device.max_warps_per_sm() / 8);
  const Outcome outcome =
      RunLaunch(one_sm, SameCtas(code.code(),
                                 {.ctas = ctas, .threads_per_cta = 256, .registers_per_thread = 16, .shared_bytes = 0},
                                 cta.Finish()));
  return static_cast<double>(outcome.counters.sm.warp_instructions) / static_cast<double>(KernelCycles(outcome));
}

TEST_CASE("IssueRate_OfOneClass_IsUnitsOverInterval") {
  for (const std::string name : {"gtx480", "k20c", "v100", "h200"}) {
    const sim::DeviceSpec device = TestDevice(name);
    for (const OpClass op : {OpClass::kFp32, OpClass::kInt, OpClass::kFp64, OpClass::kSfu}) {
      INFO(name << ", class " << static_cast<int>(op));
      const sim::TimingSpec::Op& spec = device.timing.of(op);
      const double units = static_cast<double>(device.timing.units_of(spec.pipe)) / spec.interval;
      const double issue = device.timing.sm.schedulers * device.timing.sm.issue_width;
      const double expected = std::min(units, issue);
      const double rate = IssueRate(device, {op, op, op, op});
      CHECK(rate > 0.9 * expected);  // the last warps are too few to fill the units
      CHECK(rate <= 1.001 * expected);
    }
  }
}

TEST_CASE("IssueRate_OfPairs_ExceedsOnePerScheduler_OnlyWhereTheDeviceIssuesTwo") {
  const std::vector<OpClass> mixed = {OpClass::kFp32, OpClass::kInt, OpClass::kFp32, OpClass::kInt};
  CHECK(IssueRate(TestDevice("k20c"), mixed) > 5.5);
  CHECK(IssueRate(TestDevice("h200"), mixed) <= 4.001);
  sim::DeviceSpec single = TestDevice("k20c");
  single.timing.sm.issue_width = 1;
  CHECK(IssueRate(single, mixed) <= 4.001);
}

/// Cycles for each load of a full SM's warps, whose lanes read floats so far apart that L1 has.
double CyclesOfLoad(const sim::DeviceSpec& device, std::int32_t stride) {
  constexpr std::uint32_t kTurns = 200, kWarps = 16;
  CodeBuilder code("stride");
  code.Block();
  for (std::uint16_t i = 1; i <= 4; ++i) code.Load(Space::kGlobal, i, 4);
  const auto run = [&](std::uint32_t turns) {
    CtaBuilder cta;
    for (std::uint32_t w = 0; w < kWarps; ++w) {
      cta.Warp();
      cta.Visit(0, kAllLanes, turns);
      for (std::uint32_t i = 0; i < 4 * turns; ++i) cta.Access(1 << 20, stride);
    }
    sim::DeviceSpec one_sm = device;
    one_sm.sm.count = 1;
    const trace::LaunchShape shape{
        .ctas = 1, .threads_per_cta = 32 * kWarps, .registers_per_thread = 16, .shared_bytes = 0};
    return KernelCycles(RunLaunch(one_sm, SameCtas(code.code(), shape, cta.Finish())));
  };
  // The difference of two lengths: misses are in both.
  return static_cast<double>(run(kTurns) - run(kTurns / 2)) / (kWarps * 4 * kTurns / 2);
}

TEST_CASE("L1_LoadsOfStrides_TakeTagsOrPassesOverTheBanks") {
  // Floats apart, cycles: what gpu-benches measured on a GH200 is 1.01, 2.01, 1.63 and 8.0 for the first four.
  struct Stride {
    std::int32_t floats;
    double cycles, lines;
  };
  const Stride strides[] = {{1, 1, 1}, {2, 2, 2}, {3, 1, 3}, {8, 8, 8}, {0, 1, 1}, {32, 32, 32}, {33, 8, 32}};
  sim::DeviceSpec line_by_line = TestDevice("h200");
  line_by_line.timing.l1.tags = 1;
  for (const auto& [floats, cycles, lines] : strides) {
    INFO(floats << " floats apart");
    CHECK(CyclesOfLoad(TestDevice("h200"), 4 * floats) == Approx(cycles).epsilon(0.05));
    CHECK(CyclesOfLoad(line_by_line, 4 * floats) == Approx(lines).epsilon(0.05));
  }
}

/// c[i] = a[i] over `megabytes` each way with accesses of 16 bytes a lane; fraction of the DRAM bandwidth that is
/// reached.
double CopyEfficiency(const sim::DeviceSpec& device, std::uint64_t megabytes) {
  constexpr std::uint32_t kUnroll = 1;
  CodeBuilder code("copy");
  code.Block();
  for (std::uint16_t i = 1; i <= kUnroll; ++i) code.Load(Space::kGlobal, i, 16);
  for (std::uint16_t i = 1; i <= kUnroll; ++i) code.Store(Space::kGlobal, i, 16);
  CtaBuilder cta;
  constexpr std::uint64_t kCtaBytes = 8 * 512 * kUnroll;
  for (std::uint64_t w = 0; w < 8; ++w) {
    cta.Warp();
    cta.Visit(0);
    for (const std::uint64_t base : {std::uint64_t{1} << 30, std::uint64_t{1} << 32}) {
      for (std::uint64_t i = 0; i < kUnroll; ++i) cta.Access(base + (i * 8 + w) * 512, 16);
    }
  }
  const trace::LaunchShape shape{
      .ctas = (megabytes << 20) / kCtaBytes, .threads_per_cta = 256, .registers_per_thread = 24, .shared_bytes = 0};
  const Outcome outcome = RunLaunch(device, SameCtas(code.code(), shape, cta.Finish(), kCtaBytes));
  const double bytes =
      static_cast<double>(outcome.counters.memory.dram_read_bytes + outcome.counters.memory.dram_write_bytes);
  const double seconds = static_cast<double>(KernelCycles(outcome)) / (device.timing.clock.sm_mhz * 1e6);
  const double peak =
      1e6 * device.timing.dram.channels * device.timing.dram.bytes_per_cycle * device.timing.clock.dram_mhz;
  return bytes / seconds / peak;
}

TEST_CASE("Copy_Reaches85To95PercentOfDramPeak") {
  for (const std::string name : {"gtx480", "gtx680", "k20c", "titanx-maxwell", "v100"}) {
    INFO(name);
    const double efficiency = CopyEfficiency(TestDevice(name), 8);
    CHECK(efficiency >= 0.85);
    CHECK(efficiency <= 0.95);
  }
}

TEST_CASE("CtasPerSm_IsTheTightestLimit") {
  const sim::DeviceSpec v100 = TestDevice("v100");
  const auto fits = [](const sim::DeviceSpec& device, std::uint32_t threads, std::uint32_t registers,
                       std::uint32_t shared) {
    const auto needs = NeedsOf(
        {.ctas = 1, .threads_per_cta = threads, .registers_per_thread = registers, .shared_bytes = shared}, device);
    return needs.ok() ? CtasPerSm(*needs, device) : 0;
  };
  CHECK(fits(v100, 256, 32, 0) == 8);                         // warps
  CHECK(fits(v100, 32, 16, 0) == 32);                         // CTAs
  CHECK(fits(v100, 256, 64, 0) == 4);                         // registers
  CHECK(fits(v100, 256, 33, 0) == 6);                         // registers, rounded up to 40 a thread
  CHECK(fits(v100, 256, 32, 20000) == 4);                     // shared memory
  CHECK(fits(v100, 96, 80, 0) == 6);                          // three warps take the registers of four
  CHECK(fits(TestDevice("h200"), 256, 32, 100 * 1024) == 2);  // with the kilobyte that the system takes
  CHECK(fits(TestDevice("gtx480"), 64, 16, 0) == 8);
  CHECK(fits(v100, 1024, 128, 0) == 0);
}

TEST_CASE("Occupancy_MoreCtasThanFit_RunInWaves") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 1;
  CodeBuilder code("wave");
  code.Block();
  for (int i = 0; i < 250; ++i) code.Op(OpClass::kInt, {1}, {1});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0);
  const auto trace = cta.Finish();
  const auto cycles = [&](std::uint64_t ctas) {
    const trace::LaunchShape shape{
        .ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 90000};
    return KernelCycles(RunLaunch(device, SameCtas(code.code(), shape, trace)));
  };
  // One at a time: a CTA starts launch.cta_cycles after the one before has ended.
  CHECK(cycles(1) == 249 * 4);
  CHECK(cycles(2) == 2 * 249 * 4 + device.timing.launch.cta_cycles);
  CHECK(cycles(5) == 5 * 249 * 4 + 4 * device.timing.launch.cta_cycles);
}

TEST_CASE("Barrier_LetsAllGoItsLatencyAfterTheLast") {
  sim::DeviceSpec device = TestDevice("v100");
  CodeBuilder code("barrier");
  const std::uint32_t wait = code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  const std::uint32_t meet = code.Block();
  code.Barrier();
  code.Exit();
  CtaBuilder cta;
  for (const std::uint32_t delay : {10u, 50u}) {
    cta.Warp();
    cta.Visit(wait, kAllLanes, delay);
    cta.Visit(meet);
  }
  const trace::LaunchShape shape{.ctas = 1, .threads_per_cta = 64, .registers_per_thread = 16, .shared_bytes = 0};
  const Cycle cycles = KernelCycles(RunLaunch(device, SameCtas(code.code(), shape, cta.Finish())));
  // The slow warp issues its last add at 49 * 4 and the barrier in the next cycle.
  CHECK(cycles == 49 * 4 + 1 + device.timing.of(OpClass::kBarrier).latency);
}

TEST_CASE("Tensor_InstructionsTakeTheUnitAsLongAsTheirWorkSays") {
  const sim::DeviceSpec device = TestDevice("v100");
  const sim::TimingSpec::Op& file = device.timing.of(OpClass::kTensor);
  const auto cycles = [&](std::uint8_t units, bool depends) {
    CodeBuilder code("tensor");
    code.Block();
    for (int i = 0; i < 10; ++i)
      code.Op(OpClass::kTensor, {static_cast<std::uint16_t>(depends ? 1 : 1 + i)},
              {static_cast<std::uint16_t>(depends ? 1 : 20)});
    code.Exit();
    trace::KernelCode table = code.code();
    for (trace::Instruction& instruction : table.instructions) {
      if (instruction.op == OpClass::kTensor) instruction.width = units;
    }
    CtaBuilder cta;
    cta.Warp();
    cta.Visit(0);
    const trace::LaunchShape shape{.ctas = 1, .threads_per_cta = 32, .registers_per_thread = 32, .shared_bytes = 0};
    return KernelCycles(RunLaunch(device, SameCtas(table, shape, cta.Finish())));
  };
  // The exit follows the tenth product by a cycle.
  CHECK(cycles(0, false) == 9 * file.interval + 1);  // not known: the file's
  CHECK(cycles(4, false) == 9 * file.interval + 1);  // 2048 multiply-adds of halves
  CHECK(cycles(1, false) == 9 * (file.interval / 4) + 1);
  CHECK(cycles(128, false) == 9 * file.interval * 32 + 1);
  CHECK(cycles(4, true) == 9 * file.latency + 1);
  CHECK(cycles(1, true) == 9 * file.latency + 1);
  CHECK(cycles(8, true) == 9 * (file.latency + file.interval) + 1);
}

TEST_CASE("Barrier_LanesThatComeApart_AreOneArrival") {
  constexpr std::uint32_t kLow = 0xffff, kHigh = ~kLow;
  sim::DeviceSpec device = TestDevice("v100");
  CodeBuilder code("apart");
  const std::uint32_t wait = code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  const std::uint32_t meet = code.Block();
  code.Barrier();
  const std::uint32_t end = code.Block();
  code.Exit();
  const auto run = [&](auto&& path_of_first) {
    CtaBuilder cta;
    cta.Warp();
    path_of_first(cta);
    cta.Visit(end);
    cta.Warp();  // waits for the other one, twice
    cta.Visit(meet);
    cta.Visit(meet);
    cta.Visit(end);
    const trace::LaunchShape shape{.ctas = 1, .threads_per_cta = 64, .registers_per_thread = 16, .shared_bytes = 0};
    return KernelCycles(RunLaunch(device, SameCtas(code.code(), shape, cta.Finish())));
  };
  const Cycle latency = device.timing.of(OpClass::kBarrier).latency;
  // The upper lanes come 50 dependent additions after the lower ones, whose instruction is one cycle; behind the first
  // barrier all come at once.
  const Cycle apart = run([&](CtaBuilder& cta) {
    cta.Visit(meet, kLow);
    cta.Visit(wait, kHigh, 50);
    cta.Visit(meet, kHigh);
    cta.Visit(meet);
  });
  CHECK(apart == 1 + 49 * 4 + 1 + 2 * latency);
  // Lanes that end are not waited for: those that came first go on.
  const Cycle ended = run([&](CtaBuilder& cta) {
    cta.Visit(meet, kLow);
    cta.Visit(wait, kHigh, 50);
    cta.Visit(meet, kLow);
  });
  CHECK(ended == 1 + 49 * 4 + 2 * latency);
}

TEST_CASE("Barrier_WarpsThatHaveEnded_AreNotWaitedFor") {
  CodeBuilder code("leave");
  const std::uint32_t leave = code.Block();
  code.Exit();
  const std::uint32_t meet = code.Block();
  code.Barrier();
  code.Exit();
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(leave);
  for (int w = 0; w < 2; ++w) {
    cta.Warp();
    cta.Visit(meet);
  }
  const trace::LaunchShape shape{.ctas = 4, .threads_per_cta = 96, .registers_per_thread = 16, .shared_bytes = 0};
  const Outcome outcome = RunLaunch(TestDevice("v100"), SameCtas(code.code(), shape, cta.Finish()));
  CHECK(outcome.works[0].warp_instructions == 4 * 5);
}

TEST_CASE("Divergence_BlocksOfHalfAWarp_TakeTwiceTheInstructions") {
  CodeBuilder code("diverge");
  code.Block();
  for (int i = 0; i < 100; ++i) code.Op(OpClass::kInt, {1}, {1});
  const auto run = [&](const std::vector<std::uint32_t>& masks) {
    CtaBuilder cta;
    cta.Warp();
    for (const std::uint32_t mask : masks) cta.Visit(0, mask);
    const trace::LaunchShape shape{.ctas = 1, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0};
    return RunLaunch(TestDevice("v100"), SameCtas(code.code(), shape, cta.Finish()));
  };
  const Outcome together = run({kAllLanes}), apart = run({0xffffu, 0xffff0000u});
  CHECK(apart.works[0].warp_instructions == 2 * together.works[0].warp_instructions);
  CHECK(apart.works[0].thread_instructions == together.works[0].thread_instructions);
  CHECK(KernelCycles(apart) == KernelCycles(together) + 100 * 4);
}

}  // namespace
}  // namespace gridloom::timing
