#include "sim/study/dtbl/runs.h"

#include <algorithm>
#include <utility>

#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/experiment/workload_traces.h"
#include "sim/study/measure/timed_device.h"
#include "sim/study/replay/job.h"

namespace gridloom::study::dtbl {
namespace {

/// Rises when a change of the model, the part or what is kept makes old measurements wrong.
constexpr int kVersion = 1;
/// Of LaunchForms, by Form.
constexpr const char* kLaunches[] = {"", "cdp-ideal", "dtbl-ideal", "cdp", "dtbl"};

constexpr double Outcome::*kNumbers[] = {&Outcome::busy_cycles,
                                         &Outcome::warp_instructions,
                                         &Outcome::thread_instructions,
                                         &Outcome::warp_cycles,
                                         &Outcome::dram_busy_cycles,
                                         &Outcome::dram_active_cycles,
                                         &Outcome::launches,
                                         &Outcome::wait_cycles,
                                         &Outcome::most_bytes,
                                         &Outcome::byte_cycles,
                                         &Outcome::joined,
                                         &Outcome::unmatched,
                                         &Outcome::ordered,
                                         &Outcome::spills,
                                         &Outcome::table_most,
                                         &Outcome::sms,
                                         &Outcome::warps_per_sm,
                                         &Outcome::sm_mhz};

/// Cycles in which at least one kernel ran, or was on its way from the call of a kernel. The program's own time between kernels is none of
/// the device's.
double BusyCycles(const std::vector<timing::WorkResult>& works) {
  std::vector<std::pair<timing::Cycle, timing::Cycle>> spans;
  for (const timing::WorkResult& work : works) {
    if (work.kind == timing::WorkKind::kKernel && work.done()) spans.emplace_back(std::min(work.started, work.ended), work.ended);
  }
  std::ranges::sort(spans);
  double busy = 0;
  timing::Cycle until = 0;
  for (const auto& [begin, end] : spans) {
    if (end <= until) continue;
    busy += static_cast<double>(end - std::max(begin, until));
    until = end;
  }
  return busy;
}

double CounterOf(const sim::DeviceSpec& device, const timing::Counters& counters, std::string_view name) {
  const auto all = hardware::CountersOf(device);
  const auto found = std::ranges::find(all, name, &timing::CounterInfo::name);
  return found == all.end() ? 0 : static_cast<double>(found->value(counters));
}

Result<std::vector<double>> MeasureRun(const sim::DeviceSpec& device, const std::string& path) {
  GL_TRY(file, trace::TraceFile::Open(path));
  GL_TRY(result, Replay(device, "leftover", {file}, 1, {}));
  const auto counter = [&](std::string_view name) { return CounterOf(device, result.counters, name); };
  const Outcome outcome{.busy_cycles = BusyCycles(result.works),
                        .warp_instructions = counter("warp_instructions"),
                        .thread_instructions = counter("thread_instructions"),
                        .warp_cycles = counter("warp_cycles"),
                        .dram_busy_cycles = counter("dram_busy_cycles"),
                        .dram_active_cycles = counter("dram_active_cycles"),
                        .launches = counter("device_launches"),
                        .wait_cycles = counter("device_launch_wait_cycles"),
                        .most_bytes = counter("device_launch_most_bytes"),
                        .byte_cycles = counter("device_launch_byte_cycles"),
                        .joined = counter("dtbl_joined"),
                        .unmatched = counter("dtbl_unmatched"),
                        .ordered = counter("dtbl_ordered"),
                        .spills = counter("dtbl_table_spills"),
                        .table_most = counter("dtbl_table_most"),
                        .sms = static_cast<double>(device.sm.count),
                        .warps_per_sm = static_cast<double>(device.max_warps_per_sm()),
                        .sm_mhz = static_cast<double>(device.timing.clock.sm_mhz)};
  std::vector<double> numbers;
  for (const auto member : kNumbers) numbers.push_back(outcome.*member);
  return numbers;
}

Result<Outcome> OutcomeFrom(const std::vector<double>& numbers, const std::string& what) {
  if (numbers.size() != std::size(kNumbers)) return Error{what + ": what was kept of its measurement is damaged"};
  Outcome outcome;
  for (std::size_t i = 0; i < numbers.size(); ++i) outcome.*kNumbers[i] = numbers[i];
  return outcome;
}

const char* NameOf(Form form) { return kFormNames[static_cast<std::size_t>(form)]; }

std::string NameOf(const Run& run) {
  std::string name = run.pair + ", " + NameOf(run.form) + (run.device.empty() ? "" : " on " + run.device);
  for (const auto& [key, value] : run.keys) name += " " + key.substr(key.rfind('.') + 1) + "=" + value;
  return name;
}

}  // namespace

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
  GL_TRY(device, settings.Text("device"));
  runs->device_ = device;
  runs->pairs_ = settings.Below("pairs");
  if (runs->pairs_.empty()) return Error{settings.name() + ": 'pairs' is missing"};
  GL_TRY(keys, KeysFrom(settings, "keys"));
  runs->keys_ = std::move(keys);
  return runs;
}

Result<sim::DeviceSpec> Runs::DeviceOf(const Run& run) const {
  GL_TRY(device, sim::LoadDevice(run.device.empty() ? device_ : run.device));
  const auto set = [&](const std::string& key, const std::string& value) {
    return sim::SetDeviceKey(key, value, settings_.name() + ": " + key, device);
  };
  for (const auto& [key, value] : keys_) GL_TRY_STATUS(set(key, value));
  for (const auto& [key, value] : run.keys) GL_TRY_STATUS(set(key, value));
  GL_TRY_STATUS(EquipForTiming(
      {.policy = "leftover", .parts = "", .values = "", .launches = kLaunches[static_cast<std::size_t>(run.form)], .ranges = ""}, device));
  GL_TRY_STATUS(sim::ValidateDevice(device));
  return device;
}

Result<FileIdentity> Runs::TraceOfRun(const Run& run) {
  GL_TRY(words, settings_.List("pairs." + run.pair));
  if (words.empty()) return Error{settings_.name() + ": pairs." + run.pair + " names no program"};
  const std::string program = words.front();
  words.erase(words.begin());
  words.emplace_back(run.form == Form::kFlat ? "--form=flat" : "--form=cdp");
  const WorkloadRun workload{.study = "dtbl", .name = run.pair, .program = program, .arguments = std::move(words)};
  const std::string name = workload.FileName();
  if (const auto known = traces_.find(name); known != traces_.end()) return known->second;
  GL_TRY(path, TraceOf(workload, environment_));
  GL_TRY(identity, Identify(path.string()));
  return traces_[name] = identity;
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
                     .key = MeasurementKey(device) + " dtbl v" + std::to_string(kVersion) + " " + traced.hash,
                     .measure = [device, path = traced.path] { return MeasureRun(device, path); }};
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
    outcomes.push_back(outcome);
  }
  return outcomes;
}

Result<std::vector<std::vector<Outcome>>> Runs::MeasureAll(const std::vector<Form>& forms, const std::map<std::string, std::string>& keys,
                                                           const std::string& device) {
  std::vector<Run> wanted;
  for (const std::string& pair : pairs_) {
    for (const Form form : forms) wanted.push_back({.pair = pair, .form = form, .device = device, .keys = keys});
  }
  GL_TRY(outcomes, Measure(wanted));
  std::vector<std::vector<Outcome>> by_pair;
  for (std::size_t i = 0; i < outcomes.size(); i += forms.size())
    by_pair.emplace_back(outcomes.begin() + i, outcomes.begin() + i + forms.size());
  return by_pair;
}

}  // namespace gridloom::study::dtbl
