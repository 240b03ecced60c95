// The example of a part in docs/extending.md.
#include <catch2/catch.hpp>

#include "sim/hardware/catalog.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;

sim::DeviceSpec OneSm(const std::string& lines) {
  sim::DeviceSpec device = TestDevice("gtx480");
  device.sm.count = 1;
  REQUIRE(sim::ApplyDeviceText(lines, "test.yaml", device).ok());
  return device;
}

/// CTAs of one warp, in which each addition waits for the one before.
std::shared_ptr<trace::CtaSource> Chains(std::uint64_t ctas) {
  CodeBuilder code("chains");
  const std::uint32_t block = code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(block, kAllLanes, 200);
  return SameCtas(code.code(), {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0},
                  cta.Finish());
}

Outcome Run(const sim::DeviceSpec& device, RunOptions options = {}) {
  auto parts = hardware::Build(device);
  INFO((parts.ok() ? std::string() : parts.error().message));
  REQUIRE(parts.ok());
  options.parts = *parts;
  return RunLaunch(device, Chains(16), options);
}

std::uint64_t Kernels(const sim::DeviceSpec& device, const Outcome& outcome) {
  for (const CounterInfo& counter : hardware::CountersOf(device)) {
    if (counter.name == "cap_kernels") return counter.value(outcome.counters);
  }
  FAIL("there is no counter cap_kernels");
  return 0;
}

TEST_CASE("CtaCap_KeepsAsManyCtasAsItSays_AndCountsTheKernel") {
  const Outcome free = Run(OneSm("{}"));
  const sim::DeviceSpec device = OneSm("proposed: cta-cap\nhardware: {cta-cap: {most: 2}}");
  const Outcome capped = Run(device);
  CHECK(free.sms[0].warp_cycles > 2 * free.sms[0].resident_cycles);
  CHECK(capped.sms[0].warp_cycles <= 2 * capped.sms[0].resident_cycles);
  CHECK(KernelCycles(capped) > 2 * KernelCycles(free));
  CHECK(Kernels(device, capped) == 1);
}

TEST_CASE("CtaCap_PlainAndFast_WithAnyThreadsAndWindows_CountTheSame") {
  const sim::DeviceSpec device = OneSm("proposed: cta-cap\nhardware: {cta-cap: {most: 3}}");
  const Outcome outcome = Run(device);
  CHECK(Difference(outcome, Run(device, {.plain = true})) == "");
  CHECK(Difference(outcome, Run(device, {.threads = 2})) == "");
  CHECK(Difference(outcome, Run(device, {.window = 7})) == "");
}

TEST_CASE("CtaCap_WithRoomForAll_ChangesNothing") {
  const sim::DeviceSpec device = OneSm("proposed: cta-cap\nhardware: {cta-cap: {most: 1024}}");
  const Outcome outcome = Run(device);
  CHECK(KernelCycles(outcome) == KernelCycles(Run(OneSm("{}"))));
  CHECK(Kernels(device, outcome) == 0);
}

TEST_CASE("CtaCap_ItsKeyHasBounds") {
  const auto parts = hardware::Build(OneSm("proposed: cta-cap\nhardware: {cta-cap: {most: 0}}"));
  REQUIRE_FALSE(parts.ok());
  CHECK(parts.error().message.find("expected a number from 1 to 1024") != std::string::npos);
}

}  // namespace
}  // namespace gridloom::timing
