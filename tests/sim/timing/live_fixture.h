// A live timeline on a V100, and kernels that add.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "scheduler/policy/builtin.h"
#include "sim/timing/live/live_timeline.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {

using trace::OpClass;

inline trace::KernelCode AddsCode() {
  CodeBuilder code("adds");
  code.Block();
  code.Op(OpClass::kInt, {1}, {1});
  return code.code();
}

inline std::shared_ptr<const trace::CtaTrace> AddsCta(std::uint32_t adds) {
  CtaBuilder cta;
  cta.Warp();
  cta.Visit(0, kAllLanes, adds);
  return cta.Finish();
}

/// CTAs of one warp that add up for 4 * `adds` cycles on a V100.
inline std::shared_ptr<trace::CtaSource> Adds(std::uint64_t ctas, std::uint32_t adds) {
  return SameCtas(AddsCode(), {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 16, .shared_bytes = 0},
                  AddsCta(adds));
}

/// Host calls take 100 cycles, answers 200, so that expectations are easy to read.
inline sim::DeviceSpec Device() {
  sim::DeviceSpec device = TestDevice("v100");
  device.timing.host = {.call_ns = 100'000 / device.timing.clock.sm_mhz,
                        .sync_ns = 200'000 / device.timing.clock.sm_mhz};
  return device;
}

struct Fixture {
  explicit Fixture(const sim::DeviceSpec& spec = Device(), unsigned threads = 1, unsigned patience_ms = 3000,
                   bool keep_ended = true)
      : device(spec) {
    LiveTimeline::Options options;
    options.engine.threads = threads;
    options.engine.keep_ended = keep_ended;
    options.patience_ms = patience_ms;
    auto made = LiveTimeline::Create(device, policy::MakePolicy("leftover").value(), options);
    REQUIRE(made.ok());
    timeline = *std::move(made);
    host = timeline->AddHost();
    call = (Cycle{device.timing.host.call_ns} * device.timing.clock.sm_mhz + 999) / 1000;
    answer = (Cycle{device.timing.host.sync_ns} * device.timing.clock.sm_mhz + 999) / 1000;
  }
  Place At(std::uint64_t stream, std::vector<NodeId> after = {}) const {
    return {.host = host, .stream = stream, .after = std::move(after), .group = 0, .rank = 0, .profile = 0};
  }
  NodeId Kernel(Place place, std::shared_ptr<trace::CtaSource> source) {
    auto node = timeline->AddKernel(std::move(place), std::move(source));
    REQUIRE(node.ok());
    return *node;
  }
  sim::DeviceSpec device;
  std::unique_ptr<LiveTimeline> timeline;
  HostId host = 0;
  Cycle call = 0, answer = 0;
};

}  // namespace gridloom::timing
