// Streams, hardware queues, concurrent kernels, copies, launch overhead.
#include <catch2/catch.hpp>

#include "scheduler/policy/builtin.h"
#include "tests/growth.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

/// CTAs of one warp that add up for 4 * `adds` cycles on a V100.
std::shared_ptr<trace::CtaSource> Adds(std::uint64_t ctas, std::uint32_t adds, std::uint32_t shared_bytes = 0) {
  CodeBuilder code("adds");
  code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0, kAllLanes, adds);
  return SameCtas(code.code(),
                  {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = shared_bytes},
                  cta.Finish());
}

bool Overlap(const WorkResult& a, const WorkResult& b) { return a.started < b.ended && b.started < a.ended; }

TEST_CASE("Launch_FirstCtaStarts_AfterTheLaunchAndTheCtaOverhead") {
  const sim::DeviceSpec device = TestDevice("v100");
  const Outcome outcome = RunLaunches(device, {Adds(1, 10), Adds(1, 10)});
  const sim::TimingSpec::Launch& launch = device.timing.launch;
  CHECK(outcome.works[0].started == launch.kernel_cycles + launch.cta_cycles);
  CHECK(outcome.works[1].started == outcome.works[0].ended + launch.dependent_cycles + launch.cta_cycles);
}

TEST_CASE("Launch_CtasStart_CtaIntervalApart_RoundRobin") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 2;
  device.timing.launch.cta_interval = 7;
  const Outcome outcome = RunLaunches(device, {Adds(4, 100)});
  CHECK(KernelCycles(outcome) == 3 * 7 + 99 * 4);
  CHECK(outcome.sms[0].ctas == 2);
  CHECK(outcome.sms[1].ctas == 2);
}

TEST_CASE("Streams_OneHardwareQueue_HoldsBackWhatStandsBehindAWaitingKernel") {
  // Stream 0: two kernels; stream 1: one. The second of stream 0 waits, and with one queue the kernel of stream 1
  // behind it, too.
  for (const bool hyper_q : {false, true}) {
    sim::DeviceSpec device = TestDevice("k20c");
    device.timing.launch.queues = hyper_q ? 32 : 1;
    const auto policy = policy::MakePolicy("leftover").value();
    auto engine = Engine::Create(device, *policy);
    REQUIRE(engine.ok());
    for (const std::uint32_t stream : {0u, 0u, 1u}) {
      WorkOrder order;
      order.stream = stream;
      REQUIRE((*engine)->Add(KernelWork{order, Adds(1, 500)}).ok());
    }
    REQUIRE((*engine)->Run().ok());
    const auto& works = (*engine)->results();
    CHECK_FALSE(Overlap(works[0], works[1]));
    CHECK(Overlap(works[0], works[2]) == hyper_q);
  }
}

/// Gives an engine works, which come a microsecond or so after each other in a stream each, and runs them.
template <typename Add>
void RunInStreamsOfTheirOwn(std::size_t works, const Add& add) {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.launch.queues = 4096;
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(device, *policy);
  REQUIRE(engine.ok());
  for (std::size_t i = 0; i < works; ++i)
    add(**engine, WorkOrder{.stream = static_cast<std::uint32_t>(i), .submitted = 1000 * i, .after = {}});
  REQUIRE((*engine)->Run().ok());
}

