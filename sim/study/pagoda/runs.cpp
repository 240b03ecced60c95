#include "sim/study/pagoda/runs.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/experiment/workload_traces.h"
#include "sim/study/measure/timed_device.h"
#include "sim/study/replay/job.h"

namespace gridloom::study::pagoda {
namespace {

/// Rises when a change of the model, the part or what is kept makes old measurements wrong.
constexpr int kVersion = 3;
/// Streams of programs; those of parts have higher numbers.
constexpr std::uint32_t kProgramStreams = 1u << 31;

constexpr SchemeRow kSchemes[] = {
    {Scheme::kSerial, "serial", "serial", "leftover"},       {Scheme::kHyperQ, "HyperQ", "tasks", "leftover"},
    {Scheme::kGraph, "graphs", "graph", "leftover"},         {Scheme::kFusion, "fusion", "fused", "leftover"},
    {Scheme::kGemtc, "GeMTC", "tasks", "gemtc", true, true}, {Scheme::kBatching, "Pagoda in batches", "tasks", "pagoda", true, true},
    {Scheme::kPagoda, "Pagoda", "tasks", "pagoda", true},
};

constexpr double Outcome::*kNumbers[] = {
    &Outcome::cycles,   &Outcome::kernel_cycles,     &Outcome::copy_cycles,      &Outcome::span_cycles, &Outcome::latency_cycles,
    &Outcome::launches, &Outcome::warp_instructions, &Outcome::task_warp_cycles, &Outcome::sms,         &Outcome::warps_per_sm,
    &Outcome::sm_mhz};

using Spans = std::vector<std::pair<timing::Cycle, timing::Cycle>>;

/// Cycles that at least one of them covers.
double Covered(Spans spans) {
  std::ranges::sort(spans);
  double covered = 0;
  timing::Cycle until = 0;
  for (const auto& [begin, end] : spans) {
    if (end <= until) continue;
    covered += static_cast<double>(end - std::max(begin, until));
    until = end;
  }
  return covered;
}

double CounterOf(const sim::DeviceSpec& device, const timing::Counters& counters, std::string_view name) {
  const auto all = hardware::CountersOf(device);
  const auto found = std::ranges::find(all, name, &timing::CounterInfo::name);
  return found == all.end() ? 0 : static_cast<double>(found->value(counters));
}

/// What the program gave the device.
Outcome OutcomeOf(const sim::DeviceSpec& device, const ReplayResult& result) {
  Outcome outcome{.sms = static_cast<double>(device.sm.count),
                  .warps_per_sm = static_cast<double>(device.max_warps_per_sm()),
                  .sm_mhz = static_cast<double>(device.timing.clock.sm_mhz)};
  for (const std::uint64_t cycles : result.programs) outcome.cycles = std::max(outcome.cycles, static_cast<double>(cycles));
  Spans kernels, copies;
  timing::Cycle first = timing::kNever, last = 0;
  for (const timing::WorkResult& work : result.works) {
    if (!work.done() || work.stream >= kProgramStreams || work.kind == timing::WorkKind::kMarker) continue;
    (work.kind == timing::WorkKind::kKernel ? kernels : copies).emplace_back(std::min(work.started, work.ended), work.ended);
    if (work.kind != timing::WorkKind::kKernel) continue;
    first = std::min(first, work.submitted);
    last = std::max(last, work.ended);
    outcome.latency_cycles += static_cast<double>(work.ended - work.submitted);
    outcome.warp_instructions += static_cast<double>(work.warp_instructions);
    ++outcome.launches;
  }
  if (outcome.launches > 0) outcome.latency_cycles /= outcome.launches;
  outcome.kernel_cycles = Covered(std::move(kernels));
  outcome.copy_cycles = Covered(std::move(copies));
  if (last > first) outcome.span_cycles = static_cast<double>(last - first);
  outcome.task_warp_cycles = CounterOf(device, result.counters, "pagoda_task_warp_cycles");
  if (outcome.task_warp_cycles == 0) outcome.task_warp_cycles = CounterOf(device, result.counters, "warp_cycles");
  return outcome;
}

Result<std::vector<double>> MeasureRun(const sim::DeviceSpec& device, const std::string& policy, const std::string& path) {
  GL_TRY(file, trace::TraceFile::Open(path));
  GL_TRY(result, Replay(device, policy, {file}, 1, {}));
  const Outcome outcome = OutcomeOf(device, result);
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

std::string NameOf(const Run& run) {
  std::string name = run.program + ", " + RowOf(run.scheme).name + (run.device.empty() ? "" : " on " + run.device);
  for (const std::string& argument : run.arguments) name += " " + argument;
  for (const auto& [key, value] : run.keys) name += " " + key.substr(key.rfind('.') + 1) + "=" + value;
  if (run.spawn != Run().spawn) name += " spawn=" + run.spawn;
  return name;
}

}  // namespace

const SchemeRow& RowOf(Scheme scheme) { return *std::ranges::find(kSchemes, scheme, &SchemeRow::scheme); }

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
  runs->programs_ = settings.Below("programs");
  if (runs->programs_.empty()) return Error{settings.name() + ": 'programs' is missing"};
  GL_TRY(uncounted, settings.List("uncounted"));
  runs->uncounted_ = std::move(uncounted);
  GL_TRY(unshared, settings.List("unshared"));
  runs->unshared_ = std::move(unshared);
  GL_TRY(keys, KeysFrom(settings, "keys"));
  runs->keys_ = std::move(keys);
  return runs;
}

bool Runs::Can(const std::string& program, Scheme scheme) const {
  const bool counts = scheme == Scheme::kFusion || scheme == Scheme::kGraph || scheme == Scheme::kGemtc;
  return !counts || std::ranges::find(uncounted_, program) == uncounted_.end();
}

Result<sim::DeviceSpec> Runs::DeviceOf(const Run& run) const {
  GL_TRY(device, sim::LoadDevice(run.device.empty() ? device_ : run.device));
  const SchemeRow& row = RowOf(run.scheme);
  GL_TRY_STATUS(EquipForTiming({.policy = row.policy, .parts = "", .values = "", .launches = "", .ranges = ""}, device));
  const auto set = [&](const std::string& key, const std::string& value) -> Status {
    // Keys of a runtime mean nothing where it does not run.
    const std::string part = key.starts_with("hardware.") ? key.substr(9, key.find('.', 9) - 9) : "";
    if (!part.empty() && !hardware::Has(device, part)) return {};
    return sim::SetDeviceKey(key, value, settings_.name() + ": " + key, device);
  };
  if (run.device.empty() || run.device == device_) {
    for (const auto& [key, value] : keys_) GL_TRY_STATUS(set(key, value));
  }
  for (const auto& [key, value] : run.keys) GL_TRY_STATUS(set(key, value));
  if (run.scheme == Scheme::kBatching) {
    GL_TRY(batch, BatchOf(run, device));
    GL_TRY_STATUS(set("hardware.pagoda.batch", std::to_string(batch)));
  }
  GL_TRY_STATUS(sim::ValidateDevice(device));
  return device;
}

/// A batch is as many tasks as blocks of their threads are on the device, or as many as the keys say.
Result<std::uint64_t> Runs::BatchOf(const Run& run, const sim::DeviceSpec& device) const {
  const auto number = [](std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  if (const auto key = run.keys.find("hardware.gemtc.batch"); key != run.keys.end() && number(key->second) != 0) return number(key->second);
  GL_TRY(words, settings_.List("programs." + run.program));
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  std::uint64_t threads = 128;  // as the programs have it
  for (const std::string& word : words) {
    if (word.starts_with("--threads=")) threads = std::max<std::uint64_t>(1, number(word.substr(10)));
  }
  return std::max<std::uint64_t>(1, std::min<std::uint64_t>(device.sm.max_blocks, device.sm.max_threads / threads) * device.sm.count);
}

Result<FileIdentity> Runs::TraceOfRun(const Run& run) {
  GL_TRY(words, settings_.List("programs." + run.program));
  if (words.empty()) return Error{settings_.name() + ": programs." + run.program + " names no program"};
  const std::string program = words.front();
  words.erase(words.begin());
  if (RowOf(run.scheme).batches && run.spawn != "free") {
    GL_TRY(device, DeviceOf(run));
    GL_TRY(batch, BatchOf(run, device));
    words.push_back("--spawn=" + run.spawn);
    words.push_back("--batch=" + std::to_string(batch));
  }
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  words.push_back(std::string("--form=") + RowOf(run.scheme).form);
  if (RowOf(run.scheme).independent) words.emplace_back("--streams=1024");
  const bool shares = std::ranges::find(unshared_, run.program) != unshared_.end();
  if (run.scheme == Scheme::kGemtc && shares) words.emplace_back("--shared=no");
  const WorkloadRun workload{.study = "pagoda", .name = run.program, .program = program, .arguments = std::move(words)};
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
  const std::string policy = RowOf(run.scheme).policy;
  return Measurement{.what = NameOf(run),
                     .key = MeasurementKey(device) + " pagoda v" + std::to_string(kVersion) + " " + policy + " " + traced.hash,
                     .measure = [device, policy, path = traced.path] { return MeasureRun(device, policy, path); }};
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

/// The program's line "NAME: N ms wall, …".
Result<double> Runs::HostMilliseconds(const std::string& program, const std::vector<std::string>& arguments) const {
  GL_TRY(words, settings_.List("programs." + program));
  const std::filesystem::path path = environment_.programs / "pagoda" / words.front();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return -1.0;
  // Its check of results needs a device.
  std::string command = environment_.tool.string() + " run -q -- " + path.string();
  for (std::size_t i = 1; i < words.size(); ++i) command += " " + words[i];
  for (const std::string& argument : arguments) command += " " + argument;
  FILE* const output = popen((command + " --form=pthreads --time").c_str(), "r");
  if (output == nullptr) return Error{"cannot start " + path.string()};
  std::array<char, 512> line{};
  double milliseconds = -1;
  while (fgets(line.data(), line.size(), output) != nullptr) {
    const char* const colon = std::strchr(line.data(), ':');
    if (colon != nullptr && std::strstr(line.data(), " ms wall") != nullptr) std::sscanf(colon, ": %lf", &milliseconds);
  }
  if (pclose(output) != 0) return Error{command + " failed"};
  return milliseconds;
}

}  // namespace gridloom::study::pagoda
