// Lowered kernels in the model under policies, with proposed parts, as tasks, and where they launch kernels: what
// refers to instructions of PTX stays where it is among accesses to memory, and no short cut or thread changes
// anything.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <string>

#include "scheduler/policy/builtin.h"
#include "sim/timing/sm/memory_instruction.h"
#include "tests/sim/hardware/with_parts.h"
#include "tests/sim/trace/captured.h"

namespace gridloom::timing {
namespace {

constexpr unsigned kThreads = 32, kCtas = 6, kTurns = 4;
constexpr std::uint64_t kBytes = std::uint64_t{kThreads} * kCtas * 4;  // of each array that is accessed

/// Turn by turn a store, a call that says that the CTA is done with some bytes, and a load that nothing but the call
/// keeps behind the store; beside copies, a division, a product that nobody reads and a sum of an address.
std::string StoresAndLoads(bool calls) {
  const std::string call = R"({
.param .b64 p0; .param .b64 p1; .param .b64 p2; .param .b32 p3;
st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd1; st.param.b64 [p2], %rd9; st.param.b32 [p3], 1;
call gridloom_release_range, (p0, p1, p2, p3);
}
)";
  return R"(.version 8.0
.target sm_50
.address_size 64
.extern .func gridloom_release_range(.param .u64 array, .param .u64 low, .param .u64 high, .param .u32 flags);
.visible .entry work(.param .u64 a, .param .u64 b, .param .u64 c)
{
.reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .pred %p<2>;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u64 %rd3, [c];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r4, %r2, %r3, %r1;
mul.wide.u32 %rd5, %r4, 4;
add.u64 %rd6, %rd1, %rd5;
add.u64 %rd7, %rd2, %rd5;
add.u64 %rd8, %rd3, %rd5;
add.u64 %rd9, %rd1, 128;
mov.u32 %r5, 0;
Loop:
mov.u32 %r6, %r5;
add.u32 %r7, %r6, %r4;
mul.lo.u32 %r10, %r7, 77;
div.u32 %r7, %r7, %r3;
st.global.u32 [%rd6], %r7;
)" + (calls ? call : "") +
         R"(add.u64 %rd10, %rd7, 512;
ld.global.nc.u32 %r8, [%rd10];
rem.u32 %r9, %r8, 7;
st.global.u32 [%rd8], %r9;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p1, %r5, )" +
         std::to_string(kTurns) + ";\n@%p1 bra Loop;\nret;\n}\n";
}

/// The launch, and where its arrays are.
struct Ran {
  test::Captured captured;
  std::uint64_t a = 0, b = 0;
};

