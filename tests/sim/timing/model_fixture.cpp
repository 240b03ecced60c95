#include "tests/sim/timing/model_fixture.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "scheduler/policy/builtin.h"

namespace gridloom::timing {

sim::DeviceSpec TestDevice(const std::string& name) {
  auto device = sim::LoadDevice(name, "configs/devices");
  INFO((device.ok() ? "" : device.error().message));
  REQUIRE(device.ok());
  return *device;
}

Outcome RunLaunches(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::CtaSource>>& launches,
                    const RunOptions& options, std::uint32_t streams) {
  const auto policy = policy::MakePolicy(options.policy).value();
  EngineOptions engine_options;
  engine_options.threads = options.threads;
  engine_options.plain = options.plain;
  engine_options.each_turn = options.each_turn;
  engine_options.window = options.window;
  engine_options.parts = options.parts;
  engine_options.observer = options.observer;
  if (options.reports) engine_options.on_finished = [](WorkId, const WorkResult&, const Counters&) {};
  auto engine = Engine::Create(device, *policy, engine_options);
  INFO((engine.ok() ? "" : engine.error().message));
  REQUIRE(engine.ok());
  for (std::uint32_t i = 0; i < launches.size(); ++i) {
    WorkOrder order;
    order.stream = i % streams;
    const auto added = (*engine)->Add(KernelWork{order, launches[i]});
    INFO((added.ok() ? "" : added.error().message));
    REQUIRE(added.ok());
  }
  for (Cycle limit = options.step; options.step != 0 && !(*engine)->all_done(); limit += options.step) {
    const Status part = (*engine)->RunUntil(limit, {});
    INFO((part.ok() ? "" : part.error().message));
    REQUIRE(part.ok());
  }
  const Status status = (*engine)->Run();
  INFO((status.ok() ? "" : status.error().message));
  REQUIRE(status.ok());
  Outcome outcome{(*engine)->results(), (*engine)->counters(), {}, {}, (*engine)->passed()};
  for (std::size_t s = 0; s < device.sm.count; ++s) outcome.sms.push_back((*engine)->sm_counters(s));
  for (std::size_t p = 0; p < device.timing.dram.channels; ++p)
    outcome.partitions.push_back((*engine)->partition_counters(p));
  return outcome;
}

Outcome RunLaunch(const sim::DeviceSpec& device, std::shared_ptr<trace::CtaSource> launch, const RunOptions& options) {
  return RunLaunches(device, {std::move(launch)}, options);
}

Cycle KernelCycles(const Outcome& outcome) { return outcome.works[0].ended - outcome.works[0].started; }

std::string Difference(const Outcome& a, const Outcome& b) {
  for (std::size_t i = 0; i < a.works.size(); ++i) {
    if (a.works[i].started != b.works[i].started || a.works[i].ended != b.works[i].ended) {
      return "work " + std::to_string(i) + ": " + std::to_string(a.works[i].started) + " to " +
             std::to_string(a.works[i].ended) + " and " + std::to_string(b.works[i].started) + " to " +
             std::to_string(b.works[i].ended);
    }
  }
  for (const CounterInfo& counter : CounterTable()) {
    if (counter.value(a.counters) != counter.value(b.counters)) {
      return std::string(counter.name) + ": " + std::to_string(counter.value(a.counters)) + " and " +
             std::to_string(counter.value(b.counters));
    }
  }
  if (a.sms != b.sms) return "the counters of one SM";
  return a.partitions != b.partitions ? "the counters of one partition" : "";
}

std::string BrokenLaw(const sim::DeviceSpec& device, const Outcome& outcome) {
  const SmCounters& sm = outcome.counters.sm;
  const MemoryCounters& memory = outcome.counters.memory;
  struct Law {
    const char* text;
    std::uint64_t left, right;
  };
  std::uint64_t ctas = 0, instructions = 0;
  for (const WorkResult& work : outcome.works) ctas += work.ctas, instructions += work.warp_instructions;
  const std::uint64_t stalls = sm.stall_pipe + sm.stall_load_store + sm.stall_dependency + sm.stall_memory +
                               sm.stall_barrier + sm.stall_finish + sm.stall_empty +
                               std::accumulate(sm.stall_gate.begin(), sm.stall_gate.end(), std::uint64_t{0});
  const std::uint64_t bytes = (memory.l2_sector_misses - memory.l2_sector_merges) * sim::TimingSpec::kSectorBytes;
  const Law laws[] = {
      {"CTAs started and ended", ctas, sm.ctas},
      {"instructions of launches and of SMs", instructions, sm.warp_instructions},
      {"reads sent and taken", sm.read_requests, memory.l2_reads},
      {"writes sent and taken", sm.write_requests + sm.write_back_requests, memory.l2_writes},
      {"atomics sent and taken", sm.atomic_requests, memory.l2_atomics},
      {"requests and answers", sm.read_requests + sm.write_requests + sm.atomic_requests, sm.responses},
      {"answers sent and taken", memory.l2_responses, sm.responses},
      {"sectors asked for and come", sm.read_sectors, sm.response_sectors},
      {"sectors sent and come", memory.l2_response_sectors, sm.response_sectors},
      {"scheduler cycles with and without issue", sm.issue_cycles + stalls,
       sm.resident_cycles * device.timing.sm.schedulers},
      {"issue cycles and pairs", sm.issue_cycles + sm.dual_issues, sm.warp_instructions},
      {"DRAM writes and lines written back", memory.dram_writes, memory.l2_write_backs},
      {"bytes read by DRAM at least those that L2 missed", std::min(bytes, memory.dram_read_bytes), bytes},
  };
  for (const Law& law : laws) {
    if (law.left != law.right)
      return std::string(law.text) + ": " + std::to_string(law.left) + " and " + std::to_string(law.right);
  }
  return "";
}

}  // namespace gridloom::timing
