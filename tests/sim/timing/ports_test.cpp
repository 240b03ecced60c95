// The ports of proposed hardware: who is asked, what answers do, and that neither short cuts, windows nor threads
// change anything.
#include <atomic>
#include <catch2/catch.hpp>
#include <map>

#include "scheduler/policy/builtin.h"
#include "tests/sim/timing/random_launch.h"
#include "tests/sim/timing/test_part.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

constexpr trace::LaunchShape OneWarp(std::uint64_t ctas) {
  return {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0};
}

/// CTAs of one warp that add up for 4 * `adds` cycles on a V100.
std::shared_ptr<trace::CtaSource> Adds(std::uint64_t ctas, std::uint32_t adds, const std::string& name = "adds") {
  CodeBuilder code(name);
  code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0, kAllLanes, adds);
  return SameCtas(code.code(), OneWarp(ctas), cta.Finish());
}

/// CTAs of one warp; CTA i loads line i * 4096.
std::shared_ptr<trace::CtaSource> Loads(std::uint64_t ctas) {
  CodeBuilder code("load");
  code.Block();
  code.Load(Space::kGlobal, 1);
  code.Op(OpClass::kControl, {}, {1});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0);
  cta.Access(0);
  return SameCtas(code.code(), OneWarp(ctas), cta.Finish(), 4096 * 128);
}

/// Random launches on a random device in up to three streams.
struct Case {
  sim::DeviceSpec device;
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  std::uint32_t streams = 1;

  explicit Case(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    device = RandomDevice(random);
    streams = static_cast<std::uint32_t>(1 + random() % 3);
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i) launches.push_back(RandomLaunch(random));
  }
  Outcome Run(const RunOptions& options) const { return RunLaunches(device, launches, options, streams); }
};

TEST_CASE("Ports_PartThatDoesNothing_AtAllOfThem_ChangesNoCycleAndNoCounter") {
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    INFO("seed " << seed);
    const Case made(seed);
    const Outcome without = made.Run({});
    const auto idle = [] { return Parts{std::make_shared<IdlePart>()}; };
    REQUIRE(Difference(without, made.Run({.parts = idle()})) == "");
    REQUIRE(Difference(without, made.Run({.plain = true, .parts = idle()})) == "");
    REQUIRE(Difference(without, made.Run({.threads = 2, .parts = idle()})) == "");
    REQUIRE(Difference(without, made.Run({.threads = 3, .window = 7, .parts = idle()})) == "");
  }
}

/// Counts what it is told; puts CTA 1 anywhere but on SM 0, and holds lines of the second mebibyte until cycle 20000.
class Watcher final : CtaEvents, CtaPlacer, LineGate, L2Replacement, DramEvents, TimedSource {
 public:
  void Attach(Ports& ports, DeviceInput& input) {
    input_ = &input;
    ports.cta_events.push_back(this);
    ports.placer = this;
    ports.line_gates.push_back(this);
    ports.l2 = this;
    ports.dram_events.push_back(this);
    ports.sources.push_back(this);
  }
  void OnKernelReady(Cycle, const KernelReady& kernel) override { fits = kernel.fits_per_sm; }
  void OnCtaStart(Cycle, const CtaPlace& place) override { sm_of[place.cta] = place.sm; }
  void OnCtaEnd(const CtaEnd& end) override { ++ends, instructions += end.resident_instructions; }
  void OnKernelEnd(Cycle at, std::uint32_t) override { end = at; }
  std::optional<Placement> Place(const PlacementQuery& query) override {
    const std::uint64_t cta = query.kernel.started;
    for (std::uint32_t sm = cta == 1 ? 1 : 0; sm < query.sms.size(); ++sm) {
      if (query.Allows(sm)) return Placement{.sm = sm, .cta = cta};
    }
    return std::nullopt;
  }
  Cycle MayAccess(Cycle now, const LineIssue& line) override {
    return line.line >= 8192 ? std::max<Cycle>(now, 20000) : now;
  }
  std::uint64_t Candidates(Cycle, const L2Access&, std::uint32_t) override { return 1; }
  void OnAccess(Cycle, const L2Access& access, L2Place place, bool hit) override {
    lines.push_back(access.line);
    way_zero = way_zero && place.way == 0;
    any_hit = any_hit || hit;
  }
  void OnEnqueue(Cycle, const DramRequest&) override { ++dram; }
  Cycle next() const override { return acted < 3 ? 5000 * (acted + 1) : kNever; }
  void Run(Cycle until) override {
    for (; next() < until; ++acted) input_->Recheck(next());
  }

