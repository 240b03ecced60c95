// Turns of loops that wait: those that are like the ones before are not simulated, and all cycles and counters are as
// if they were.
#include <algorithm>
#include <catch2/catch.hpp>

#include "scheduler/policy/builtin.h"
#include "sim/timing/sampler.h"
#include "tests/sim/timing/random_launch.h"
#include "tests/sim/timing/test_part.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

std::uint64_t Draw(std::mt19937_64& random, std::uint64_t low, std::uint64_t high) {
  return low + random() % (high - low + 1);
}

/// How kernels wait: what one turn of the loop does.
enum class Poll : std::uint8_t { kVolatile, kAtomic, kSleeps, kCounts, kSpills, kMixed };

/// Instructions that each warp executes with the same addresses each time.
void AddTurn(CodeBuilder& code, Poll poll, std::mt19937_64& random) {
  const auto flag = [&] { return static_cast<unsigned>(random() % 2 == 0 ? trace::kVolatile : trace::kCacheGlobal); };
  switch (poll) {
    case Poll::kVolatile: code.Load(Space::kGlobal, 1, 4, trace::kVolatile); break;
    case Poll::kAtomic: code.Atomic(Space::kGlobal, 1); break;
    case Poll::kSleeps:
      code.Load(Space::kGlobal, 1, 4, trace::kVolatile);
      for (std::uint64_t i = Draw(random, 1, 30); i > 0; --i) code.Op(OpClass::kControl, {}, {});
      break;
    case Poll::kCounts:
      code.Load(Space::kGlobal, 1, 4, trace::kVolatile);
      code.Op(OpClass::kInt, {2}, {2});
      code.Store(Space::kGlobal, 2, 4, trace::kVolatile);
      break;
    case Poll::kSpills:
      code.Load(Space::kLocal, 2);
      code.Op(OpClass::kInt, {2}, {2});
      code.Store(Space::kLocal, 2);
      code.Load(Space::kGlobal, 1, 8, flag(), 2);
      break;
    case Poll::kMixed:
      for (std::uint64_t i = Draw(random, 2, 7); i > 0; --i) {
        switch (random() % 9) {
          case 0: code.Load(Space::kShared, 3); break;
          case 1: code.Load(Space::kConstant, 4); break;
          case 2: code.Op(OpClass::kFence, {}, {}); break;
          case 3: code.Store(Space::kGlobal, 2, 4, trace::kAtomic); break;  // a reduction
          case 4: code.Op(OpClass::kSfu, {5}, {3}); break;
          case 5: code.Load(Space::kGlobal, 6); break;
          case 6: code.Store(Space::kShared, 2); break;
          case 7: code.Load(Space::kParameter, 7); break;
          default: code.Op(OpClass::kIntMul, {2}, {2, 3, 4}); break;
        }
      }
      code.Load(Space::kGlobal, 1, 4, flag());
      break;
  }
  code.Op(OpClass::kInt, {8}, {1});
  code.Op(OpClass::kBranch, {}, {8});
}

/// Calls of CtaBuilder::Access for a block. Lines are few, so that warps and CTAs meet at some.
std::uint32_t AddAccesses(CtaBuilder& cta, const trace::KernelCode& code, std::uint32_t block, std::uint32_t mask,
                          std::uint64_t place) {
  std::uint32_t accesses = 0;
  const trace::BasicBlock& of = code.blocks[block];
  for (std::uint32_t i = of.first; i < of.first + of.count; ++i) {
    const trace::Instruction& instruction = code.instructions[i];
    if (!instruction.has_access()) continue;
    ++accesses;
    const bool one = instruction.space == Space::kGlobal || instruction.space == Space::kConstant;
    cta.Access(((1 << 20) + (place * 7 + i) % 40 * 128) & ~std::uint64_t{127}, one ? 0 : instruction.width, mask);
  }
  return accesses;
}

struct Shape {
  std::uint32_t ctas = 1, warps = 1;
  std::uint64_t most_turns = 1000;
};

