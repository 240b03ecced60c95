#include "sim/study/replay/job.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>

#include "scheduler/policy/builtin.h"
#include "sim/hardware/catalog.h"
#include "sim/study/measure/kernel_profiles.h"
#include "sim/study/measure/timed_device.h"
#include "sim/timing/engine.h"
#include "sim/timing/live/trace_player.h"
#include "sim/timing/sm/occupancy.h"
#include "sim/trace/instruction_limit.h"
#include "sim/trace/range_forms.h"

namespace gridloom::study {
namespace {

/// CTAs come from a file: however long that takes, nobody waits for the player.
constexpr unsigned kPatienceMs = 3'600'000;

/// Streams of a trace, numbered from `next` on: two traces share none.
std::uint32_t StreamOf(std::map<std::uint64_t, std::uint32_t>& streams, std::uint64_t stream, std::uint32_t& next) {
  const auto [it, inserted] = streams.try_emplace(stream, next);
  if (inserted) ++next;
  return it->second;
}

/// The last launch of each trace comes before `ends` of it.
Status AddLaunches(timing::Engine& engine, const Traces& traces, const model::ProfileTable* profiles,
                   const ReplayInputs& inputs, std::vector<timing::WorkId>& ends) {
  std::uint32_t next_stream = 0, number = 0;
  timing::WorkId end = 0;
  for (const auto& file : traces) {
    const std::uint32_t process = number++;
    std::map<std::uint64_t, std::uint32_t> streams;
    std::map<std::uint64_t, std::size_t> given;
    const auto budget = std::make_shared<trace::TraceBudget>();
    for (std::size_t i = 0; i < file->launches().size(); ++i) {
      const trace::TraceFile::Launch& launch = file->launches()[i];
      if (!launch.complete || !launch.info.of_program()) continue;
      if (inputs.stages != 0 && given[launch.info.stream]++ >= inputs.stages) continue;
      timing::KernelWork work;
      work.order.stream = StreamOf(streams, launch.info.stream, next_stream);
      work.source = trace::WithInstructionLimit(trace::TraceFile::Source(file, i, budget), inputs.most_instructions);
      work.address_space = process;
      work.owner.tenant = process;
      if (profiles != nullptr) work.profile = ProfileOf(*profiles, work.source->code(), work.source->shape());
      GL_TRY(id, engine.Add(std::move(work)));
      end = id + 1;
    }
    ends.push_back(end);
  }
  return {};
}

std::vector<KernelTimes> ByKernel(const std::vector<timing::WorkResult>& works, const timing::Sampler& sampler) {
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
  for (auto& [name, sum] : sums) {
    const auto counted = sampler.kernels().find(name);
    if (counted != sampler.kernels().end()) sum.counters = counted->second;
    kernels.push_back(std::move(sum));
  }
  std::ranges::stable_sort(kernels, std::ranges::greater{}, &KernelTimes::cycles);
  return kernels;
}

ReplayResult ResultOf(const timing::Engine& engine, std::shared_ptr<timing::Sampler> sampler) {
  sampler->Finish(engine);
  ReplayResult result;
  result.counters = engine.counters();
  result.works = engine.results();
  for (const timing::WorkResult& work : result.works) result.cycles = std::max(result.cycles, work.ended);
  result.kernels = ByKernel(result.works, *sampler);
  result.sampler = std::move(sampler);
  return result;
}

/// A trace tells of the CTAs' ranges, or why there are none, if it was asked to.
Status CheckRanges(const Traces& traces, trace::LaunchInfo::Ranges form) {
  for (const auto& file : traces) {
    const auto& launches = file->launches();
    const bool told = launches.empty() || std::ranges::any_of(launches, [&](const trace::TraceFile::Launch& launch) {
                        return launch.info.ranges == form || !launch.info.no_ranges.empty();
                      });
    if (told) continue;
    const std::string name(trace::NameOf(form));
    return Error{file->name() + " has no " + name +
                 " ranges of its CTAs, which kernels that overlap go by: make it again with `gridloom run --trace FILE "
                 "--ranges " +
                 name + " -- PROGRAM`"};
  }
  return {};
}

/// What is to be said of traces that were to tell in which order their programs filled what they copy, and do not.
std::vector<std::string> OrderNotes(const sim::DeviceSpec& device, const Traces& traces) {
  std::vector<std::string> notes;
  if (!GoesByRecordedOrder(device)) return notes;
  for (const auto& file : traces) {
    if (std::ranges::any_of(file->actions(), [](const trace::HostAction& action) { return !action.ranks.empty(); }))
      continue;
    notes.push_back(
        file->name() +
        " says of no copy in which order its program filled what it copied (hardware.crcs.order=recorded): it is " +
        "read from the beginning to the end; `gridloom run --record-order` notes it");
  }
  return notes;
}

/// The launches alone.
Result<ReplayResult> ReplayKernels(const sim::DeviceSpec& device, policy::Policy& policy, const Traces& traces,
                                   const timing::EngineOptions& options, const model::ProfileTable* profiles,
                                   const ReplayInputs& inputs, std::shared_ptr<timing::Sampler> sampler) {
  GL_TRY(engine, timing::Engine::Create(device, policy, options));
  std::vector<timing::WorkId> ends;
  GL_TRY_STATUS(AddLaunches(*engine, traces, profiles, inputs, ends));
  GL_TRY_STATUS(engine->Run());
  ReplayResult result = ResultOf(*engine, std::move(sampler));
  timing::WorkId work = 0;
  for (const timing::WorkId end : ends) {
    std::uint64_t last = 0;
    for (; work < end; ++work) last = std::max(last, engine->result(work).ended);
    result.programs.push_back(last);
  }
  return result;
}

/// The whole programs: launches, copies, events, and their calls' time.
Result<ReplayResult> ReplayPrograms(const sim::DeviceSpec& device, std::unique_ptr<policy::Policy> policy,
                                    const Traces& traces, const timing::EngineOptions& options,
                                    const model::ProfileTable* profiles, const ReplayInputs& inputs,
                                    std::shared_ptr<timing::Sampler> sampler) {
  GL_TRY(timeline,
         timing::LiveTimeline::Create(device, std::move(policy), {.engine = options, .patience_ms = kPatienceMs}));
  timing::PlayOptions playing;
  playing.most_instructions = inputs.most_instructions;
  if (const auto ranges = RangesOf(device)) {
    playing.overlapped = true;
    playing.ranges = *ranges;
    playing.fits = [device](const trace::LaunchShape& shape) -> Status {
      GL_TRY(needs, timing::NeedsOf(shape, device));
      static_cast<void>(needs);
      return {};
    };
  }
  std::mutex mutex;
  std::vector<std::string> notes = OrderNotes(device, traces);
  playing.tell = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    notes.push_back(sentence);
  };
  if (profiles != nullptr) {
    playing.profile_of = [profiles](const trace::CtaSource& source) {
      return ProfileOf(*profiles, source.code(), source.shape());
    };
  }
  GL_TRY_STATUS(timing::PlayTraces(*timeline, traces, playing));
  ReplayResult result = ResultOf(timeline->engine(), std::move(sampler));
  result.cycles = timeline->end();
  for (timing::HostId host = 0; host < traces.size(); ++host)
    result.programs.push_back(std::max(timeline->HostTime(host), timeline->WorksOf(host).last_end));
  result.notes = std::move(notes);
  return result;
}

Result<model::KerneletSetup> SetUpFor(const sim::DeviceSpec& device, const Traces& traces,
                                      const model::ProfileFile* profiles) {
  GL_TRY(config, LoadKerneletConfig());
  if (profiles != nullptr) return model::SetUpKernelet(*profiles, config);
  GL_TRY(measured, ProfileTraces(device, traces, config));
  return model::SetUpKernelet(measured, config);
}

}  // namespace