  std::map<std::uint64_t, std::uint32_t> sm_of;
  std::uint32_t fits = 0;
  Cycle acted = 0, end = 0;
  std::uint64_t ends = 0, instructions = 0, dram = 0;
  std::vector<std::uint64_t> lines;
  bool way_zero = true, any_hit = false;

 private:
  DeviceInput* input_ = nullptr;
};

TEST_CASE("Ports_SeeWhatHappens_AndTheirAnswersCount") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 2;
  Watcher watcher;
  RunOptions options;
  options.parts = {Borrow(watcher)};
  const Outcome outcome = RunLaunch(device, Loads(3), options);
  CHECK(watcher.fits == 32);
  CHECK(watcher.sm_of == std::map<std::uint64_t, std::uint32_t>{{0, 0}, {1, 1}, {2, 0}});
  CHECK(watcher.ends == 3);
  // CTAs 0 and 2 are on one SM: when CTA 0 ends the other has issued its load.
  CHECK(watcher.instructions == 2 + 2 + 1 + 2);
  CHECK(watcher.dram == 3);
  CHECK(watcher.acted == 3);
  CHECK((watcher.way_zero && !watcher.any_hit));
  std::ranges::sort(watcher.lines);
  CHECK(watcher.lines == std::vector<std::uint64_t>{0, 4096, 8192});
  CHECK(watcher.end == outcome.works[0].ended);
  CHECK(outcome.works[0].ended >= 20000 + device.timing.dram.latency);
  CHECK(outcome.works[0].ended <= 20000 + device.timing.dram.latency + 20);
}

std::uint64_t Mixed(std::uint64_t number) {
  number = (number ^ (number >> 31)) * 0x9e3779b97f4a7c15ull;
  return (number ^ (number >> 29)) * 0xbf58476d1ce4e5b9ull >> 20;
}

/// Pages open at times of their own: some are known in advance, others are announced shortly before. Between that, it
/// drops L1s, flushes lines of L2 and reads others. No access issues before its page has opened.
class RandomPages final : WarpGate, AccessEvents, TimedSource, CtaEvents {
 public:
  explicit RandomPages(std::uint64_t seed) : seed_(seed) {}
  void Attach(Ports& ports, DeviceInput& input) {
    input_ = &input;
    ports.warp_gates.push_back(this);
    ports.access_events.push_back(this);
    ports.sources.push_back(this);
    ports.cta_events.push_back(this);
  }
  void OnIssue(Cycle now, const GatedAccess& access) override {
    if (access.instruction.op->space != Space::kShared && MayIssue(now, access) > now) ++too_early;
  }
  std::atomic<std::uint64_t> too_early = 0;
  Cycle MayIssue(Cycle now, const GatedAccess& access) override {
    const std::uint64_t page = Mixed(seed_ + access.instruction.launch * 7 + access.cta % 5) % kPages;
    if (page % 3 == 0) return std::max(now, 2000 + 731 * page);
    return page < announced_ ? std::max(now, OpensAt(page)) : kNever;
  }
  Cycle next() const override { return at_ < 60 * kEvery ? at_ : kNever; }
  void Run(Cycle end) override {
    for (; next() < end; at_ += kEvery) Act(at_);
  }
  void OnCtaEnd(const CtaEnd& end) override {
    if (Mixed(seed_ + end.cta) % 4 == 0) input_->DropL1(end.sm, end.at + input_->parameters().window);
  }

