#include "sim/study/sweep/file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "rewriter/support/printable.h"
#include "rewriter/support/whole_file.h"
#include "sim/device/yaml_map.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMixes = "mixes.", kParameters = "parameters.";

/// What a key without further parts sets: a text, a list of texts or a number.
struct Key {
  std::string_view name;
  std::string* text = nullptr;
  std::vector<std::string>* list = nullptr;
  unsigned* number = nullptr;
};

struct Read {
  Sweep sweep;
  std::vector<std::string> traces;
  std::vector<Workload> mixes;
  std::unordered_map<std::string, std::size_t> mix_places, parameter_places;  ///< by name
};

std::vector<Key> Keys(Read& read) {
  ReplayOptions& replays = read.sweep.replays;
  SlurmRequest& slurm = read.sweep.slurm;
  const auto text = [](std::string_view name, std::string& value) { return Key{name, &value, nullptr, nullptr}; };
  const auto list = [](std::string_view name, std::vector<std::string>& value) {
    return Key{name, nullptr, &value, nullptr};
  };
  const auto number = [](std::string_view name, unsigned& value) { return Key{name, nullptr, nullptr, &value}; };
  return {text("title", replays.title),
          text("report", replays.report),
          text("baseline", replays.baseline),
          list("traces", read.traces),
          list("devices", replays.devices),
          list("policies", replays.policies),
          list("hardware", replays.hardware),
          number("threads", replays.threads),
          number("most_instructions", replays.most_instructions),
          text("slurm.partition", slurm.partition),
          text("slurm.account", slurm.account),
          text("slurm.time", slurm.time),
          text("slurm.memory", slurm.memory),
          number("slurm.cpus", slurm.cpus),
          number("slurm.tasks", slurm.tasks),
          number("slurm.at_once", slurm.at_once),
          number("slurm.retries", slurm.retries),
          list("slurm.options", slurm.options)};
}

Error At(const std::string& path, const sim::YamlEntry& entry, const std::string& message) {
  return Error{path + ":" + std::to_string(entry.line) + ": " + message};
}

Status Set(const Key& key, const sim::YamlEntry& entry, const std::string& path) {
  // They become lines of a script.
  if ((key.name.starts_with("slurm.") || key.name == "report") && Printable(entry.value) != entry.value)
    return At(path, entry, entry.key + " has control characters or line breaks");
  if (key.text != nullptr) {
    if (!key.text->empty()) return At(path, entry, entry.key + " has one value, not a list");
    *key.text = entry.value;
  } else if (key.list != nullptr) {
    key.list->push_back(entry.value);
  } else {
    const char* end = entry.value.data() + entry.value.size();
    const auto [rest, error] = std::from_chars(entry.value.data(), end, *key.number);
    if (error != std::errc() || rest != end)
      return At(path, entry, entry.key + " is '" + entry.value + "'; expected a number");
  }
  return {};
}

/// `mixes.both` and its traces; `parameters.timing.l1.mshrs` and its values.
bool TakeNamed(const sim::YamlEntry& entry, Read& read) {
  if (entry.key.starts_with(kMixes)) {
    const std::string name = entry.key.substr(kMixes.size());
    const auto [place, is_new] = read.mix_places.try_emplace(name, read.mixes.size());
    if (is_new) read.mixes.push_back({name, {}});
    read.mixes[place->second].traces.push_back(entry.value);
    return true;
  }
  if (!entry.key.starts_with(kParameters)) return false;
  const std::string key = entry.key.substr(kParameters.size());
  auto& parameters = read.sweep.replays.parameters;
  const auto [place, is_new] = read.parameter_places.try_emplace(key, parameters.size());
  if (is_new) parameters.push_back({key, {}});
  parameters[place->second].values.push_back(entry.value);
  return true;
}

/// Relative to the folder of the sweep's file; absolute, so that it means the same on every machine that shares the
/// files.
void Resolve(const fs::path& folder, std::string& path) {
  path = fs::absolute(fs::path(path).is_absolute() ? fs::path(path) : folder / path).lexically_normal().string();
}

}  // namespace

Result<Sweep> ParseSweep(const std::string& text, const std::string& path) {
  GL_TRY(entries, sim::ReadYamlLists(text, path));
  Read read;
  const std::vector<Key> keys = Keys(read);
  std::vector<std::string_view> known{"mixes", "parameters"};
  for (const Key& key : keys) known.push_back(key.name);
  for (const sim::YamlEntry& entry : entries) {
    const auto key = std::ranges::find(keys, entry.key, &Key::name);
    if (key == keys.end() && TakeNamed(entry, read)) continue;
    if (key == keys.end()) return sim::UnknownYamlKey(entry, path, known, "docs/commands.md lists the keys of a sweep");
    GL_TRY_STATUS(Set(*key, entry, path));
  }
  ReplayOptions& replays = read.sweep.replays;
  const fs::path folder = fs::absolute(path).parent_path();
  for (std::string& trace : read.traces) Resolve(folder, trace);
  for (Workload& mix : read.mixes) {
    for (std::string& trace : mix.traces) Resolve(folder, trace);
  }
  for (std::string& device : replays.devices) {
    if (device.ends_with(".yaml")) Resolve(folder, device);
  }
  replays.workloads = WorkloadsOf(read.traces, false);
  std::unordered_set<std::string> taken;
  for (const Workload& workload : replays.workloads) taken.insert(workload.name);
  for (Workload& mix : read.mixes) {
    if (taken.contains(mix.name)) return Error{path + ": mix '" + mix.name + "' has the name of a trace"};
    replays.workloads.push_back(std::move(mix));
  }
  if (replays.workloads.empty()) return Error{path + ": there are neither traces nor mixes"};
  if (replays.report.empty()) replays.report = fs::path(path).stem().string() + "-report";
  Resolve(folder, replays.report);
  if (replays.title.empty()) replays.title = fs::path(path).stem().string();
  if (read.sweep.slurm.tasks == 0 || read.sweep.slurm.cpus == 0)
    return Error{path + ": slurm.tasks and slurm.cpus must be at least 1"};
  return std::move(read.sweep);
}

Result<Sweep> ReadSweepFile(const std::string& path) {
  GL_TRY(text, ReadWholeFile(path));
  return ParseSweep(text, path);
}

}  // namespace gridloom::study
