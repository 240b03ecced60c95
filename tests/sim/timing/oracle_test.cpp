// The short cuts of the model against its plain mode, and the promise that host threads and windows do not matter.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <span>

#include "scheduler/policy/builtin.h"
#include "tests/sim/timing/random_launch.h"
#include "tests/sim/trace/unrolled.h"

namespace gridloom::timing {
namespace {

struct Case {
  sim::DeviceSpec device;
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  std::uint32_t streams = 1;
  std::string policy;
};

Case RandomCase(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Case made{RandomDevice(random),
            {},
            static_cast<std::uint32_t>(1 + random() % 3),
            random() % 3 == 0 ? "serial" : "leftover"};
  for (std::uint64_t i = 1 + random() % 4; i > 0; --i) made.launches.push_back(RandomLaunch(random));
  if (seed % 2 == 0) made.device.timing.lowering = sim::Lowering::kFull;
  return made;
}

Outcome RunCase(const Case& made, RunOptions options) {
  options.policy = made.policy;
  return RunLaunches(made.device, made.launches, options, made.streams);
}

/// GRIDLOOM_TIMING_SEEDS=FIRST-LAST looks at other cases than the usual ones.
std::pair<std::uint64_t, std::uint64_t> Seeds() {
  const char* text = std::getenv("GRIDLOOM_TIMING_SEEDS");
  if (text == nullptr) return {1, 25};
  char* rest = nullptr;
  const std::uint64_t first = std::strtoull(text, &rest, 10);
  return {first, *rest == '-' ? std::strtoull(rest + 1, nullptr, 10) : first};
}

TEST_CASE("Engine_RandomKernelsOnRandomDevices_AreBitEqualToThePlainMode") {
  const auto [first, last] = Seeds();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed);
    const Outcome fast = RunCase(made, {});
    CHECK(BrokenLaw(made.device, fast) == "");
    REQUIRE(Difference(fast, RunCase(made, {.plain = true})) == "");
  }
}

/// CTAs of another source in whose paths random parts without barriers repeat, up to twenty times; or the same CTAs
/// written out.
class RepeatingSource final : public trace::CtaSource {
 public:
  RepeatingSource(std::shared_ptr<trace::CtaSource> from, std::uint64_t seed, bool unrolled)
      : from_(std::move(from)), seed_(seed), unrolled_(unrolled) {}
  const trace::KernelCode& code() const override { return from_->code(); }
  const trace::LaunchShape& shape() const override { return from_->shape(); }
  Result<trace::LoadedCta> Load(std::uint64_t index) override {
    auto cta = from_->Load(index);
    if (!cta.ok()) return cta;
    std::mt19937_64 random(seed_ + index);
    trace::CtaTrace made = *cta->trace;
    for (std::uint32_t w = 0; w < made.warps.size(); ++w) AddRepeats(made, w, random);
    const Status valid = trace::ValidateCta(code(), shape(), made);
    INFO((valid.ok() ? "" : valid.error().message));
    CHECK(valid.ok());
    repeats_ += made.repeats.size();
    cta->trace = std::make_shared<const trace::CtaTrace>(unrolled_ ? test::Unrolled(made) : std::move(made));
    return cta;
  }
  std::size_t repeats() const { return repeats_; }

 private:
  void AddRepeats(trace::CtaTrace& cta, std::uint32_t number, std::mt19937_64& random) const {
    const trace::WarpTrace& warp = cta.warps[number];
    std::uint32_t visit = 0, access = 0;
    while (visit < warp.visit_count) {
      std::size_t executed = 0;  // a repeat has instructions
      const auto most = static_cast<std::uint32_t>(1 + random() % 5);
      trace::Repeat repeat{.warp = number, .visit = visit, .access = access, .more = 1 + random() % 20};
      for (; repeat.visit_count < most && visit < warp.visit_count; ++repeat.visit_count, ++visit) {
        const trace::BasicBlock& block = code().blocks[cta.visits[warp.first_visit + visit].block];
        const auto instructions = std::span(code().instructions).subspan(block.first, block.count);
        if (std::ranges::any_of(instructions, [](const auto& one) { return one.op == trace::OpClass::kBarrier; }))
          break;
        repeat.access_count +=
            static_cast<std::uint32_t>(std::ranges::count_if(instructions, &trace::Instruction::has_access));
        executed += instructions.size();
      }
      access += repeat.access_count;
      if (repeat.visit_count != 0 && random() % 2 == 0) {
        if (executed != 0) cta.repeats.push_back(repeat);
      } else if (repeat.visit_count == 0) {  // a barrier
        const trace::BasicBlock& block = code().blocks[cta.visits[warp.first_visit + visit++].block];
        for (std::uint32_t i = 0; i < block.count; ++i)
          access += code().instructions[block.first + i].has_access() ? 1 : 0;
      }
    }
  }
  const std::shared_ptr<trace::CtaSource> from_;
  const std::uint64_t seed_;
  const bool unrolled_;
  std::size_t repeats_ = 0;
};