 private:
  static constexpr std::uint64_t kPages = 23;
  static constexpr Cycle kEvery = 389;
  Cycle OpensAt(std::uint64_t page) const { return 2 * (page + 1) * kEvery + input_->parameters().window; }
  void Act(Cycle now) {
    const std::uint64_t turn = now / kEvery;
    if (turn % 2 == 0 && turn != 0) {
      announced_ = turn / 2;
      for (std::uint32_t sm = 0; sm < input_->parameters().device.sm.count; ++sm)
        input_->AskGates(sm, OpensAt(announced_ - 1));
    }
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::uint64_t chance = Mixed(seed_ * 3 + turn * 64 + i);
      input_->Send(now + chance % 50, {.line = chance / 64 % 4096, .kind = kKinds[chance % 4]});
    }
  }
  static constexpr RequestKind kKinds[] = {RequestKind::kFlush, RequestKind::kFlush, RequestKind::kRead,
                                           RequestKind::kWrite};

  const std::uint64_t seed_;
  DeviceInput* input_ = nullptr;
  std::uint64_t announced_ = 0;  // pages below
  Cycle at_ = 0;
};

TEST_CASE("Ports_GatesFlushesAndDroppedCaches_AreBitEqualInPlainMode_InAnyWindowOnAnyThreads") {
  std::uint64_t held = 0;
  for (std::uint64_t seed = 100; seed < 116; ++seed) {
    INFO("seed " << seed);
    const Case made(seed);
    const auto run = [&](RunOptions options) {
      RandomPages pages(seed);
      options.parts = {Borrow(pages), std::make_shared<IdlePart>()};
      Outcome outcome = made.Run(options);
      CHECK(pages.too_early == 0);
      return outcome;
    };
    const Outcome fast = run({});
    held += fast.counters.sm.stall_gate[0];
    CHECK(fast.counters.sm.stall_gate[1] == 0);
    REQUIRE(Difference(fast, run({.plain = true})) == "");
    REQUIRE(Difference(fast, run({.threads = 2})) == "");
    REQUIRE(Difference(fast, run({.window = 1})) == "");
    REQUIRE(Difference(fast, run({.threads = 3, .window = 7})) == "");
    REQUIRE(Difference(fast, run({.step = 1001})) == "");
  }
  CHECK(held > 1000);
}

/// Kernels need not wait for kernels, from `cycle` on.
struct Together final : StartRule {
  explicit Together(Cycle from) : cycle(from) {}
  void Attach(Ports& ports, DeviceInput&) { ports.start_rules.push_back(this); }
  Cycle MayStart(Cycle, const WorkView& work, const WorkView& before) override {
    return work.kind == WorkKind::kKernel && before.kind == WorkKind::kKernel ? cycle : kNever;
  }
  Cycle cycle;
};

TEST_CASE("StartRule_LetsAKernelBegin_BeforeTheOneBeforeItInItsStreamHasEnded") {
  const sim::DeviceSpec device = TestDevice("v100");
  const auto run = [&](Parts parts) {
    return RunLaunches(device, {Adds(2, 9000), Adds(2, 9000)}, {.parts = std::move(parts)});
  };
  const Outcome without = run({});
  CHECK(without.works[1].started > without.works[0].ended);
  Together at_once(0), later(20000);
  const Outcome together = run({Borrow(at_once)});
  CHECK(together.works[1].started < without.works[0].started + 100);
  CHECK(run({Borrow(later)}).works[1].started == 20000 + device.timing.launch.cta_cycles);
  // Several rules: the one that lets it begin first counts.
  CHECK(Difference(together, run({Borrow(later), Borrow(at_once)})) == "");
}

/// Copies to the device arrive 1000 cycles after they could start, whatever their size.
struct ShortPath final : CopyPath {
  void Attach(Ports& ports, DeviceInput& device) {
    ports.copy_paths.push_back(this);
    input = &device;
  }
  bool Takes(Cycle now, const WorkView& copy) override {
    if (copy.kind != WorkKind::kCopyToDevice) return false;
    input->EndCopy(copy.id, now + 1000);
    return true;
  }
  DeviceInput* input = nullptr;
};

TEST_CASE("CopyPath_TakesCopies_AndSaysWhenTheyEnd") {
  const sim::DeviceSpec device = TestDevice("v100");
  ShortPath path;
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(device, *policy, {.parts = {Borrow(path)}});
  REQUIRE(engine.ok());
  REQUIRE(
      (*engine)->Add(CopyWork{{.stream = 0, .submitted = 0, .after = {}}, CopyDirection::kToDevice, 1u << 30}).ok());
  REQUIRE(
      (*engine)->Add(CopyWork{{.stream = 1, .submitted = 0, .after = {}}, CopyDirection::kToDevice, 1u << 30}).ok());
  REQUIRE((*engine)->Add(CopyWork{{.stream = 0, .submitted = 0, .after = {}}, CopyDirection::kToHost, 1u << 20}).ok());
  REQUIRE((*engine)->Run().ok());
  const auto works = (*engine)->results();
  CHECK(works[0].ended == 1000);
  CHECK(works[1].ended == 1000);
  CHECK(works[2].started == 1000);
  CHECK(works[2].ended > 2000);
}

