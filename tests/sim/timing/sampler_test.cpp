// Looking on changes nothing, costs nothing when nobody looks, and what is seen adds up.
#include "sim/timing/sampler.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "scheduler/policy/builtin.h"
#include "sim/timing/derived.h"
#include "tests/sim/timing/random_launch.h"

namespace gridloom::timing {
namespace {

struct Observed {
  std::unique_ptr<policy::Policy> policy;
  std::unique_ptr<Engine> engine;
};

/// Runs launches under an observer; the engine stays.
Observed RunObserved(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::CtaSource>>& launches,
                     Observer& observer, EngineOptions options = {}, Cycle pause = 0) {
  Observed observed;
  observed.policy = policy::MakePolicy("leftover").value();
  options.observer = &observer;
  auto engine = Engine::Create(device, *observed.policy, options);
  REQUIRE(engine.ok());
  observed.engine = *std::move(engine);
  for (std::uint32_t i = 0; i < launches.size(); ++i) {
    REQUIRE(observed.engine->Add(KernelWork{{.stream = i % 2, .submitted = i * pause, .after = {}}, launches[i]}).ok());
  }
  REQUIRE(observed.engine->Run().ok());
  return observed;
}

std::vector<std::shared_ptr<trace::CtaSource>> RandomLaunches(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  for (int i = 0; i < count; ++i) launches.push_back(RandomLaunch(random));
  return launches;
}

/// The counters at each window boundary.
class Recorder final : public Observer {
 public:
  void OnCtaStart(Cycle, const CtaPlace&) override {}
  void OnCtaEnd(Cycle, const CtaPlace&) override {}
  void OnKernelEnd(Cycle, std::uint32_t) override {}
  void OnWindow(const Engine& engine, Cycle) override { seen[engine.now()] = engine.counters_now(); }
  std::map<Cycle, Counters> seen;
};

TEST_CASE("Engine_CountersNow_AreThoseOfACycleByCycleSimulation") {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const sim::DeviceSpec device = RandomDevice(random);
    const auto launches = RandomLaunches(seed, 2);
    Recorder fast, plain;
    RunObserved(device, launches, fast, {.window = 1});
    RunObserved(device, launches, plain, {.plain = true, .window = 1});
    for (const auto& [at, counters] : fast.seen) {
      const auto exact = plain.seen.find(at);
      if (exact == plain.seen.end()) continue;  // plain mode ends in another cycle
      for (const CounterInfo& counter : CounterTable()) {
        INFO(counter.name << " at " << at);
        REQUIRE(counter.value(counters) == counter.value(exact->second));
      }
      ++compared;
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("Sampler_ChangesNeitherCyclesNorCounters_AndItsSamplesAddUp") {
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const sim::DeviceSpec device = RandomDevice(random);
    const auto launches = RandomLaunches(seed, 4);
    const Outcome alone = RunLaunches(device, launches, {}, 2);
    Sampler sampler;
    const Observed observed = RunObserved(device, launches, sampler);
    sampler.Finish(*observed.engine);
    Sampler another;  // samples are those of one run
    const Outcome looked_at = RunLaunches(device, launches, {.observer = &another}, 2);
    CHECK(Difference(alone, looked_at) == "");
    REQUIRE(!sampler.samples().empty());
    CHECK(observed.engine->counters() == alone.counters);
    CHECK(sampler.samples().back().at == observed.engine->now());
    CHECK(sampler.samples().back().sums == alone.counters);
    for (std::size_t i = 1; i < sampler.samples().size(); ++i) {
      REQUIRE(sampler.samples()[i].at > sampler.samples()[i - 1].at);
      for (const CounterInfo& counter : CounterTable())
        REQUIRE(counter.value(sampler.samples()[i].sums) >= counter.value(sampler.samples()[i - 1].sums));
    }
  }
}

TEST_CASE("Sampler_EveryCtaHasItsIntervalAndLiesInAResidencyOfItsKernel") {
  const sim::DeviceSpec device = TestDevice("k20c");
  const auto launches = RandomLaunches(7, 4);
  Sampler sampler;
  const Observed observed = RunObserved(device, launches, sampler);
  sampler.Finish(*observed.engine);
  std::uint64_t ctas = 0;
  for (const auto& launch : launches) ctas += launch->shape().ctas;
  REQUIRE(sampler.ctas().size() == ctas);
  CHECK(sampler.ctas_left_out() == 0);
  CHECK(sampler.residencies_left_out() == 0);
  for (const CtaInterval& cta : sampler.ctas()) {
    const auto& works = observed.engine->results();
    CHECK(cta.begin >= works[cta.place.launch].started);
    CHECK(cta.end <= works[cta.place.launch].ended);
    const bool inside = std::ranges::any_of(sampler.residencies(), [&](const Residency& r) {
      return r.sm == cta.place.sm && r.first_launch == cta.place.launch && r.begin <= cta.begin && cta.end <= r.end;
    });
    CHECK(inside);
  }
  for (const Residency& r : sampler.residencies()) CHECK((r.busy > 0 && r.busy <= r.end - r.begin));
}

TEST_CASE("Sampler_OfAKernelAlone_HasItsCounters") {
  const sim::DeviceSpec device = TestDevice("k20c");
  const auto launches = RandomLaunches(11, 1);
  Sampler sampler;
  const Observed observed = RunObserved(device, launches, sampler);
  sampler.Finish(*observed.engine);
  const Counters& kernel = sampler.kernels().at(launches[0]->code().name);
  const Counters all = observed.engine->counters();
  CHECK(kernel.sm == all.sm);
  CHECK(kernel.memory.l2_reads == all.memory.l2_reads);
}

TEST_CASE("Sampler_LongRuns_StayWithinTheirBounds_AndSayWhatIsLeftOut") {
  const sim::DeviceSpec device = TestDevice("k20c");
  std::vector<std::shared_ptr<trace::CtaSource>> launches;
  for (int i = 0; i < 60; ++i) launches.push_back(RandomLaunches(static_cast<std::uint64_t>(i % 3), 1)[0]);
  std::atomic<std::uint64_t> ended = 0;
  Sampler sampler({.max_samples = 16,
                   .max_residencies = 100,
                   .max_ctas = 20,
                   .interval = 64,
                   .resolution = 8,
                   .ended_ctas = &ended});
  const Observed observed = RunObserved(device, launches, sampler, {}, 20'000);
  sampler.Finish(*observed.engine);
  std::uint64_t ctas = 0;
  for (const auto& launch : launches) ctas += launch->shape().ctas;
  CHECK(ended == ctas);
  CHECK(sampler.samples().size() <= 17);
  CHECK(sampler.samples().back().sums == observed.engine->counters());
  CHECK(sampler.interval() > 64);
  CHECK(sampler.residencies().size() <= 100);
  CHECK(sampler.resolution() > 8);
  CHECK(sampler.ctas().size() == 20);
  CHECK(sampler.ctas_left_out() == ctas - 20);
}

TEST_CASE("Sampler_PausesOfTheDevice_AreSamplesOfTheirOwn") {
  const sim::DeviceSpec device = TestDevice("k20c");
  const auto launches = RandomLaunches(11, 2);
  Sampler sampler;
  const Observed observed = RunObserved(device, launches, sampler, {}, 1'000'000);
  sampler.Finish(*observed.engine);
  const bool found = std::ranges::any_of(sampler.samples(), [&, before = Sample{}](const Sample& sample) mutable {
    const bool pause = sample.at - before.at > 500'000 && sample.sums == before.sums;
    before = sample;
    return pause;
  });
  CHECK(found);
}

TEST_CASE("Statistics_AreAllInTheDocs_WithUnitAndMeaning") {
  std::ifstream file("docs/timing.md");
  const std::string docs(std::istreambuf_iterator<char>(file), {});
  const auto row = [](auto& info) {
    return "| `" + std::string(info.name) + "` | " + std::string(info.unit) + " | " + std::string(info.meaning) + " |";
  };
  for (const CounterInfo& info : CounterTable()) {
    INFO(row(info));
    CHECK(docs.find(row(info)) != std::string::npos);
  }
  for (const DerivedInfo& info : DerivedTable()) {
    INFO(row(info));
    CHECK(docs.find(row(info)) != std::string::npos);
  }
}

TEST_CASE("Derived_SchedulerStates_AreAllCyclesOfTheSchedulers") {
  const sim::DeviceSpec device = TestDevice("k20c");
  const Outcome outcome = RunLaunches(device, RandomLaunches(3, 2), {}, 2);
  std::uint64_t sum = 0;
  for (const SchedulerState& state : SchedulerStates()) sum += state.value(outcome.counters.sm);
  CHECK(sum == outcome.counters.sm.resident_cycles * device.timing.sm.schedulers);
}

TEST_CASE("Derived_Values_FollowFromTheCounters") {
  sim::DeviceSpec device = TestDevice("k20c");
  Counters counters;
  counters.sm.warp_instructions = 500;
  counters.sm.thread_instructions = 500 * 16;
  counters.sm.l1_hits = 3;
  counters.sm.l1_misses = 1;
  counters.memory.l2_sector_accesses = 10;
  counters.memory.l2_sector_misses = 4;
  counters.memory.dram_read_bytes = 1'000'000;
  device.timing.clock.sm_mhz = 1000;
  const Activity activity{device, 1000, counters};  // a microsecond
  CHECK(Derived("seconds", activity) == Approx(1e-6));
  CHECK(Derived("ipc", activity) == Approx(0.5));
  CHECK(Derived("active_lanes", activity) == Approx(0.5));
  CHECK(Derived("l1_hit_share", activity) == Approx(0.75));
  CHECK(Derived("l2_hit_share", activity) == Approx(0.6));
  CHECK(Derived("dram_gb_s", activity) == Approx(1000));
  CHECK(Derived("occupancy", activity) == 0);  // nothing resident
  counters.sm.stall_barrier = 7;
  CHECK(BoundBy(activity) == "barriers");
  // A gate of a proposed part is one more thing that schedulers wait for; its words come from outside.
  std::vector<SchedulerState> states(SchedulerStates().begin(), SchedulerStates().end());
  states.push_back(
      {"stall_gate", "the gate", [](const SmCounters& sm, std::size_t gate) { return sm.stall_gate[gate]; }, 1});
  counters.sm.stall_gate[1] = counters.sm.stall_barrier + 1;
  CHECK(BoundBy(activity, states) == "the gate");
  counters.sm.stall_gate[1] = 0;
  CHECK(BoundBy(activity, states) == "barriers");
  counters.memory.dram_busy_cycles = 1'000'000;
  CHECK(BoundBy(activity) == "DRAM bandwidth");
}

}  // namespace
}  // namespace gridloom::timing