Ran RunKernel(bool calls) {
  test::Executor executor;
  const std::vector<std::uint32_t> words(std::size_t{kThreads} * kCtas + 256, 5);
  Ran ran{.captured = {}, .a = executor.Upload(words), .b = executor.Upload(words)};
  const std::uint64_t c = executor.Upload(words);
  test::ParamBlock block;
  block.Add(ran.a).Add(ran.b).Add(c);
  exec::LaunchParams launch;
  launch.grid = {kCtas, 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.params = block.bytes();
  ran.captured = test::Run(executor, StoresAndLoads(calls), "work", launch);
  std::vector<std::uint32_t> out(words.size());
  executor.Download(c, out);
  CHECK(out[0] == 5);
  for (const std::uint64_t buffer : {ran.a, ran.b, c}) executor.Free(buffer);
  return ran;
}

/// One of the launch's CTAs again and again, or all of them.
std::shared_ptr<trace::CtaSource> SourceOf(const Ran& ran, std::uint64_t ctas = kCtas) {
  const trace::LaunchShape shape{.ctas = ctas, .threads_per_cta = kThreads, .registers_per_thread = 32};
  return std::make_shared<SyntheticSource>(ran.captured.table.code, shape, [&ran](std::uint64_t cta) {
    return trace::LoadedCta{std::make_shared<const trace::CtaTrace>(ran.captured.ctas.at(cta)), {}};
  });
}

sim::DeviceSpec Lowered(const std::string& name, sim::Lowering lowering = sim::Lowering::kFull) {
  sim::DeviceSpec device = TestDevice(name);
  device.timing.lowering = lowering;
  device.sm.count = 2;
  return device;
}

/// Remembers when each CTA stored to a, loaded from b, and had an event.
class Recorder final : public Part, public AccessEvents, public CtaEvents {
 public:
  explicit Recorder(const Ran& ran) : ran_(ran) {}
  void Attach(Ports& ports, DeviceInput&) override {
    ports.access_events.push_back(this);
    ports.cta_events.push_back(this);
  }
  void OnIssue(Cycle now, const GatedAccess& access) override {
    const MemoryInstruction& instruction = access.instruction;
    if (instruction.op->space != trace::Space::kGlobal) return;
    std::array<std::uint64_t, trace::kWarpSize> addresses{};
    trace::LaneAddresses(*instruction.cta, instruction.access, addresses);
    const std::uint64_t address = addresses[0] + instruction.shift, stored = address - ran_.a,
                        loaded = address - ran_.b - 512;
    const std::lock_guard lock(mutex_);
    if (stored < kBytes) of_[{instruction.launch, stored / (kThreads * 4)}].stores.push_back(now);
    if (loaded < kBytes) of_[{instruction.launch, loaded / (kThreads * 4)}].loads.push_back(now);
  }
  void OnCtaEvent(const CtaSignal& signal) override {
    const std::lock_guard lock(mutex_);
    std::vector<Cycle>& events = events_[{signal.place.launch, signal.place.cta}];
    if (events.empty() || events.back() != signal.at) events.push_back(signal.at);  // lanes that call together
  }

  struct Times {
    std::vector<Cycle> stores, loads;
  };
  const std::vector<Cycle>& EventsOf(std::uint32_t launch, std::uint64_t cta) { return events_[{launch, cta}]; }
  const Times& TimesOf(std::uint32_t launch, std::uint64_t cta) { return of_[{launch, cta}]; }

 private:
  const Ran& ran_;
  std::mutex mutex_;
  // By launch and CTA.
  std::map<std::pair<std::uint32_t, std::uint64_t>, Times> of_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Cycle>> events_;
};

/// Store, event, load, in each turn.
void CheckOrder(Recorder& recorder, std::uint32_t launch, std::uint64_t ctas, bool events = true) {
  for (std::uint64_t cta = 0; cta < ctas; ++cta) {
    const Recorder::Times& times = recorder.TimesOf(launch, cta);
    const std::vector<Cycle>& at = recorder.EventsOf(launch, cta);
    REQUIRE(times.stores.size() == kTurns);
    REQUIRE(times.loads.size() == kTurns);
    if (events) REQUIRE(at.size() == kTurns);
    for (unsigned turn = 0; turn < kTurns; ++turn) {
      CHECK(times.stores[turn] <= times.loads[turn]);
      if (turn > 0) CHECK(times.loads[turn - 1] <= times.stores[turn]);
      if (!events) continue;
      CHECK(times.stores[turn] <= at[turn]);
      CHECK(at[turn] <= times.loads[turn]);
    }
  }
}

TEST_CASE("Lowered_ReleasedRanges_StayBetweenTheAccessesBesideThem") {
  const Ran calls = RunKernel(true), without = RunKernel(false);
  for (const char* name : {"h200", "v100", "titanx-maxwell", "k20c"}) {
    INFO(name);
    const sim::DeviceSpec device = Lowered(name);
    const auto recorder = std::make_shared<Recorder>(calls);
    const Outcome outcome = RunLaunch(device, SourceOf(calls), {.parts = {recorder}});
    CheckOrder(*recorder, 0, kCtas);
    CHECK(Difference(outcome, RunLaunch(device, SourceOf(calls), {.plain = true})) == "");
    CHECK(Difference(outcome, RunLaunch(device, SourceOf(calls), {.threads = 3, .window = 7})) == "");
    // What the test is about is there: the load goes first where no call stands in its way.
    const auto other = std::make_shared<Recorder>(without);
    RunLaunch(device, SourceOf(without), {.parts = {other}});
    for (std::uint64_t cta = 0; cta < kCtas; ++cta)
      CHECK(other->TimesOf(0, cta).loads.at(0) < other->TimesOf(0, cta).stores.at(0));
  }
}

TEST_CASE("Lowered_LaunchesByKernels_StayBetweenTheAccessesBesideThem_AndBeginBehindTheirCalls") {
  Ran parent = RunKernel(true);
  std::uint64_t number = 0;
  for (auto& [cta, trace] : parent.captured.ctas) {
    for (trace::CtaEvent& event : trace.events) {
      event = {.kind = trace::EventKind::kDeviceLaunch,
               .flags = trace::kFireAndForget,
               .warp = event.warp,
               .visit = event.visit,
               .instruction = event.instruction,
               .lanes = 1,
               .data = {++number, 1, kThreads, 16}};
    }
  }
  const Ran child = RunKernel(false);
  for (const char* name : {"h200", "k20c"}) {
    INFO(name);
    const sim::DeviceSpec device = Lowered(name);
    const auto run = [&](EngineOptions options) {
      const auto policy = policy::MakePolicy("leftover").value();
      auto engine = Engine::Create(device, *policy, std::move(options));
      REQUIRE(engine.ok());
      REQUIRE((*engine)->Add(KernelWork{.order = {}, .source = SourceOf(parent)}).ok());
      for (std::uint64_t i = 1; i <= number; ++i) {
        REQUIRE((*engine)
                    ->Add(KernelWork{.order = {.stream = static_cast<std::uint32_t>(i), .after = {}},
                                     .source = SourceOf(child, 1),
                                     .launched_by = {.parent = 0, .number = i}})
                    .ok());
      }
      REQUIRE((*engine)->Run().ok());
      return std::pair((*engine)->results(), (*engine)->counters());
    };
    const auto recorder = std::make_shared<Recorder>(parent);
    EngineOptions recording, plain, threads;
    recording.parts = {recorder};
    plain.plain = true;
    threads.threads = 3;
    const auto [works, counters] = run(recording);
    CheckOrder(*recorder, 0, kCtas);
    CHECK(counters.launches.device_launches == number);
    for (std::size_t i = 1; i < works.size(); ++i) CHECK(works[i].started > works[i].submitted);
    for (const EngineOptions& other : {plain, threads}) {
      const auto [same, ignored] = run(other);
      for (std::size_t i = 0; i < works.size(); ++i)
        CHECK((same[i].started == works[i].started && same[i].ended == works[i].ended));
    }
  }
}

TEST_CASE("Lowered_Tasks_ExecuteWhatTheirKernelsDoAlone_InTheSameOrder") {
  const Ran ran = RunKernel(true);
  sim::DeviceSpec device = Lowered("titanx-maxwell");
  const std::vector<std::shared_ptr<trace::CtaSource>> launches(20, SourceOf(ran, 1));
  const Outcome alone = RunLaunches(device, launches, {}, 8);
  sim::DeviceSpec none = device;
  none.timing.lowering = sim::Lowering::kNone;
  CHECK(RunLaunches(none, launches, {}, 8).works[0].warp_instructions != alone.works[0].warp_instructions);
  REQUIRE(sim::ApplyDeviceText("proposed: pagoda", "test", device).ok());
  const auto recorder = std::make_shared<Recorder>(ran);
  const Outcome outcome = RunLaunches(device, launches, WithParts(device, {.parts = {recorder}}), 8);
  CHECK(Count(device, outcome, "pagoda_tasks") == launches.size());
  for (std::uint32_t i = 0; i < launches.size(); ++i) {
    CHECK(outcome.works[i].warp_instructions == alone.works[i].warp_instructions);
    CHECK(outcome.works[i].thread_instructions == alone.works[i].thread_instructions);
    CheckOrder(*recorder, i, 1, false);
  }
  const Outcome fast = RunLaunches(device, launches, WithParts(device), 8);
  CHECK(Difference(fast, RunLaunches(device, launches, WithParts(device, {.plain = true}), 8)) == "");
  CHECK(Difference(fast, RunLaunches(device, launches, WithParts(device, {.threads = 2, .window = 7}), 8)) == "");
}

TEST_CASE("Lowered_Policies_DecideBetweenTheSameKernels_InPlainModeAndOnThreads") {
  const Ran ran = RunKernel(true), other = RunKernel(false);
  const sim::DeviceSpec device = Lowered("h200");
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  for (int i = 0; i < 4; ++i) launches.push_back(SourceOf(i % 2 == 0 ? ran : other));
  const Outcome first = RunLaunches(device, launches, {}, 3);
  std::size_t tried = 0;
  for (const std::string_view name : policy::PolicyNames()) {
    if (!policy::MakePolicy(name).ok()) continue;  // needs profiles
    INFO(name);
    ++tried;
    const auto run = [&](RunOptions options) {
      options.policy = std::string(name);
      return RunLaunches(device, launches, options, 3);
    };
    const Outcome outcome = run({});
    for (std::size_t i = 0; i < launches.size(); ++i)
      CHECK(outcome.works[i].warp_instructions == first.works[i].warp_instructions);
    CHECK(BrokenLaw(device, outcome) == "");
    CHECK(Difference(outcome, run({.plain = true})) == "");
    CHECK(Difference(outcome, run({.threads = 3, .window = 11})) == "");
  }
  CHECK(tried >= 3);
}

TEST_CASE("Lowered_ProposedParts_SeeTheSameInPlainModeAndOnThreads") {
  const Ran ran = RunKernel(true), other = RunKernel(false);
  for (const char* parts : {"proposed: [crcs, hazards]\nhardware: {hazards: {first: count}}", "proposed: tagged-l2"}) {
    INFO(parts);
    sim::DeviceSpec device = Lowered("crcs");
    REQUIRE(sim::ApplyDeviceText(parts, "test", device).ok());
    const std::vector<std::shared_ptr<trace::CtaSource>> launches{SourceOf(ran), SourceOf(other), SourceOf(ran)};
    const Outcome outcome = RunLaunches(device, launches, WithParts(device), 1);
    for (const WorkResult& work : outcome.works) CHECK(work.done());
    CHECK(Difference(outcome, RunLaunches(device, launches, WithParts(device, {.plain = true}), 1)) == "");
    CHECK(Difference(outcome, RunLaunches(device, launches, WithParts(device, {.threads = 3}), 1)) == "");
    if (std::string(parts).find("hazards") == std::string::npos) continue;
    for (const char* hazard : {"raw_hazards", "war_hazards", "waw_hazards", "l2_hazards"})
      CHECK(Count(device, outcome, hazard) == 0);
  }
}

}  // namespace
}  // namespace gridloom::timing