/// Warps begin, make turns, as many as each draws, meet, and end. In some CTAs one warp waits for all.
std::shared_ptr<trace::CtaSource> PollingLaunch(Poll poll, Shape shape, std::mt19937_64& random) {
  CodeBuilder code("polls");
  code.Block();
  code.Load(Space::kParameter, 3);
  code.Load(Space::kGlobal, 4);
  code.Op(OpClass::kInt, {2}, {3, 4});
  const std::uint32_t turn = code.Block();
  AddTurn(code, poll, random);
  const std::uint32_t rest = code.Block();
  AddTurn(code, Poll::kVolatile, random);
  const std::uint32_t last = code.Block();
  code.Barrier();
  code.Store(Space::kGlobal, 2);
  code.Exit();
  const trace::KernelCode made = code.code();
  const trace::LaunchShape launch{.ctas = shape.ctas, .threads_per_cta = 32 * shape.warps, .registers_per_thread = 16};
  const std::uint64_t seed = random();
  return std::make_shared<SyntheticSource>(made, launch, [=](std::uint64_t index) {
    std::mt19937_64 of(seed + index);
    const bool one_waits = of() % 3 == 0;
    CtaBuilder cta;
    for (std::uint32_t w = 0; w < shape.warps; ++w) {
      cta.Warp();
      cta.Visit(0);
      AddAccesses(cta, made, 0, kAllLanes, index);
      const std::uint64_t pieces = one_waits && w != 0 ? 0 : Draw(of, 1, 2);
      for (std::uint64_t piece = 0; piece < pieces; ++piece) {
        const std::uint32_t mask = of() % 2 == 0 ? kAllLanes : 1u << of() % 32;
        const bool two = of() % 4 == 0;
        cta.Visit(turn, mask);
        std::uint32_t accesses = AddAccesses(cta, made, turn, mask, index / 2 + w / 2);
        if (two) {
          cta.Visit(rest, mask);
          accesses += AddAccesses(cta, made, rest, mask, w);
        }
        cta.Repeat(two ? 2 : 1, accesses, Draw(of, 1, shape.most_turns));
      }
      cta.Visit(last);
      AddAccesses(cta, made, last, kAllLanes, index);
    }
    return trace::LoadedCta{cta.Finish(), {}};
  });
}

struct Case {
  sim::DeviceSpec device;
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
};

Outcome RunCase(const Case& made, RunOptions options = {}) {
  return RunLaunches(made.device, made.launches, options, static_cast<std::uint32_t>(made.launches.size()));
}

Shape RandomShape(std::mt19937_64& random, std::uint64_t most_turns) {
  constexpr Shape kShapes[] = {{1, 1}, {1, 2}, {1, 8}, {2, 1}, {3, 4}, {20, 1}, {5, 3}};
  Shape shape = kShapes[random() % std::size(kShapes)];
  shape.most_turns = std::max<std::uint64_t>(1, most_turns / shape.ctas / shape.warps);
  return shape;
}

constexpr Poll kPolls[] = {Poll::kVolatile, Poll::kAtomic, Poll::kSleeps, Poll::kCounts, Poll::kSpills, Poll::kMixed};

/// With a window that is soon in step with other clocks, as on most devices: else states come again after millions of
/// cycles only.
sim::DeviceSpec DeviceInStep(std::mt19937_64& random) {
  sim::DeviceSpec device = RandomDevice(random);
  const auto parameters = Derive(device);
  REQUIRE(parameters.ok());
  device.timing.launch.cta_cycles = static_cast<std::uint32_t>(std::bit_floor(parameters->window));
  return device;
}

Case RandomCase(std::uint64_t seed, std::uint64_t most_turns) {
  std::mt19937_64 random(seed);
  Case made{DeviceInStep(random), {}};
  for (std::uint64_t i = Draw(random, 1, 2); i > 0; --i)
    made.launches.push_back(
        PollingLaunch(kPolls[random() % std::size(kPolls)], RandomShape(random, most_turns), random));
  return made;
}

Cycle EndOf(const Outcome& outcome) { return std::ranges::max(outcome.works, {}, &WorkResult::ended).ended; }

TEST_CASE("Turns_OfRandomKernels_AreAsIfEachWasSimulated") {
  std::size_t passed = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed, 2000);
    const Outcome each = RunCase(made, {.each_turn = true});
    const Outcome outcome = RunCase(made);
    CHECK(each.passed == 0);
    CHECK(BrokenLaw(made.device, outcome) == "");
    REQUIRE(Difference(outcome, each) == "");
    passed += outcome.passed > EndOf(outcome) / 2 ? 1 : 0;
  }
  CHECK(passed > 10);
}

