#include "sim/study/crcs/runs.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "rewriter/support/printable.h"
#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/experiment/workload_traces.h"
#include "sim/study/replay/job.h"

namespace gridloom::study::crcs {
namespace {

using timing::WorkKind;
using timing::WorkResult;

constexpr std::size_t kAllCtas = 1u << 22;
/// Rises when a change of the part or its policies makes old measurements wrong.
constexpr int kVersion = 2;

/// Names of the kernels that are made from others to tell what these will touch.
std::set<std::string> ProfilersOf(const trace::TraceFile& file) {
  std::set<std::string> names;
  for (const trace::TraceFile::Launch& launch : file.launches()) {
    if (launch.info.role == trace::LaunchInfo::Role::kProfiler) names.insert(file.kernels()[launch.info.kernel].name);
  }
  return names;
}

/// Several replays of a trace may have the same to say.
void TellOnce(const std::string& sentence) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.insert(sentence).second) std::fprintf(stderr, "gridloom: %s\n", Printable(sentence).c_str());
}

struct Replayed {
  ReplayResult result;
  std::set<std::string> profilers;
  double cycles_per_ms = 0;
  double Ms(timing::Cycle cycles) const { return static_cast<double>(cycles) / cycles_per_ms; }
};

Result<Replayed> ReplayOf(const Run& run, const sim::DeviceSpec& device, const std::string& path, std::size_t kept_ctas) {
  GL_TRY(file, trace::TraceFile::Open(path));
  Replayed replayed;
  replayed.profilers = ProfilersOf(*file);
  replayed.cycles_per_ms = device.timing.clock.sm_mhz * 1e3;
  GL_TRY(result, Replay(device, run.policy, {file}, 1, {.kept_ctas = kept_ctas}));
  for (const std::string& note : result.notes) TellOnce(note);
  replayed.result = std::move(result);
  return replayed;
}

double CounterOf(const sim::DeviceSpec& device, const timing::Counters& counters, std::string_view name) {
  const auto all = hardware::CountersOf(device);
  const auto found = std::ranges::find(all, name, &timing::CounterInfo::name);
  return found == all.end() ? 0 : static_cast<double>(found->value(counters));
}

void AddKernel(const Replayed& replayed, const WorkResult& work, Times& times, std::vector<double>& kernels) {
  const double took = replayed.Ms(work.ended - work.started);
  if (replayed.profilers.contains(work.name)) {
    times.profilers += took;
    times.profiler_instructions += static_cast<double>(work.warp_instructions);
    return;
  }
  kernels.push_back(took);
  times.kernel_instructions += static_cast<double>(work.warp_instructions);
}

Times TimesOf(const Replayed& replayed, const sim::DeviceSpec& device) {
  Times times;
  times.total = replayed.Ms(replayed.result.cycles);
  std::vector<double> kernels;  // in the order of the program
  for (const WorkResult& work : replayed.result.works) {
    if (!work.done()) continue;
    const double took = replayed.Ms(work.ended - work.started);
    switch (work.kind) {
      case WorkKind::kKernel: AddKernel(replayed, work, times, kernels); break;
      case WorkKind::kCopyToDevice: times.to_device += took; break;
      case WorkKind::kCopyToHost: times.to_host += took; break;
      case WorkKind::kStorageRead: times.read += took; break;
      case WorkKind::kStorageWrite: times.write += took; break;
      default: break;
    }
  }
  times.kernels = static_cast<double>(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    (i == 0 ? times.first : i + 1 == kernels.size() ? times.last : times.middle) += kernels[i];
  }
  times.most_references = CounterOf(device, replayed.result.counters, "most_references");
  times.most_kernels = CounterOf(device, replayed.result.counters, "most_kernels");
  return times;
}

/// As numbers that are kept, and back.
constexpr double Times::*kTimes[] = {&Times::total,
                                     &Times::read,
                                     &Times::to_device,
                                     &Times::first,
                                     &Times::middle,
                                     &Times::last,
                                     &Times::to_host,
                                     &Times::write,
                                     &Times::profilers,
                                     &Times::kernels,
                                     &Times::kernel_instructions,
                                     &Times::profiler_instructions,
                                     &Times::most_references,
                                     &Times::most_kernels};

Result<std::vector<double>> MeasureTimes(const Run& run, const sim::DeviceSpec& device, const std::string& path) {
  GL_TRY(replayed, ReplayOf(run, device, path, 0));
  const Times times = TimesOf(replayed, device);
  std::vector<double> numbers;
  for (const auto member : kTimes) numbers.push_back(times.*member);
  return numbers;
}

/// total, end of the prelude, then kSteps times for each kernel.
Result<std::vector<double>> MeasureEnds(const Run& run, const sim::DeviceSpec& device, const std::string& path) {
  GL_TRY(replayed, ReplayOf(run, device, path, kAllCtas));
  const ReplayResult& result = replayed.result;
  if (result.sampler->ctas_left_out() != 0) return Error{"more than " + std::to_string(kAllCtas) + " thread blocks"};
  std::vector<double> numbers = {replayed.Ms(result.cycles), 0};
  std::map<std::uint32_t, std::vector<timing::Cycle>> ends;  // by kernel
  for (const timing::CtaInterval& cta : result.sampler->ctas()) ends[cta.place.launch].push_back(cta.end);
  for (const WorkResult& work : result.works) {
    if (work.done() && work.kind == WorkKind::kStorageRead) numbers[1] = std::max(numbers[1], replayed.Ms(work.ended));
  }
  for (auto& [launch, cycles] : ends) {
    if (replayed.profilers.contains(result.works[launch].name)) continue;
    std::ranges::sort(cycles);
    for (std::size_t i = 1; i <= Progress::kSteps; ++i)
      numbers.push_back(replayed.Ms(cycles[(cycles.size() * i + Progress::kSteps - 1) / Progress::kSteps - 1]));
  }
  return numbers;
}

