#include "sim/study/pipeline/runs.h"

#include <algorithm>
#include <utility>

#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/experiment/workload_traces.h"

namespace gridloom::study::pipeline {
namespace {

/// Rises when a change of the policy, the part or what is kept makes old measurements wrong.
constexpr int kVersion = 6;
constexpr const char* kLabelledL2 = "tagged-l2";

/// Numbers one after the other, as they are kept.
class Reader {
 public:
  explicit Reader(const std::vector<double>& numbers) : numbers_(numbers) {}
  double Next() { return at_ < numbers_.size() ? numbers_[at_++] : (failed_ = true, 0); }
  std::size_t Count() { return static_cast<std::size_t>(Next()); }
  bool complete() const { return !failed_ && at_ == numbers_.size(); }
  bool failed() const { return failed_; }

 private:
  const std::vector<double>& numbers_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

constexpr double Outcome::*kNumbers[] = {&Outcome::cycles,          &Outcome::warp_instructions, &Outcome::thread_instructions,
                                         &Outcome::dram_read_bytes, &Outcome::dram_write_bytes,  &Outcome::l2_accesses,
                                         &Outcome::l2_misses};

std::vector<double> NumbersOf(const Outcome& outcome) {
  std::vector<double> numbers;
  for (const auto member : kNumbers) numbers.push_back(outcome.*member);
  numbers.push_back(static_cast<double>(outcome.launches.size()));
  for (const Launch& launch : outcome.launches) {
    for (const double number :
         {static_cast<double>(launch.stream), static_cast<double>(launch.stage), launch.started, launch.ended, launch.warp_instructions}) {
      numbers.push_back(number);
    }
  }
  numbers.push_back(static_cast<double>(outcome.steps.size()));
  for (const policy::DkaStep& step : outcome.steps) {
    numbers.push_back(static_cast<double>(step.begin));
    numbers.push_back(static_cast<double>(step.kernels.size()));
    for (const policy::DkaStep::Kernel& kernel : step.kernels) {
      for (const std::uint64_t number : {kernel.launch, std::uint64_t{kernel.stage}, std::uint64_t{kernel.sms}, kernel.took}) {
        numbers.push_back(static_cast<double>(number));
      }
    }
  }
  return numbers;
}

Result<Outcome> OutcomeFrom(const std::vector<double>& numbers, const std::string& what) {
  Outcome outcome;
  Reader reader(numbers);
  for (const auto member : kNumbers) outcome.*member = reader.Next();
  for (std::size_t left = reader.Count(); left > 0 && !reader.failed(); --left) {
    Launch& launch = outcome.launches.emplace_back();
    launch.stream = reader.Count();
    launch.stage = reader.Count();
    launch.started = reader.Next();
    launch.ended = reader.Next();
    launch.warp_instructions = reader.Next();
  }
  for (std::size_t left = reader.Count(); left > 0 && !reader.failed(); --left) {
    policy::DkaStep& step = outcome.steps.emplace_back();
    step.begin = reader.Count();
    for (std::size_t kernels = reader.Count(); kernels > 0 && !reader.failed(); --kernels) {
      policy::DkaStep::Kernel& kernel = step.kernels.emplace_back();
      kernel.launch = reader.Count();
      kernel.stage = reader.Count();
      kernel.sms = static_cast<std::uint32_t>(reader.Count());
      kernel.took = reader.Count();
    }
  }
  if (!reader.complete()) return Error{what + ": what was kept of its measurement is damaged"};
  return outcome;
}

Result<std::vector<double>> MeasureRun(const Run& run, const sim::DeviceSpec& device, const std::string& path) {
  GL_TRY(file, trace::TraceFile::Open(path));
  ReplayInputs inputs{.kernels_only = true};
  inputs.stages = run.stages;
  inputs.dka = {.together = run.together, .fixed = run.fixed, .log = std::make_shared<std::vector<policy::DkaStep>>()};
  GL_TRY(result, Replay(device, run.policy, {file}, 1, inputs));
  Outcome outcome;
  double begin = static_cast<double>(result.cycles);
  std::map<std::uint32_t, std::size_t> stages;  // of each stream, launches so far
  for (const timing::WorkResult& work : result.works) {
    if (work.kind != timing::WorkKind::kKernel || !work.done()) continue;
    outcome.launches.push_back({.stream = work.stream,
                                .stage = stages[work.stream]++,
                                .started = static_cast<double>(work.started),
                                .ended = static_cast<double>(work.ended),
                                .warp_instructions = static_cast<double>(work.warp_instructions)});
    begin = std::min(begin, static_cast<double>(work.started));
  }
  outcome.cycles = static_cast<double>(result.cycles) - begin;
  outcome.warp_instructions = static_cast<double>(result.counters.sm.warp_instructions);
  outcome.thread_instructions = static_cast<double>(result.counters.sm.thread_instructions);
  outcome.dram_read_bytes = static_cast<double>(result.counters.memory.dram_read_bytes);
  outcome.dram_write_bytes = static_cast<double>(result.counters.memory.dram_write_bytes);
  outcome.l2_accesses = static_cast<double>(result.counters.memory.l2_sector_accesses);
  outcome.l2_misses = static_cast<double>(result.counters.memory.l2_sector_misses);
  outcome.steps = *inputs.dka.log;
  return NumbersOf(outcome);
}

std::string NameOf(const Run& run) {
  std::string name = run.workload;
  for (const std::string& argument : run.arguments) name += " " + argument;
  name += " on " + run.device + " under " + run.policy + (run.labels ? " with labels" : "");
  for (const auto& [key, value] : run.keys) name += " " + key.substr(key.rfind('.') + 1) + "=" + value;
  return name;
}

/// What decides about a replay besides device and trace.
std::string KeyOf(const Run& run) {
  std::string key = " pipeline v" + std::to_string(kVersion) + " " + run.policy + " stages " + std::to_string(run.stages) + " together " +
                    std::to_string(run.together);
  for (const auto& [stages, shares] : run.fixed) {
    key += " fixed";
    for (const std::size_t stage : stages) key += " " + std::to_string(stage);
    key += ":";
    for (const std::uint32_t share : shares) key += " " + std::to_string(share);
  }
  return key;
}

}  // namespace

Run Serial(const std::string& workload, const std::string& device) {
  return {.workload = workload, .one_stream = true, .device = device, .policy = "serial"};
}

Run Preemptive(const std::string& workload, const std::string& device) {
  return {.workload = workload, .device = device, .policy = "leftover"};
}

Run Allocated(const std::string& workload, const std::string& device, bool labels) {
  return {.workload = workload, .device = device, .policy = "dka", .labels = labels};
}

Result<std::map<std::string, std::string>> KeysFrom(const Settings& settings, const std::string& key) {
  GL_TRY(texts, settings.List(key));
  std::map<std::string, std::string> keys;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos) return Error{settings.name() + ": " + key + " has '" + text + "', expected KEY=VALUE"};
    keys[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return keys;
}

Result<std::unique_ptr<Runs>> Runs::Create(const Settings& settings, const Environment& environment) {
  std::unique_ptr<Runs> runs(new Runs(settings, environment));
  GL_TRY(devices, settings.List("devices"));
  runs->devices_ = std::move(devices);
  runs->workloads_ = settings.Below("workloads");
  if (runs->devices_.empty()) return Error{settings.name() + ": 'devices' is empty"};
  if (runs->workloads_.empty()) return Error{settings.name() + ": 'workloads' is missing"};
  GL_TRY(keys, KeysFrom(settings, "keys"));
  runs->keys_.assign(keys.begin(), keys.end());
  GL_TRY(of_allocator, KeysFrom(settings, "allocator_keys"));
  runs->allocator_keys_.assign(of_allocator.begin(), of_allocator.end());
  GL_TRY(of_preemptive, KeysFrom(settings, "preemptive_keys"));
  runs->preemptive_keys_.assign(of_preemptive.begin(), of_preemptive.end());
  return runs;
}

Result<sim::DeviceSpec> Runs::DeviceOf(const Run& run) const {
  GL_TRY(device, sim::LoadDevice(run.device));
  if (run.labels) device.proposed.emplace_back(kLabelledL2);
  const auto set = [&](const std::string& key, const std::string& value) {
    return sim::SetDeviceKey(key, value, settings_.name() + ": " + key, device);
  };
  for (const auto& [key, value] : keys_) GL_TRY_STATUS(set(key, value));
  const auto& of_policy = run.policy == "leftover" ? preemptive_keys_ : allocator_keys_;
  if (run.policy != "serial") {
    for (const auto& [key, value] : of_policy) GL_TRY_STATUS(set(key, value));
  }
  for (const auto& [key, value] : run.keys) GL_TRY_STATUS(set(key, value));
  GL_TRY_STATUS(sim::ValidateDevice(device));
  GL_TRY_STATUS(hardware::Check(device));
  return device;
}

Result<FileIdentity> Runs::TraceOfRun(const Run& run) {
  std::vector<std::string> arguments;
  const std::vector<std::string> known_sizes = settings_.Below(run.sizes);
  if (std::ranges::find(known_sizes, run.workload) != known_sizes.end()) {
    GL_TRY(of_file, settings_.List(run.sizes + "." + run.workload));
    arguments = std::move(of_file);
  }
  arguments.insert(arguments.end(), run.arguments.begin(), run.arguments.end());
  if (run.one_stream) arguments.emplace_back("--serial");
  const WorkloadRun program{.study = "pipeline", .name = run.workload, .arguments = std::move(arguments)};
  const std::string name = program.FileName();
  if (const auto known = traces_.find(name); known != traces_.end()) return known->second;
  GL_TRY(path, TraceOf(program, environment_));
  GL_TRY(identity, Identify(path.string()));
  return traces_[name] = identity;
}

Result<std::string> Runs::TracePath(const Run& run) {
  GL_TRY(traced, TraceOfRun(run));
  return traced.path;
}

Result<Measurement> Runs::MeasurementOf(const Run& run) {
  if (measurements_ == nullptr) {
    GL_TRY(cache, OpenCache(environment_));
    cache_ = std::move(cache);
    measurements_ = std::make_unique<Measurements>(*cache_, environment_.threads, environment_.progress);
  }
  GL_TRY(device, DeviceOf(run));
  GL_TRY(traced, TraceOfRun(run));
  return Measurement{.what = NameOf(run),
                     .key = MeasurementKey(device) + KeyOf(run) + " " + traced.hash,
                     .measure = [run, device, path = traced.path] { return MeasureRun(run, device, path); }};
}

Result<std::vector<Outcome>> Runs::Measure(const std::vector<Run>& runs) {
  std::vector<Measurement> wanted;
  for (const Run& run : runs) {
    GL_TRY(measurement, MeasurementOf(run));
    wanted.push_back(std::move(measurement));
  }
  GL_TRY_STATUS(measurements_->Make(wanted));
  std::vector<Outcome> outcomes;
  for (const Measurement& one : wanted) {
    GL_TRY(numbers, measurements_->Get(one));
    GL_TRY(outcome, OutcomeFrom(numbers, one.what));
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace gridloom::study::pipeline