TEST_CASE("Engine_Repeats_TakeAsLongAsTheirTurns") {
  std::size_t repeats = 0;
  for (std::uint64_t seed = 3000; seed < 3008; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed);
    const auto run = [&](bool unrolled, RunOptions options) {
      Case changed = made;
      for (auto& launch : changed.launches) launch = std::make_shared<RepeatingSource>(launch, seed, unrolled);
      Outcome outcome = RunCase(changed, options);
      for (const auto& launch : changed.launches) repeats += dynamic_cast<const RepeatingSource&>(*launch).repeats();
      return outcome;
    };
    const Outcome folded = run(false, {});
    CHECK(BrokenLaw(made.device, folded) == "");
    REQUIRE(Difference(folded, run(true, {})) == "");
    REQUIRE(Difference(folded, run(false, {.plain = true})) == "");
  }
  CHECK(repeats > 100);
}

TEST_CASE("Engine_RunAgain_OnTwoThreads_InShortWindows_GivesTheSame") {
  for (std::uint64_t seed = 1000; seed < 1004; ++seed) {
    INFO("seed " << seed);
    const Case made = RandomCase(seed);
    const Outcome once = RunCase(made, {});
    REQUIRE(Difference(once, RunCase(made, {})) == "");
    REQUIRE(Difference(once, RunCase(made, {.threads = 2})) == "");
    REQUIRE(Difference(once, RunCase(made, {.window = 1})) == "");
    REQUIRE(Difference(once, RunCase(made, {.threads = 3, .window = 7})) == "");
    REQUIRE(Difference(once, RunCase(made, {.step = 1001})) == "");
  }
}

/// Before a report partitions catch up with the SMs, between two of the windows in which they stay behind.
TEST_CASE("Engine_ThatReportsWorks_OnTwoThreads_GivesTheSame") {
  for (std::uint64_t seed = 2000; seed < 2012; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Case made{RandomDevice(random), {}, 3, "leftover"};
    for (int i = 0; i < 9; ++i) made.launches.push_back(RandomLaunch(random));
    const Outcome once = RunCase(made, {.reports = true});
    REQUIRE(Difference(once, RunCase(made, {})) == "");
    REQUIRE(Difference(once, RunCase(made, {.threads = 2, .reports = true})) == "");
    REQUIRE(Difference(once, RunCase(made, {.threads = 3, .reports = true})) == "");
  }
}

/// A barrier of one warp is the last thing that warps do: what they leave behind keeps nobody from being idle.
TEST_CASE("Engine_WarpsThatEndAtABarrierOfSome_ComeToAnEnd_AsInThePlainMode") {
  constexpr Cycle kLimit = Cycle{1} << 22;
  CodeBuilder code("ends at a barrier");
  code.Block();
  code.Op(trace::OpClass::kInt, {1}, {1});
  code.Barrier(1, 1);
  CtaBuilder cta;
  for (int warp = 0; warp < 3; ++warp) {
    cta.Warp();
    cta.Visit(0, kAllLanes, 2);
  }
  const auto launch =
      SameCtas(code.code(), {.ctas = 8, .threads_per_cta = 96, .registers_per_thread = 16}, cta.Finish());
  Cycle ended[2] = {};
  for (const bool plain : {false, true}) {
    const auto policy = policy::MakePolicy("leftover").value();
    auto engine = Engine::Create(TestDevice("fermi-8"), *policy, {.plain = plain});
    REQUIRE(engine.ok());
    const auto work = (*engine)->Add(KernelWork{.order = {}, .source = launch});
    REQUIRE(work.ok());
    REQUIRE((*engine)->RunUntil(kLimit, {}).ok());
    CHECK((*engine)->now() < kLimit / 2);
    ended[plain ? 1 : 0] = (*engine)->result(*work).ended;
  }
  CHECK(ended[0] != kNever);
  CHECK(ended[0] == ended[1]);
}

}  // namespace
}  // namespace gridloom::timing