std::string NameOf(const Run& run) {
  std::string name = run.workload;
  for (const std::string& argument : run.arguments) name += " " + argument;
  name += (run.device.empty() ? "" : " on " + run.device) + " under " + run.policy;
  for (const auto& [key, value] : run.keys) name += " " + key.substr(key.rfind('.') + 1) + "=" + value;
  return name;
}

}  // namespace

Result<std::unique_ptr<Runs>> Runs::Create(const Settings& settings, const Environment& environment) {
  std::unique_ptr<Runs> runs(new Runs(settings, environment));
  GL_TRY(device, settings.Text("device"));
  GL_TRY(storage, settings.Number("storage_mb_s"));
  if (!(storage >= 1)) return Error{settings.name() + ": storage_mb_s must be at least 1"};
  runs->device_ = device;
  runs->storage_ = std::to_string(static_cast<std::uint64_t>(storage));
  runs->workloads_ = settings.Below("workloads");
  if (runs->workloads_.empty()) return Error{settings.name() + ": 'workloads' is missing"};
  return runs;
}

Result<sim::DeviceSpec> Runs::DeviceOf(const Run& run) const {
  GL_TRY(device, sim::LoadDevice(run.device.empty() ? device_ : run.device));
  device = hardware::WithPartsFor(std::move(device), run.policy);
  const auto set = [&](const std::string& key, const std::string& value) {
    return sim::SetDeviceKey(key, value, settings_.name() + ": " + key, device);
  };
  GL_TRY_STATUS(set("timing.host.storage_mb_s", storage_));
  for (const auto& [key, value] : run.keys) GL_TRY_STATUS(set(key, value));
  GL_TRY_STATUS(hardware::Check(device));
  return device;
}

/// Traces of all runs of a program with the same arguments are one, with both forms of ranges.
Result<FileIdentity> Runs::TraceOfRun(const Run& run) {
  std::vector<std::string> arguments;
  if (std::ranges::find(workloads_, run.workload) != workloads_.end()) {
    GL_TRY(of_file, settings_.List("workloads." + run.workload));
    arguments = std::move(of_file);
  }
  arguments.insert(arguments.end(), run.arguments.begin(), run.arguments.end());
  const WorkloadRun program{
      .study = "crcs", .name = run.workload, .options = {"--ranges", "interval,strided"}, .arguments = std::move(arguments)};
  const std::string name = program.FileName();
  if (const auto known = traces_.find(name); known != traces_.end()) return known->second;
  GL_TRY(path, TraceOf(program, environment_));
  GL_TRY(identity, Identify(path.string()));
  return traces_[name] = identity;
}

Result<Measurement> Runs::MeasurementOf(
    const Run& run, const std::string& what,
    std::function<Result<std::vector<double>>(const Run&, const sim::DeviceSpec&, const std::string&)> measure) {
  if (measurements_ == nullptr) {
    GL_TRY(cache, OpenCache(environment_));
    cache_ = std::move(cache);
    measurements_ = std::make_unique<Measurements>(*cache_, environment_.threads, environment_.progress);
  }
  GL_TRY(device, DeviceOf(run));
  GL_TRY(traced, TraceOfRun(run));
  return Measurement{
      .what = NameOf(run),
      .key = MeasurementKey(device) + " crcs v" + std::to_string(kVersion) + " " + what + " " + run.policy + " " + traced.hash,
      .measure = [run, device, path = traced.path, measure = std::move(measure)] { return measure(run, device, path); }};
}

Result<std::vector<Times>> Runs::Measure(const std::vector<Run>& runs) {
  std::vector<Measurement> wanted;
  for (const Run& run : runs) {
    GL_TRY(measurement, MeasurementOf(run, "times", MeasureTimes));
    wanted.push_back(std::move(measurement));
  }
  GL_TRY_STATUS(measurements_->Make(wanted));
  std::vector<Times> all;
  for (const Measurement& one : wanted) {
    GL_TRY(numbers, measurements_->Get(one, std::size(kTimes)));
    Times& times = all.emplace_back();
    for (std::size_t i = 0; i < numbers.size(); ++i) times.*kTimes[i] = numbers[i];
  }
  return all;
}

Result<Progress> Runs::MeasureProgress(const Run& run) {
  GL_TRY(times, Measure({run}));
  GL_TRY(wanted, MeasurementOf(run, "ends", MeasureEnds));
  const auto kernels = static_cast<std::size_t>(times[0].kernels);
  GL_TRY(numbers, measurements_->Get(wanted, 2 + kernels * Progress::kSteps));
  Progress progress{.total = numbers[0], .prelude_ends = numbers[1], .kernels = {}};
  for (std::size_t i = 0; i < kernels; ++i) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(2 + i * Progress::kSteps);
    progress.kernels.emplace_back(begin, begin + Progress::kSteps);
  }
  return progress;
}

}  // namespace gridloom::study::crcs
