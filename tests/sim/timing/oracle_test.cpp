// The short cuts of the model against its plain mode, and the promise that host threads and windows do not matter.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "scheduler/policy/builtin.h"
#include "tests/sim/timing/random_launch.h"

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
  Case made{RandomDevice(random), {}, static_cast<std::uint32_t>(1 + random() % 3), random() % 3 == 0 ? "serial" : "leftover"};
  for (std::uint64_t i = 1 + random() % 4; i > 0; --i) made.launches.push_back(RandomLaunch(random));
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
  const auto launch = SameCtas(code.code(), {.ctas = 8, .threads_per_cta = 96, .registers_per_thread = 16}, cta.Finish());
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
