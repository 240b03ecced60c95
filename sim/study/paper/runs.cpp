#include "sim/study/paper/runs.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "rewriter/support/printable.h"
#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"
#include "sim/study/experiment/workload_traces.h"
#include "sim/study/measure/timed_device.h"
#include "sim/study/paper/paper.h"
#include "sim/study/paper/parts.h"

namespace gridloom::study {
namespace {

std::vector<std::string> WordsOf(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

void Append(const std::vector<std::string>& more, std::vector<std::string>& words) {
  words.insert(words.end(), more.begin(), more.end());
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Several replays of a trace may have the same to say.
void TellOnce(const std::string& sentence) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.insert(sentence).second) std::fprintf(stderr, "gridloom: %s\n", Printable(sentence).c_str());
}

/// What decides about a replay besides device, policy and trace.
std::string KeyOf(const ReplayInputs& inputs) {
  if (!inputs.kernels_only) return "";
  std::string key = " stages " + std::to_string(inputs.stages) + " together " + std::to_string(inputs.dka.together);
  for (const auto& [stages, shares] : inputs.dka.fixed) {
    key += " fixed";
    for (const std::size_t stage : stages) key += " " + std::to_string(stage);
    key += ":";
    for (const std::uint32_t share : shares) key += " " + std::to_string(share);
  }
  return key;
}

Result<std::vector<double>> NumbersOfReplay(const sim::DeviceSpec& device, const std::string& policy,
                                            const std::string& path, ReplayInputs inputs,
                                            Result<std::vector<double>> (*numbers)(const Replayed&)) {
  GL_TRY(file, trace::TraceFile::Open(path));
  inputs.dka.log = std::make_shared<std::vector<policy::DkaStep>>();
  GL_TRY(result, Replay(device, policy, {file}, 1, inputs));
  for (const std::string& note : result.notes) TellOnce(note);
  return numbers({.device = device, .file = *file, .result = result, .steps = *inputs.dka.log});
}

}  // namespace

Status Runs::ReadSettings() {
  const std::string programs(paper_.programs), devices(paper_.devices);
  GL_TRY(names, settings_.List(devices));
  devices_ = std::move(names);
  if (devices_.empty()) return Error{settings_.name() + ": '" + devices + "' is empty"};
  programs_ = settings_.Below(programs);
  if (programs_.empty()) return Error{settings_.name() + ": '" + programs + "' is missing"};
  if (settings_.Text("keys").ok()) {
    GL_TRY(keys, KeysFrom(settings_, "keys"));
    keys_ = std::move(keys);
  }
  for (const std::string& device : devices_) {
    GL_TRY(made, DeviceOf({.scheme = std::string(paper_.tried), .device = device}));
    static_cast<void>(made);
  }
  return {};
}

Status Runs::Begin(Measurements& kept) {
  kept_ = &kept;
  return {};
}

Scheme Runs::SchemeOf(const Run& run) const {
  if (run.scheme.empty()) return paper_.schemes.front();
  const auto row = std::ranges::find(paper_.schemes, run.scheme, &Scheme::name);
  return row != paper_.schemes.end() ? *row : Scheme{.name = run.scheme, .policy = run.scheme};
}

std::string Runs::NameOf(const Run& run) const {
  std::string name =
      run.program + ", " + std::string(SchemeOf(run).name) + (run.device.empty() ? "" : " on " + run.device);
  for (const std::string& argument : run.arguments) name += " " + argument;
  for (const auto& [key, value] : run.keys) name += " " + key.substr(key.rfind('.') + 1) + "=" + value;
  return name;
}

Result<Run> Runs::Completed(Run run) const {
  run.inputs.kernels_only = paper_.kernels_only;
  if (paper_.complete == nullptr) return run;
  GL_TRY(device, DeviceOfCompleted(run));
  GL_TRY_STATUS(paper_.complete(settings_, device, run));
  return run;
}

Status Runs::SetKeys(const DeviceKeys& keys, sim::DeviceSpec& device) const {
  for (const auto& [key, value] : keys)
    GL_TRY_STATUS(sim::SetDeviceKey(key, value, settings_.name() + ": " + key, device));
  return {};
}

Result<sim::DeviceSpec> Runs::DeviceOf(const Run& run) const {
  GL_TRY(completed, Completed(run));
  return DeviceOfCompleted(completed);
}

/// What the scheme needs is not to be set otherwise. Keys of parts that the device does not have mean nothing.
Result<sim::DeviceSpec> Runs::DeviceOfCompleted(const Run& run) const {
  const std::string& name = run.device.empty() ? device() : run.device;
  const Scheme scheme = SchemeOf(run);
  GL_TRY(device, DeviceNamed(settings_, name));
  if (!paper_.keys_stay || Contains(devices_, name)) GL_TRY_STATUS(SetKeys(keys_, device));
  if (!scheme.keys.empty()) {
    GL_TRY(further, KeysFrom(settings_, std::string(scheme.keys)));
    GL_TRY_STATUS(SetKeys(further, device));
  }
  GL_TRY_STATUS(SetKeys(run.keys, device));
  GL_TRY_STATUS(EquipForTiming({.policy = std::string(scheme.policy),
                                .parts = std::string(scheme.parts),
                                .values = "",
                                .launches = std::string(scheme.launches),
                                .ranges = ""},
                               device));
  GL_TRY_STATUS(sim::ValidateDevice(device));
  GL_TRY_STATUS(hardware::Check(device));
  return device;
}

Result<std::vector<std::string>> Runs::ArgumentsOf(const Run& run) const {
  const std::string sizes = run.sizes.empty() ? std::string(paper_.programs) : run.sizes;
  if (!paper_.names_programs && !Contains(settings_.Below(sizes), run.program)) return std::vector<std::string>();
  return settings_.List(sizes + "." + run.program);
}

Result<FileIdentity> Runs::TraceOfRun(const Run& run) {
  GL_TRY(completed, Completed(run));
  GL_TRY(words, ArgumentsOf(run));
  std::string program;
  if (paper_.names_programs) {
    if (words.empty())
      return Error{settings_.name() + ": " + std::string(paper_.programs) + "." + run.program + " names no program"};
    program = words.front();
    words.erase(words.begin());
  }
  Append(completed.arguments, words);
  Append(WordsOf(SchemeOf(run).arguments), words);
  const WorkloadRun workload{.study = std::string(paper_.folder.empty() ? paper_.name : paper_.folder),
                             .name = run.program,
                             .program = program,
                             .options = WordsOf(paper_.trace_options),
                             .arguments = std::move(words)};
  const std::string name = workload.FileName();
  if (const auto known = traces_.find(name); known != traces_.end()) return known->second;
  GL_TRY(path, TraceOf(workload, environment_));
  GL_TRY(identity, Identify(path.string()));
  return traces_[name] = identity;
}

Result<Measurement> Runs::MeasurementOf(const Run& run, const Kept& kept) {
  GL_TRY(completed, Completed(run));
  GL_TRY(device, DeviceOfCompleted(completed));
  GL_TRY(traced, TraceOfRun(run));
  const std::string policy(SchemeOf(run).policy);
  std::string key = MeasurementKey(device) + " " + std::string(paper_.name) + " v" + std::to_string(paper_.version);
  if (!kept.what.empty()) key += " " + std::string(kept.what);
  return Measurement{
      .what = NameOf(run),
      .key = key + " " + policy + KeyOf(completed.inputs) + " " + traced.hash,
      .measure = [device, policy, path = traced.path, inputs = completed.inputs, numbers = kept.numbers] {
        return NumbersOfReplay(device, policy, path, inputs, numbers);
      }};
}

Result<std::vector<std::vector<double>>> Runs::Measure(const std::vector<Run>& runs, const Kept& kept) {
  std::vector<Measurement> wanted;
  for (const Run& run : runs) {
    GL_TRY(measurement, MeasurementOf(run, kept));
    wanted.push_back(std::move(measurement));
  }
  GL_TRY_STATUS(kept_->Make(wanted));
  std::vector<std::vector<double>> all;
  for (const Measurement& one : wanted) {
    GL_TRY(numbers, kept_->Get(one));
    all.push_back(std::move(numbers));
  }
  return all;
}

}  // namespace gridloom::study