/// An SM holds at most so many CTAs of the first launch.
struct Limit final : CtaLimit {
  void Attach(Ports& ports, DeviceInput&) { ports.cta_limits.push_back(this); }
  bool MayHold(Cycle, std::uint32_t launch, std::uint32_t, std::uint32_t resident) override {
    return launch != 0 || resident < 1;
  }
};

TEST_CASE("CtaLimit_HoldsBackAKernel_AndLeavesItsRoomToTheNext") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 2;
  const std::vector<std::shared_ptr<trace::CtaSource>> launches = {Adds(200, 500), Adds(4, 500)};
  const Outcome without = RunLaunches(device, launches, {}, 2);
  CHECK(without.works[1].started > without.works[0].started + 3000);
  Limit limit;
  const Outcome limited = RunLaunches(device, launches, {.parts = {Borrow(limit)}}, 2);
  CHECK(limited.works[1].started < limited.works[0].started + 100);
  CHECK(limited.works[0].ended - limited.works[0].started >= 100 * 4 * 499);
}

/// Slices that name multiprocessors.
class OnlyOdd final : public policy::Policy {
 public:
  std::string_view name() const override { return "only-odd"; }
  std::optional<policy::Slice> Next(const policy::Snapshot& snapshot) override {
    for (const policy::KernelView& kernel : snapshot.kernels) {
      if (!kernel.all_started())
        return policy::Slice{.kernel = kernel.id, .ctas = kernel.ctas, .max_per_sm = 0, .sms = odd_};
    }
    return std::nullopt;
  }

 private:
  std::vector<std::uint32_t> odd_ = {1, 3};
};

TEST_CASE("Slice_ThatNamesMultiprocessors_StartsOnThemOnly") {
  sim::DeviceSpec device = TestDevice("v100");
  device.sm.count = 5;
  OnlyOdd policy;
  auto engine = Engine::Create(device, policy);
  REQUIRE(engine.ok());
  REQUIRE((*engine)->Add(KernelWork{{}, Adds(9, 100)}).ok());
  REQUIRE((*engine)->Run().ok());
  for (std::size_t sm = 0; sm < 5; ++sm) CHECK((*engine)->sm_counters(sm).ctas == (sm == 1 ? 5u : sm == 3 ? 4u : 0u));
}

/// CTAs of one warp; each visits its block `adds` times and has an event at each visit of `visits`.
std::shared_ptr<trace::CtaSource> WithEvents(std::uint64_t ctas, std::uint32_t adds,
                                             const std::vector<std::uint32_t>& visits) {
  CodeBuilder code("launches");
  code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  code.Op(OpClass::kInt, {1}, {1});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0, kAllLanes, adds);
  trace::CtaTrace made = *cta.Finish();
  for (const std::uint32_t visit : visits) {
    made.events.push_back({.kind = trace::EventKind::kDeviceLaunch,
                           .visit = visit,
                           .instruction = 1,
                           .lanes = 1,
                           .data = {visit, 1, 32, 0}});
  }
  return SameCtas(code.code(), OneWarp(ctas), std::make_shared<const trace::CtaTrace>(std::move(made)));
}

/// Launches a kernel for each event; those whose number is odd join the kernel that is there.
struct Launcher final : CtaEvents {
  void Attach(Ports& ports, DeviceInput& device) {
    ports.cta_events.push_back(this);
    input = &device;
  }
  void OnCtaEvent(const CtaSignal& signal) override {
    seen.emplace_back(signal.at, signal.event.data[0]);
    if (signal.event.data[0] % 2 == 1) {
      const Status joined = input->Extend(signal.place.launch, Adds(3, 20, "launches"));
      failures += joined.ok() ? 0 : 1;
      return;
    }
    const auto added =
        input->Add(KernelWork{{.stream = input->NewStream(), .submitted = signal.at, .after = {}}, Adds(2, 50)});
    if (added.ok()) children.push_back(*added);
  }
  std::vector<std::pair<Cycle, std::uint64_t>> seen;
  std::vector<WorkId> children;
  int failures = 0;
  DeviceInput* input = nullptr;
};

