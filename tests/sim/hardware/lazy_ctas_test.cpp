// Lazy and block CTA scheduling, against what its rules say for kernels made by hand.
#include <catch2/catch.hpp>

#include "sim/hardware/catalog.h"
#include "sim/timing/ports.h"
#include "tests/sim/hardware/with_parts.h"
#include "tests/sim/timing/random_launch.h"
#include "tests/sim/timing/test_part.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

sim::DeviceSpec LazyDevice(const std::string& values, std::uint32_t sms = 1) {
  sim::DeviceSpec device = TestDevice("gtx480");
  device.sm.count = sms;
  device.timing.sm.warp_order = sim::WarpOrder::kGreedyThenOldest;
  REQUIRE(sim::ApplyDeviceText("proposed: lazy-ctas\nhardware: {lazy-ctas: {" + values + "}}", "test", device).ok());
  return device;
}

/// CTAs of one warp that does additions; each waits for the one before, or for none of the last 31.
std::shared_ptr<trace::CtaSource> Adds(std::uint64_t ctas, std::uint32_t adds, bool dependent) {
  constexpr std::uint16_t kRegisters = 32;
  CodeBuilder code("adds");
  code.Block();
  for (std::uint16_t i = 0; i < kRegisters; ++i)
    code.Op(OpClass::kInt, {dependent ? std::uint16_t{1} : static_cast<std::uint16_t>(i + 1)}, {});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0, kAllLanes, adds / kRegisters);
  return SameCtas(code.code(), {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0},
                  cta.Finish());
}

/// How many CTAs were on each SM at once, at most, and where each CTA went.
struct Watch final : CtaEvents {
  void Attach(Ports& ports, DeviceInput&) { ports.cta_events.push_back(this); }
  void OnCtaStart(Cycle, const CtaPlace& place) override {
    sm_of.push_back(place.sm);
    ++now;
    if (ended > 0) most_later = std::max(most_later, now);
    else most_first = std::max(most_first, now);
  }
  void OnCtaEnd(const CtaEnd&) override { --now, ++ended; }
  std::vector<std::uint32_t> sm_of;
  int now = 0, ended = 0, most_first = 0, most_later = 0;
};

TEST_CASE("LazyCtas_KernelWhoseWarpsAreAlwaysReady_KeepsFewCtas_OneThatWaitsKeepsThemAll") {
  const sim::DeviceSpec device = LazyDevice("block: 1");
  for (const bool dependent : {false, true}) {
    INFO("dependent " << dependent);
    Watch watch;
    const Outcome outcome = RunLaunch(device, Adds(64, 3000, dependent), WithParts(device, {.parts = {Borrow(watch)}}));
    CHECK(Count(device, outcome, "lazy_decisions") == 1);
    CHECK(Count(device, outcome, "lazy_fits") == 8);
    CHECK(watch.most_first == 8);
    // Two schedulers, each busy with one CTA whose instructions are independent; chains of dependent ones leave room
    // for all.
    const std::uint64_t limit = Count(device, outcome, "lazy_limits");
    CHECK(limit == (dependent ? 8u : 2u));
    // A CTA takes the place of another only when fewer than the limit are there.
    CHECK(watch.most_later <= 8);
    CHECK(outcome.counters.sm.ctas == 64);
  }
}

TEST_CASE("LazyCtas_AfterTheDecision_TheSmHoldsNoMoreThanItsLimit") {
  const sim::DeviceSpec device = LazyDevice("block: 1, least: 3");
  struct Later final : CtaEvents {
    void Attach(Ports& ports, DeviceInput&) { ports.cta_events.push_back(this); }
    void OnCtaStart(Cycle, const CtaPlace&) override {
      ++now;
      if (ended > 8) most = std::max(most, now);  // the first eight have left
    }
    void OnCtaEnd(const CtaEnd&) override { --now, ++ended; }
    int now = 0, ended = 0, most = 0;
  } later;
  const Outcome outcome = RunLaunch(device, Adds(64, 500, false), WithParts(device, {.parts = {Borrow(later)}}));
  CHECK(Count(device, outcome, "lazy_limits") == 3);
  CHECK(later.most == 3);
}

TEST_CASE("LazyCtas_Blocks_PutNeighboursOnOneSm") {
  const sim::DeviceSpec device = LazyDevice("lazy: off, block: 3", 4);
  Watch watch;
  const Outcome outcome = RunLaunch(device, Adds(26, 200, true), WithParts(device, {.parts = {Borrow(watch)}}));
  REQUIRE(watch.sm_of.size() == 26);
  for (std::size_t cta = 0; cta < 26; ++cta) CHECK(watch.sm_of[cta] == watch.sm_of[cta / 3 * 3]);
  CHECK(watch.sm_of[0] == 0);
  CHECK(watch.sm_of[3] == 1);
  CHECK(Count(device, outcome, "block_ctas") == 26 - 9);
}

TEST_CASE("LazyCtas_RandomKernels_AreBitEqualInPlainMode_InAnyWindowOnAnyThreads_AndAllCtasRun") {
  for (std::uint64_t seed = 1; seed < 13; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    sim::DeviceSpec device = RandomDevice(random);
    std::vector<std::shared_ptr<trace::CtaSource>> launches;
    for (int i = 0; i < 3; ++i) launches.push_back(RandomLaunch(random));
    const std::string values = "watch: " + std::to_string(1 + seed % 2) + ", block: " + std::to_string(1 + seed % 4);
    REQUIRE(sim::ApplyDeviceText("proposed: lazy-ctas\nhardware: {lazy-ctas: {" + values + "}}", "test", device).ok());
    const auto run = [&](RunOptions options) { return RunLaunches(device, launches, WithParts(device, options), 2); };
    const Outcome fast = run({});
    CHECK(BrokenLaw(device, fast) == "");
    REQUIRE(Difference(fast, run({.plain = true})) == "");
    REQUIRE(Difference(fast, run({.threads = 2, .window = 5})) == "");
    CHECK(fast.counters.parts == run({.plain = true}).counters.parts);
  }
}

}  // namespace
}  // namespace gridloom::timing