TEST_CASE("Turns_OnSeveralThreads_InShortWindowsAndSteps_AreAsIfEachWasSimulated") {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed, 600);
    const Outcome each = RunCase(made, {.each_turn = true});
    REQUIRE(Difference(RunCase(made, {.threads = 2}), each) == "");
    REQUIRE(Difference(RunCase(made, {.threads = 3, .window = 7}), each) == "");
    REQUIRE(Difference(RunCase(made, {.step = 10'001}), each) == "");
    REQUIRE(Difference(RunCase(made, {.threads = 2, .reports = true}), each) == "");
  }
}

TEST_CASE("Turns_AreThoseOfThePlainMode") {
  for (std::uint64_t seed = 200; seed < 208; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed, 100);
    REQUIRE(Difference(RunCase(made), RunCase(made, {.plain = true})) == "");
  }
}

TEST_CASE("Turns_BesideOtherKernels_AreAsIfEachWasSimulated") {
  std::size_t passed = 0;
  for (std::uint64_t seed = 300; seed < 320; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Case made = RandomCase(seed, 3000);
    made.launches.push_back(RandomLaunch(random));
    const Outcome each = RunCase(made, {.each_turn = true}), outcome = RunCase(made);
    REQUIRE(Difference(outcome, each) == "");
    passed += outcome.passed != 0 ? 1 : 0;
  }
  CHECK(passed > 10);
}

/// A warp that polls for a second of simulated time.
TEST_CASE("Turns_OfALongWait_AreNotSimulated_AndAllCounted") {
  constexpr std::uint64_t kTurns = 4'000'000;
  CodeBuilder code("gate");
  const std::uint32_t turn = code.Block();
  code.Load(Space::kGlobal, 1, 4, trace::kVolatile);
  code.Op(OpClass::kInt, {2}, {1});
  code.Op(OpClass::kBranch, {}, {2});
  CtaBuilder builder;
  builder.Warp();
  builder.Visit(turn, 1);
  builder.Access(1 << 20, 0, 1);
  builder.Repeat(1, 1, kTurns - 1);
  const std::shared_ptr<const trace::CtaTrace> cta = builder.Finish();
  const trace::LaunchShape shape{.ctas = 1, .threads_per_cta = 32, .registers_per_thread = 16};
  for (const char* const name : {"h200", "k20c", "crcs"}) {
    INFO(name);
    const sim::DeviceSpec device = TestDevice(name);
    const Outcome outcome = RunLaunch(device, SameCtas(code.code(), shape, cta));
    CHECK(outcome.works[0].warp_instructions == 3 * kTurns);
    CHECK(outcome.works[0].thread_instructions == 3 * kTurns);
    CHECK(outcome.counters.sm.read_requests == kTurns);
    CHECK(outcome.counters.memory.l2_reads == kTurns);
    CHECK(outcome.counters.memory.dram_reads == 1);
    CHECK(outcome.passed > KernelCycles(outcome) / 100 * 99);
    CHECK(BrokenLaw(device, outcome) == "");
  }
}

/// What comes from outside while warps wait finds the device as if each turn had been simulated.
TEST_CASE("Turns_WhileWorksComeAndAreCancelled_AreAsIfEachWasSimulated") {
  const auto run = [](std::uint64_t seed, bool each_turn) {
    std::mt19937_64 random(seed);
    const sim::DeviceSpec device = DeviceInStep(random);
    const auto policy = policy::MakePolicy("leftover").value();
    auto engine = Engine::Create(device, *policy, {.each_turn = each_turn});
    REQUIRE(engine.ok());
    const auto add = [&](std::uint32_t stream, Cycle at, std::shared_ptr<trace::CtaSource> launch) {
      const auto added =
          (*engine)->Add(KernelWork{{.stream = stream, .submitted = at, .after = {}}, std::move(launch)});
      REQUIRE(added.ok());
      return *added;
    };
    const WorkId first = add(
        0, 0, PollingLaunch(kPolls[random() % std::size(kPolls)], {.ctas = 2, .warps = 2, .most_turns = 3000}, random));
    add(1, Draw(random, 0, 50'000),
        PollingLaunch(Poll::kVolatile, {.ctas = 1, .warps = 1, .most_turns = 2000}, random));
    for (std::uint32_t stream = 2; stream < 5; ++stream) {
      const WorkOrder order{.stream = stream, .submitted = Draw(random, 0, 200'000), .after = {}};
      REQUIRE(
          (*engine)
              ->Add(CopyWork{.order = order, .direction = CopyDirection::kToHost, .bytes = Draw(random, 1, 100'000)})
              .ok());
      add(stream, 0, RandomLaunch(random));
    }
    REQUIRE((*engine)->RunUntil(Draw(random, 10'000, 100'000), {}).ok());
    if (random() % 2 == 0) (*engine)->Cancel(first);
    const Cycle later = Draw(random, 100'000, 300'000);
    add(5, later, RandomLaunch(random));
    REQUIRE((*engine)->RunUntil(later, {}).ok());
    const Counters meanwhile = (*engine)->counters_now();
    REQUIRE((*engine)->Run().ok());
    return std::tuple(Outcome{(*engine)->results(), (*engine)->counters(), {}, {}, (*engine)->passed()}, meanwhile);
  };
  std::size_t passed = 0;
  for (std::uint64_t seed = 400; seed < 420; ++seed) {
    INFO("seed " << seed);
    const auto [each, each_meanwhile] = run(seed, true);
    const auto [outcome, meanwhile] = run(seed, false);
    REQUIRE(Difference(outcome, each) == "");
    REQUIRE(meanwhile == each_meanwhile);
    passed += outcome.passed != 0 ? 1 : 0;
  }
  CHECK(passed > 8);
}

/// Memory instructions pass from a cycle on that depends on where they go, some of them late.
class OpensOnce final : public WarpGate {
 public:
  OpensOnce(Cycle latest, bool says_so) : latest_(latest), says_so_(says_so) {}
  void Attach(Ports& ports, DeviceInput&) { ports.warp_gates.push_back(this); }
  Cycle MayIssue(Cycle now, const GatedAccess& access) override {
    return std::max(now, access.instruction.access.base / 128 * 7919 % latest_);
  }
  bool stays_open() const override { return says_so_; }

 private:
  const Cycle latest_;
  const bool says_so_;
};

TEST_CASE("Turns_BehindGatesThatStayOpen_AreAsIfEachWasSimulated") {
  std::size_t passed = 0;
  for (std::uint64_t seed = 600; seed < 616; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed, 2000);
    OpensOnce says_so(60'000, true), says_nothing(60'000, false);
    const Outcome outcome = RunCase(made, {.parts = {Borrow(says_so)}});
    const Outcome each = RunCase(made, {.parts = {Borrow(says_nothing)}});
    CHECK(each.passed == 0);
    REQUIRE(each.counters.sm.stall_gate[0] != 0);
    REQUIRE(Difference(outcome, each) == "");
    passed += outcome.passed != 0 ? 1 : 0;
  }
  CHECK(passed > 5);
}

TEST_CASE("Turns_UnderASampler_GiveTheSameSamples") {
  Cycle passed = 0;
  for (std::uint64_t seed = 500; seed < 506; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed, 2000);
    const auto run = [&](Sampler& sampler, bool each_turn) {
      const auto policy = policy::MakePolicy("leftover").value();
      auto engine = Engine::Create(made.device, *policy, {.each_turn = each_turn, .observer = &sampler});
      REQUIRE(engine.ok());
      for (std::uint32_t i = 0; i < made.launches.size(); ++i)
        REQUIRE((*engine)->Add(KernelWork{{.stream = i, .submitted = 0, .after = {}}, made.launches[i]}).ok());
      REQUIRE((*engine)->Run().ok());
      sampler.Finish(**engine);
      return (*engine)->passed();
    };
    const SamplerOptions few{.max_samples = 8};  // so that the time between them grows
    Sampler sampler(few), each(few);
    CHECK(run(each, true) == 0);
    passed += run(sampler, false);
    REQUIRE(sampler.samples().size() == each.samples().size());
    for (std::size_t i = 0; i < sampler.samples().size(); ++i) {
      REQUIRE(sampler.samples()[i].at == each.samples()[i].at);
      REQUIRE(sampler.samples()[i].sums == each.samples()[i].sums);
    }
    CHECK(sampler.kernels() == each.kernels());
  }
  CHECK(passed > 100'000);
}

}  // namespace
}  // namespace gridloom::timing
