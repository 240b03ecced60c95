#include "interpose/launcher/replay_job.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "interpose/launcher/kernel_profiles.h"
#include "scheduler/policy/builtin.h"
#include "sim/timing/engine.h"

namespace gridloom::launcher {
namespace {

/// Streams of a trace, numbered from `next` on: two traces share none.
std::uint32_t StreamOf(std::map<std::uint64_t, std::uint32_t>& streams, std::uint64_t stream, std::uint32_t& next) {
  const auto [it, inserted] = streams.try_emplace(stream, next);
  if (inserted) ++next;
  return it->second;
}

Status AddLaunches(timing::Engine& engine, const std::vector<std::shared_ptr<trace::TraceFile>>& traces,
                   const model::ProfileTable* profiles) {
  std::uint32_t next_stream = 0;
  for (const auto& file : traces) {
    std::map<std::uint64_t, std::uint32_t> streams;
    for (std::size_t i = 0; i < file->launches().size(); ++i) {
      const trace::TraceFile::Launch& launch = file->launches()[i];
      if (!launch.complete) continue;
      timing::KernelWork work;
      work.order.stream = StreamOf(streams, launch.info.stream, next_stream);
      work.source = trace::TraceFile::Source(file, i);
      if (profiles != nullptr) work.profile = ProfileOf(*profiles, work.source->code(), work.source->shape());
      GL_TRY(id, engine.Add(std::move(work)));
      static_cast<void>(id);
    }
  }
  return {};
}

std::vector<KernelTimes> ByKernel(const std::vector<timing::WorkResult>& works) {
  std::map<std::string, KernelTimes> sums;
  for (const timing::WorkResult& work : works) {
    if (work.name.empty() || !work.done()) continue;
    KernelTimes& sum = sums[work.name];
    sum.name = work.name;
    ++sum.launches;
    sum.ctas += work.ctas;
    sum.warp_instructions += work.warp_instructions;
    sum.thread_instructions += work.thread_instructions;
    sum.cycles += work.ended - work.started;
  }
  std::vector<KernelTimes> kernels;
  for (auto& [name, sum] : sums) kernels.push_back(std::move(sum));
  std::ranges::sort(kernels, [](const KernelTimes& a, const KernelTimes& b) { return a.cycles > b.cycles; });
  return kernels;
}

Result<model::KerneletSetup> SetUpFor(const sim::DeviceSpec& device, const std::vector<std::shared_ptr<trace::TraceFile>>& traces,
                                      const model::ProfileFile* profiles) {
  GL_TRY(config, LoadKerneletConfig());
  if (profiles != nullptr) return model::SetUpKernelet(*profiles, config);
  GL_TRY(measured, ProfileTraces(device, traces));
  return model::SetUpKernelet(measured, config);
}

}  // namespace

Result<ReplayResult> Replay(const sim::DeviceSpec& device, const std::string& policy_name,
                            const std::vector<std::shared_ptr<trace::TraceFile>>& traces, unsigned threads,
                            const model::ProfileFile* profiles) {
  model::KerneletSetup kernelet;
  if (policy_name == "kernelet") {
    GL_TRY(setup, SetUpFor(device, traces, profiles));
    kernelet = std::move(setup);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto policy = policy::MakePolicy(policy_name, kernelet.inputs);
  if (!policy) return Error{"no policy '" + policy_name + "'"};
  timing::EngineOptions options;
  options.threads = threads;
  GL_TRY(engine, timing::Engine::Create(device, *policy, options));
  GL_TRY_STATUS(AddLaunches(*engine, traces, kernelet.profiles.get()));
  GL_TRY_STATUS(engine->Run());
  ReplayResult result;
  result.cycles = engine->now();
  result.counters = engine->counters();
  result.kernels = ByKernel(engine->results());
  result.host_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::string BoundBy(const ReplayResult& result, const sim::DeviceSpec& device) {
  constexpr double kMostOfTheTime = 0.7;
  const sim::TimingSpec& timing = device.timing;
  const double dram_cycles = static_cast<double>(result.cycles) * timing.clock.dram_mhz / timing.clock.sm_mhz * timing.dram.channels;
  if (static_cast<double>(result.counters.memory.dram_busy_cycles) > kMostOfTheTime * dram_cycles) return "DRAM bandwidth";
  const timing::SmCounters& sm = result.counters.sm;
  const std::pair<std::uint64_t, const char*> reasons[] = {
      {sm.issue_cycles, "issue"},           {sm.stall_pipe, "execution units"}, {sm.stall_load_store, "load/store units"},
      {sm.stall_dependency, "dependences"}, {sm.stall_memory, "memory"},        {sm.stall_barrier, "barriers"},
      {sm.stall_finish, "stores"},          {sm.stall_empty, "too few warps"}};
  return std::ranges::max(reasons, {}, [](const auto& reason) { return reason.first; }).second;
}

}  // namespace gridloom::launcher