TEST_CASE("Streams_WorksThatWait_CostNothingMeanwhile") {
  SECTION("markers") {
    const auto add = [](Engine& engine, WorkOrder order) { REQUIRE(engine.Add(MarkerWork{std::move(order)}).ok()); };
    CHECK(testing::Growth(500, [&](std::size_t works) { RunInStreamsOfTheirOwn(works, add); }) < testing::kLinear);
  }
  SECTION("copies that wait for an engine") {
    const auto add = [](Engine& engine, WorkOrder order) {
      order.submitted = 0;
      REQUIRE(engine.Add(CopyWork{.order = std::move(order), .bytes = 100'000}).ok());
    };
    CHECK(testing::Growth(500, [&](std::size_t works) { RunInStreamsOfTheirOwn(works, add); }) < testing::kLinear);
  }
  SECTION("kernels behind markers") {
    const auto add = [source = Adds(1, 1)](Engine& engine, WorkOrder order) {
      WorkOrder kernel = order;
      kernel.submitted = 0;
      REQUIRE(engine.Add(MarkerWork{std::move(order)}).ok());
      REQUIRE(engine.Add(KernelWork{std::move(kernel), source}).ok());
    };
    CHECK(testing::Growth(250, [&](std::size_t works) { RunInStreamsOfTheirOwn(works, add); }) < testing::kLinear);
  }
}

constexpr std::uint64_t kCopied = 1 << 20, kCopiedAt = (1 << 30) + 640;

/// A kernel that reads every line of what a copy has brought before, of a process that is not alone, too, and stores
/// beside it, so that lines are dirty when the copy comes again.
Outcome ReadCopied(const sim::DeviceSpec& device, CopyDirection direction, const RunOptions& options,
                   std::uint64_t bytes, std::uint32_t space = 0) {
  CodeBuilder code("reads");
  code.Block();
  code.Load(Space::kGlobal, 1, 16);
  code.Store(Space::kGlobal, 1, 16);
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0);
  cta.Access(kCopiedAt, 16);
  cta.Access(std::uint64_t{1} << 32, 16);
  const auto source = SameCtas(
      code.code(), {.ctas = kCopied / 512, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0},
      cta.Finish(), 512);
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine =
      Engine::Create(device, *policy, {.threads = options.threads, .plain = options.plain, .window = options.window});
  REQUIRE(engine.ok());
  for (int i = 0; i < 2; ++i) {
    CopyWork copy;
    copy.direction = direction;
    copy.bytes = bytes;
    copy.use = {.address_space = space, .address = kCopiedAt, .span = bytes};
    REQUIRE((*engine)->Add(std::move(copy)).ok());
    KernelWork kernel;
    kernel.source = source;
    kernel.address_space = space;
    REQUIRE((*engine)->Add(std::move(kernel)).ok());
  }
  REQUIRE((*engine)->Run().ok());
  Outcome outcome;
  outcome.works = (*engine)->results();
  outcome.counters = (*engine)->counters();
  return outcome;
}

TEST_CASE("Copies_WhatTheyWrite_IsInL2") {
  sim::DeviceSpec device = TestDevice("h200");
  device.sm.count = 4;
  const auto misses = [](const Outcome& outcome) { return outcome.counters.memory.l2_sector_misses; };
  for (const CopyDirection direction : {CopyDirection::kToDevice, CopyDirection::kFill, CopyDirection::kOnDevice}) {
    for (const std::uint32_t space : {0, 3}) {
      const Outcome outcome = ReadCopied(device, direction, {}, kCopied, space);
      CHECK(misses(outcome) == 0);
      CHECK(outcome.works[1].ended - outcome.works[1].started < outcome.works[3].ended);
    }
  }
  CHECK(misses(ReadCopied(device, CopyDirection::kToHost, {}, kCopied)) == kCopied / 32);
  CHECK(misses(ReadCopied(device, CopyDirection::kToDevice, {}, kCopied - 4096)) == 4096 / 32);
  device.timing.l2.holds_copies = false;
  CHECK(misses(ReadCopied(device, CopyDirection::kToDevice, {}, kCopied)) == kCopied / 32);
}

TEST_CASE("Copies_MoreThanL2Holds_LeaveTheirEnd") {
  sim::DeviceSpec device = TestDevice("h200");
  device.sm.count = 4;
  device.l2.size_bytes = 4 * 128 * 16 * 96 * 2;  // 768 KiB in each half
  const std::uint64_t held = device.l2.size_bytes / 2;
  const RunOptions options[] = {{}, {.threads = 3}, {.plain = true}, {.window = 7}};
  const Outcome first = ReadCopied(device, CopyDirection::kToDevice, {}, kCopied);
  CHECK(first.counters.memory.l2_sector_misses <= 2 * kCopied / 32);
  CHECK(first.counters.memory.l2_sector_misses + 2 * held / 32 >= 2 * kCopied / 32);
  CHECK(first.counters.memory.l2_write_backs > 0);
  for (const RunOptions& other : options)
    CHECK(Difference(first, ReadCopied(device, CopyDirection::kToDevice, other, kCopied)) == "");
  device.timing.l2.halves = 1;
  CHECK(ReadCopied(device, CopyDirection::kToDevice, {}, kCopied).counters.memory.l2_sector_misses <
        first.counters.memory.l2_sector_misses);
}

TEST_CASE("Policies_SerialAndLeftover_DifferInOverlap") {
  const sim::DeviceSpec device = TestDevice("v100");
  const std::vector<std::shared_ptr<trace::CtaSource>> launches = {Adds(10, 500), Adds(10, 500)};
  const Outcome serial = RunLaunches(device, launches, {.policy = "serial"}, 2),
                leftover = RunLaunches(device, launches, {}, 2);
  CHECK_FALSE(Overlap(serial.works[0], serial.works[1]));
  CHECK(Overlap(leftover.works[0], leftover.works[1]));
}

TEST_CASE("Leftover_LaterKernel_GetsWhatTheEarlierLeaves") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 1;
  // One CTA of the first fits at a time; as long as some of it have not started, nothing of the second does.
  const Outcome outcome = RunLaunches(device, {Adds(3, 500, 90000), Adds(1, 10, 1024)}, {}, 2);
  CHECK(outcome.works[1].started > outcome.works[0].started + 2 * 500 * 4);
  CHECK(outcome.works[1].ended < outcome.works[0].ended);
}

/// Two kernels side by side, `quota` blocks of the first on each SM; notes the most blocks that an SM had of each.
struct Quota final : policy::Policy {
  std::string_view name() const override { return "quota"; }
  std::optional<policy::Slice> Next(const policy::Snapshot& snapshot) override {
    for (const policy::KernelView& kernel : snapshot.kernels) {
      std::uint64_t sum = 0;
      for (const std::uint16_t count : kernel.resident) {
        most[kernel.id] = std::max<std::uint32_t>(most[kernel.id], count);
        sum += count;
      }
      agrees &= kernel.resident.size() == snapshot.sms.size() && sum == kernel.started - kernel.finished &&
                kernel.profile == 70 + kernel.id;
    }
    // Asked for a kernel of which nothing has room, the dispatcher asks no more: take turns.
    for (std::size_t i = 0; i < snapshot.kernels.size(); ++i) {
      const policy::KernelView& kernel = snapshot.kernels[turn++ % snapshot.kernels.size()];
      if (!kernel.all_started())
        return policy::Slice{.kernel = kernel.id, .ctas = 1, .max_per_sm = kernel.id == 0 ? quota : 0};
    }
    return std::nullopt;
  }
  std::uint32_t quota = 0, turn = 0, most[2] = {};
  bool agrees = true;
};

TEST_CASE("Slice_MaxPerSm_BoundsTheBlocksOfThatKernelOnAnSm") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 2;
  for (const std::uint32_t quota : {0u, 1u, 3u}) {
    Quota policy;
    policy.quota = quota;
    auto engine = Engine::Create(device, policy);
    REQUIRE(engine.ok());
    for (const std::uint32_t stream : {0u, 1u}) {
      WorkOrder order;
      order.stream = stream;
      REQUIRE((*engine)->Add(KernelWork{order, Adds(60, 200), 70 + stream}).ok());
    }
    REQUIRE((*engine)->Run().ok());
    CHECK(policy.agrees);
    CHECK(policy.most[0] == (quota == 0 ? policy.most[1] : quota));
    CHECK(policy.most[1] > 3);
    for (const WorkResult& work : (*engine)->results()) CHECK(work.done());
  }
}