TEST_CASE("CtaEvents_ComeWhenTheirInstructionIsIssued_AndLaunchKernelsWhileTheirParentRuns") {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.device_launch.percent = 0;  // the test's own launches are no calls of the device runtime's
  Launcher launcher;
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(device, *policy, {.parts = {Borrow(launcher)}});
  REQUIRE(engine.ok());
  REQUIRE((*engine)->Add(KernelWork{{}, WithEvents(1, 4000, {0, 10, 10, 3998})}).ok());
  REQUIRE((*engine)->Run().ok());
  const auto works = (*engine)->results();
  // Instruction 1 of visit v is the (2 v + 1)th, and each waits four cycles for the one before it.
  const Cycle start = works[0].started;
  const std::vector<std::pair<Cycle, std::uint64_t>> expected = {
      {start + 4, 0}, {start + 4 * 21, 10}, {start + 4 * 21, 10}, {start + 4 * 7997, 3998}};
  CHECK(launcher.seen == expected);
  REQUIRE(launcher.children.size() == 4);
  const WorkResult& child = works[launcher.children[0]];
  CHECK(child.submitted == start + 4);
  CHECK(child.started == start + 4 + device.timing.launch.kernel_cycles + device.timing.launch.cta_cycles);
  CHECK(child.ended < works[0].ended);
}

TEST_CASE("Extend_AddsCtasToARunningKernel_OfItsOwnCodeAlone") {
  sim::DeviceSpec device = TestDevice("v100");
  Launcher launcher;
  const Outcome outcome = RunLaunch(device, WithEvents(2, 100, {1, 51}), {.parts = {Borrow(launcher)}});
  // The groups' code has another number of instructions.
  CHECK(launcher.failures == 4);
  CHECK(outcome.works[0].ctas == 2);

  struct Grower final : CtaEvents {
    void Attach(Ports& ports, DeviceInput& device) {
      ports.cta_events.push_back(this);
      input = &device;
    }
    void OnCtaEnd(const CtaEnd& end) override {
      if (grown < 2 && input->Extend(end.launch, Adds(3, 10)).ok()) ++grown;
    }
    void OnKernelEnd(Cycle, std::uint32_t launch) override { late = input->Extend(launch, Adds(1, 1)).ok(); }
    DeviceInput* input = nullptr;
    int grown = 0;
    bool late = true;
  } grower;
  const Outcome grown = RunLaunch(device, Adds(1, 10), {.parts = {Borrow(grower)}});
  CHECK(grower.grown == 2);
  CHECK(grown.works[0].ctas == 7);
  CHECK(grown.counters.sm.ctas == 7);
  CHECK(grown.counters.sm.warp_instructions == 70);
}

TEST_CASE("Ports_ForOnePart_RefuseASecondOne") {
  const auto policy = policy::MakePolicy("leftover").value();
  const auto engine = Engine::Create(TestDevice("v100"), *policy,
                                     {.parts = {std::make_shared<IdlePart>(), std::make_shared<IdlePart>()}});
  REQUIRE_FALSE(engine.ok());
  CHECK(engine.error().message == "two proposed parts place CTAs; only one can");
}

TEST_CASE("DeviceInput_Fail_EndsTheSimulationWithThePartsWords") {
  struct Failing final : CtaEvents {
    void Attach(Ports& ports, DeviceInput& device) {
      ports.cta_events.push_back(this);
      input = &device;
    }
    void OnCtaEnd(const CtaEnd&) override { input->Fail(Error{"no page table"}); }
    DeviceInput* input = nullptr;
  } failing;
  const auto policy = policy::MakePolicy("leftover").value();
  auto engine = Engine::Create(TestDevice("v100"), *policy, {.parts = {Borrow(failing)}});
  REQUIRE(engine.ok());
  REQUIRE((*engine)->Add(KernelWork{{}, Adds(1, 10)}).ok());
  CHECK((*engine)->Run().error().message == "no page table");
}

}  // namespace
}  // namespace gridloom::timing