Result<ReplayResult> Replay(const sim::DeviceSpec& device, const std::string& policy_name, const Traces& traces,
                            unsigned threads, const ReplayInputs& inputs, ReplayProgress* progress) {
  GL_TRY(known, policy::FindPolicy(policy_name));
  model::KerneletSetup kernelet;
  if (known->needs.Has(policy::Need::kProfiles)) {
    GL_TRY(setup, SetUpFor(device, traces, inputs.profiles));
    kernelet = std::move(setup);
  }
  const auto ranges = RangesOf(device);
  if (ranges && inputs.kernels_only)
    return Error{
        "the part crcs needs whole programs, copies and waits included: leave out --kernels-only, or the part and "
        "policies crcs-..."};
  if (ranges) GL_TRY_STATUS(CheckRanges(traces, *ranges));
  const auto begin = std::chrono::steady_clock::now();
  policy::PolicyInputs inputs_of = kernelet.inputs;
  inputs_of.follows_pages = ranges.has_value();
  inputs_of.dka = inputs.dka;
  GL_TRY(policy, policy::MakePolicy(policy_name, inputs_of));
  timing::SamplerOptions sampling;
  if (inputs.kept_ctas != 0) sampling.max_ctas = inputs.kept_ctas;
  if (progress != nullptr) sampling.ended_ctas = &progress->ended_ctas;
  const auto sampler = std::make_shared<timing::Sampler>(sampling);
  timing::EngineOptions options;
  options.threads = threads;
  options.observer = sampler.get();
  GL_TRY(parts, hardware::Build(device));
  options.parts = std::move(parts);
  if (progress != nullptr) {
    for (const auto& file : traces) {
      for (const trace::TraceFile::Launch& launch : file->launches())
        progress->ctas += launch.complete && launch.info.of_program() ? launch.info.shape.ctas : 0;
    }
  }
  const model::ProfileTable* const profiles = kernelet.profiles.get();
  GL_TRY(result, inputs.kernels_only
                     ? ReplayKernels(device, *policy, traces, options, profiles, inputs, sampler)
                     : ReplayPrograms(device, std::move(policy), traces, options, profiles, inputs, sampler));
  result.host_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace gridloom::study