TEST_CASE("ResidentKernels_AreLimited") {
  sim::DeviceSpec device = TestDevice("v100");
  device.grid.max_resident = 2;
  const Outcome outcome = RunLaunches(device, {Adds(1, 500), Adds(1, 500), Adds(1, 500)}, {}, 3);
  CHECK(Overlap(outcome.works[0], outcome.works[1]));
  CHECK(outcome.works[2].started >= std::min(outcome.works[0].ended, outcome.works[1].ended));
}

TEST_CASE("Copies_TakeTheirBytes_OneEngineADirection_AndKernelsWaitForThem") {
  const sim::DeviceSpec device = TestDevice("v100");
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(device, *policy);
  REQUIRE(engine.ok());
  const auto copy = [&](std::uint32_t stream, CopyDirection direction) {
    WorkOrder order;
    order.stream = stream;
    return *(*engine)->Add(CopyWork{order, direction, 1 << 20});
  };
  const WorkId in = copy(0, CopyDirection::kToDevice), in_too = copy(1, CopyDirection::kToDevice),
               out = copy(2, CopyDirection::kToHost);
  WorkOrder after;
  after.stream = 3;
  after.after = {in_too};
  const WorkId kernel = *(*engine)->Add(KernelWork{after, Adds(1, 10)});
  REQUIRE((*engine)->Run().ok());
  const auto& works = (*engine)->results();
  const sim::TimingSpec& timing = device.timing;
  const Cycle expected =
      (timing.pcie.latency_ns * timing.clock.sm_mhz + 999) / 1000 +
      ((1ull << 20) * timing.clock.sm_mhz + timing.pcie.to_device_mb_s - 1) / timing.pcie.to_device_mb_s;
  CHECK(works[in].ended - works[in].started == expected);
  CHECK(works[in_too].started == works[in].ended);
  CHECK(works[out].started == 0);
  CHECK(works[kernel].started == works[in_too].ended + timing.launch.dependent_cycles + timing.launch.cta_cycles);
}

