// The policy `kernelet` on the timing model: a kernel that waits for memory and one that computes.
#include <catch2/catch.hpp>

#include "scheduler/model/planner.h"
#include "scheduler/policy/builtin.h"
#include "sim/timing/sm/occupancy.h"
#include "tests/sim/timing/model_fixture.h"

namespace gridloom::timing {
namespace {

using trace::OpClass;
using trace::Space;

constexpr std::uint32_t kWarps = 8, kLoads = 40, kWork = 2;

sim::DeviceSpec SmallFermi() {
  sim::DeviceSpec device = TestDevice("c2050");
  device.sm.count = 4;
  // The model assumes that ready warps take turns (section 4.4); gto lets the computing kernel's warps pass the others.
  device.timing.sm.warp_order = sim::WarpOrder::kLooseRoundRobin;
  return device;
}

/// Every warp loads a line, waits for it, does `kWork` instructions; `kLoads` times.
std::shared_ptr<trace::CtaSource> Waits(std::uint64_t ctas) {
  CodeBuilder code("waits");
  code.Block();
  code.Load(Space::kGlobal, 1);
  for (std::uint16_t i = 0; i < kWork; ++i) code.Op(OpClass::kInt, {static_cast<std::uint16_t>(2 + i)}, {1});
  CtaBuilder cta;
  for (std::uint32_t w = 0; w < kWarps; ++w) {
    cta.Warp();
    cta.Visit(0, kAllLanes, kLoads);
    for (std::uint32_t i = 0; i < kLoads; ++i) cta.Access(0x10000000 + (w * kLoads + i) * 128);
  }
  return SameCtas(code.code(),
                  {.ctas = ctas, .threads_per_cta = kWarps * 32, .registers_per_thread = 16, .shared_bytes = 0},
                  cta.Finish(), kWarps * kLoads * 128);
}

std::shared_ptr<trace::CtaSource> Computes(std::uint64_t ctas) {
  CodeBuilder code("computes");
  code.Block();
  for (std::uint16_t i = 0; i < 10; ++i) code.Op(OpClass::kInt, {static_cast<std::uint16_t>(1 + i)}, {});
  CtaBuilder cta;
  for (std::uint32_t w = 0; w < kWarps; ++w) {
    cta.Warp();
    cta.Visit(0, kAllLanes, 60);
  }
  return SameCtas(code.code(),
                  {.ctas = ctas, .threads_per_cta = kWarps * 32, .registers_per_thread = 16, .shared_bytes = 0},
                  cta.Finish());
}

model::SmModel ModelOf(const sim::DeviceSpec& device) {
  const sim::TimingSpec& timing = device.timing;
  const double bytes =
      1.0 * timing.dram.channels * timing.dram.bytes_per_cycle * timing.clock.dram_mhz / timing.clock.sm_mhz;
  return {.sms = device.sm.count,
          .schedulers = timing.sm.schedulers,
          .peak_ipc = 1.0 * timing.sm.schedulers,
          .empty = EmptySm(device),
          .request_bytes = timing.dram.access_bytes,
          .latency_cycles = 1.0 * timing.dram.latency,
          .requests_per_cycle = bytes / timing.dram.access_bytes / device.sm.count};
}

model::KernelProfile ProfileOf(const trace::CtaSource& source, const sim::DeviceSpec& device, double memory_ratio,
                               double pur, double mur) {
  const policy::CtaNeeds needs = *NeedsOf(source.shape(), device);
  return {.kernel = source.code().name,
          .needs = needs,
          .max_resident_ctas = CtasPerSm(needs, device),
          .instructions_per_cta = memory_ratio > 0 ? kWarps * kLoads * (kWork + 1.0) : kWarps * 600.0,
          .memory_ratio = memory_ratio,
          .coalesced_requests = 2,
          .pur = pur,
          .mur = mur};
}

/// Cycles until all are done; each launch has a stream of its own.
Cycle Run(const sim::DeviceSpec& device, policy::Policy& policy, const model::ProfileTable& profiles,
          const std::vector<std::shared_ptr<trace::CtaSource>>& launches) {
  auto engine = Engine::Create(device, policy);
  REQUIRE(engine.ok());
  for (std::uint32_t i = 0; i < launches.size(); ++i) {
    WorkOrder order;
    order.stream = i;
    const std::uint64_t profile = profiles.Find(launches[i]->code().name, launches[i]->shape().warps_per_cta());
    REQUIRE((*engine)->Add(KernelWork{order, launches[i], profile}).ok());
  }
  REQUIRE((*engine)->Run().ok());
  Cycle end = 0;
  for (const WorkResult& work : (*engine)->results()) {
    REQUIRE(work.done());
    end = std::max(end, work.ended);
  }
  return end;
}

TEST_CASE("Kernelet_ComplementaryKernels_TakeLessTimeThanLeftover_AboutAsPredicted") {
  const sim::DeviceSpec device = SmallFermi();
  auto profiles = std::make_shared<model::ProfileTable>();
  const model::SmModel sm = ModelOf(device);
  REQUIRE(profiles->Add(ProfileOf(*Waits(1), device, 1.0 / (kWork + 1), 0.35, 0.3)).ok());
  REQUIRE(profiles->Add(ProfileOf(*Computes(1), device, 0, 1, 0)).ok());
  const auto planner = std::make_shared<model::GreedyPlanner>(sm, profiles, std::make_shared<model::MarkovModel>(sm));
  const std::uint64_t both[] = {1, 2};
  const auto schedule = planner->Find(both);
  REQUIRE(schedule);
  CHECK(schedule->profit > 0.1);

  // As much of each as keeps both running to the end in the ratio that was planned.
  const auto ipc = *model::MarkovModel(sm).Together(*profiles->Get(1), schedule->parts[0].ctas_per_sm,
                                                    *profiles->Get(2), schedule->parts[1].ctas_per_sm);
  const std::uint64_t waits = 4 * 30;
  const auto computes = static_cast<std::uint64_t>(waits * profiles->Get(1)->instructions_per_cta / ipc[0] * ipc[1] /
                                                   profiles->Get(2)->instructions_per_cta);
  const std::vector<std::shared_ptr<trace::CtaSource>> launches = {Waits(waits), Computes(computes)};
  const auto leftover = policy::MakePolicy("leftover").value(),
             kernelet = policy::MakePolicy("kernelet", {.planner = planner}).value();
  const Cycle apart = Run(device, *leftover, *profiles, launches),
              together = Run(device, *kernelet, *profiles, launches);
  INFO("leftover " << apart << ", kernelet " << together << ", CP " << schedule->profit << ", blocks "
                   << schedule->parts[0].ctas_per_sm << " + " << schedule->parts[1].ctas_per_sm);
  const double saved = 1 - static_cast<double>(together) / static_cast<double>(apart);
  CHECK(saved > 0.5 * schedule->profit);
  CHECK(saved < 1.5 * schedule->profit);
  // The same again: decisions depend on nothing else.
  const auto again = policy::MakePolicy("kernelet", {.planner = planner}).value();
  CHECK(Run(device, *again, *profiles, launches) == together);
  // Without a planner it is `leftover`.
  policy::Kernelet blind;
  CHECK(Run(device, blind, model::ProfileTable(), launches) == apart);
}

}  // namespace
}  // namespace gridloom::timing