/// Copies of nothing, of 7000 ns; an engine takes the next one to the device after 2000 ns, to the host after 3000; 500
/// ns more where a copy waits for another part of the device. Cycles are nanoseconds.
sim::DeviceSpec DeviceOfHandovers() {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.clock.sm_mhz = 1000;
  device.timing.pcie = {.to_device_mb_s = 1'000'000,
                        .to_host_mb_s = 1'000'000,
                        .latency_ns = 7000,
                        .engine_ns = 2000,
                        .to_host_engine_ns = 3000,
                        .handover_ns = 500};
  return device;
}

TEST_CASE("Copies_EachDirectionsEngine_TakesTheNextOneWhenTheDeviceFileSays") {
  for (const bool same : {false, true}) {
    sim::DeviceSpec device = DeviceOfHandovers();
    if (same) device.timing.pcie.to_host_engine_ns = 0;
    const auto policy = policy::MakePolicy("leftover").value();
    auto engine = Engine::Create(device, *policy);
    REQUIRE(engine.ok());
    for (const CopyDirection direction : {CopyDirection::kToDevice, CopyDirection::kToHost}) {
      for (const std::uint32_t stream : {0u, 1u}) {
        WorkOrder order;
        order.stream = 2 * static_cast<std::uint32_t>(direction) + stream;
        REQUIRE((*engine)->Add(CopyWork{order, direction, 0}).ok());
      }
    }
    REQUIRE((*engine)->Run().ok());
    const auto& works = (*engine)->results();
    CHECK(works[1].started - works[0].started == 2000);
    CHECK(works[3].started - works[2].started == (same ? 2000 : 3000));
    for (const WorkResult& work : works) CHECK(work.ended - work.started == 7000);
  }
}

TEST_CASE("Copies_ThatWaitForAnotherPartOfTheDevice_TakeAHandover") {
  const sim::DeviceSpec device = DeviceOfHandovers();
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(device, *policy);
  REQUIRE(engine.ok());
  const auto copy = [&](WorkOrder order, CopyDirection direction) {
    return *(*engine)->Add(CopyWork{std::move(order), direction, 0});
  };
  const auto order = [](std::uint32_t stream, std::vector<WorkId> after = {}, Cycle submitted = 0) {
    return WorkOrder{.stream = stream, .submitted = submitted, .after = std::move(after)};
  };
  // In one stream: nothing before it, the same engine before it, a kernel before it, the other engine before it.
  const WorkId in = copy(order(0), CopyDirection::kToDevice), in_too = copy(order(0), CopyDirection::kToDevice);
  const WorkId kernel = *(*engine)->Add(KernelWork{order(0), Adds(1, 10)});
  const WorkId out = copy(order(0), CopyDirection::kToHost), in_again = copy(order(0), CopyDirection::kToDevice);
  // Across streams, as nodes of graphs are; and given when the other work has long ended.
  const WorkId other = *(*engine)->Add(KernelWork{order(1), Adds(1, 10)});
  const WorkId behind = copy(order(2, {other}), CopyDirection::kToHost);
  const WorkId late = copy(order(3, {other}, 1'000'000), CopyDirection::kToHost);
  const WorkId marker = *(*engine)->Add(MarkerWork{order(4)});
  const WorkId marked = copy(order(5, {marker}), CopyDirection::kToHost);
  REQUIRE((*engine)->Run().ok());
  const auto& works = (*engine)->results();
  const auto takes = [&](WorkId id) { return works[id].ended - works[id].started; };
  CHECK(takes(in) == 7000);
  CHECK(takes(in_too) == 7000);
  CHECK(takes(out) == 7500);
  CHECK(works[out].started == works[kernel].ended);
  CHECK(takes(in_again) == 7500);
  CHECK(takes(behind) == 7500);
  CHECK(takes(late) == 7000);
  CHECK(takes(marked) == 7000);
}

TEST_CASE("Copies_ThatWaitForAnotherPartOfTheDevice_KeepTheirEngineAsMuchLonger") {
  const sim::DeviceSpec device = DeviceOfHandovers();
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(device, *policy);
  REQUIRE(engine.ok());
  const WorkId kernel = *(*engine)->Add(KernelWork{WorkOrder{.stream = 0, .submitted = 0, .after = {}}, Adds(1, 10)});
  for (const std::uint32_t stream : {1u, 2u})
    REQUIRE(
        (*engine)
            ->Add(CopyWork{WorkOrder{.stream = stream, .submitted = 0, .after = {kernel}}, CopyDirection::kToHost, 0})
            .ok());
  REQUIRE((*engine)->Run().ok());
  const auto& works = (*engine)->results();
  CHECK(works[1].started == works[kernel].ended);
  CHECK(works[2].started == works[1].started + 3500);
}

TEST_CASE("Add_WhatCanNeverRun_IsRefusedWithTheReason") {
  const sim::DeviceSpec device = TestDevice("gtx480");
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(device, *policy);
  REQUIRE(engine.ok());
  CHECK((*engine)->Add(KernelWork{{}, Adds(1, 1, 50000)}).error().message ==
        "kernel adds: a CTA takes 50048 bytes of shared memory; an SM of gtx480 has 49152");
  CodeBuilder code("matrix");
  code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  trace::KernelCode broken = code.code();
  broken.operands[0] = 9;
  CHECK((*engine)->Add(KernelWork{{}, SameCtas(broken, {.ctas = 1, .threads_per_cta = 32}, nullptr)}).error().message ==
        "kernel matrix, instruction 0: register 9 beyond register_count");
  WorkOrder order;
  order.after = {5};
  CHECK((*engine)->Add(KernelWork{order, Adds(1, 1)}).error().message ==
        "a work waits for work 5, which has not been given before it");
}

TEST_CASE("Run_SourceFails_StopsWithItsReason") {
  class Truncated final : public trace::CtaSource {
   public:
    const trace::KernelCode& code() const override { return inner_->code(); }
    const trace::LaunchShape& shape() const override { return inner_->shape(); }
    Result<trace::LoadedCta> Load(std::uint64_t index) override {
      if (index == 3) return Error{"trace ends at CTA 3"};
      return inner_->Load(index);
    }

   private:
    std::shared_ptr<trace::CtaSource> inner_ = Adds(5, 10);
  };
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(TestDevice("v100"), *policy);
  REQUIRE(engine.ok());
  REQUIRE((*engine)->Add(KernelWork{{}, std::make_shared<Truncated>()}).ok());
  CHECK((*engine)->Run().error().message == "trace ends at CTA 3");
}

}  // namespace
}  // namespace gridloom::timing
