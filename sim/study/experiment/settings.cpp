#include "sim/study/experiment/settings.h"

#include <algorithm>
#include <charconv>

#include "rewriter/support/suggest.h"
#include "rewriter/support/whole_file.h"
#include "sim/device/device_files.h"
#include "sim/device/yaml_map.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

constexpr int kMostInheritance = 8;

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text + ",") {
    if (c != ',' && c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

bool ParseNumber(const std::string& text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Error Unknown(const std::string& name) {
  const std::vector<std::string> names = ExperimentNames();
  const std::vector<std::string_view> views(names.begin(), names.end());
  return Error{"no experiment '" + name + "'" + DidYouMean(name, views, "; `gridloom experiment --list` lists them")};
}

}  // namespace

Result<fs::path> ExperimentDirectory() {
  GL_TRY(devices, sim::DeviceDirectory());
  return devices.parent_path() / "experiments";
}

std::vector<std::string> ExperimentNames() {
  std::vector<std::string> names;
  const auto directory = ExperimentDirectory();
  if (!directory.ok()) return names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(*directory, error)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".yaml" && !path.stem().string().starts_with('_')) names.push_back(path.stem().string());
  }
  std::ranges::sort(names);
  return names;
}

Result<ExperimentLine> DescribeExperiment(const std::string& name) {
  GL_TRY(settings, Settings::Load(name));
  GL_TRY(study, settings.Text("study"));
  GL_TRY(about, settings.Text("about"));
  GL_TRY(show, settings.List("show"));
  return ExperimentLine{.study = std::move(study), .about = std::move(about), .show = std::move(show)};
}

Result<Settings> Settings::Load(const std::string& name) {
  fs::path path = name;
  if (name.find('/') == std::string::npos && !name.ends_with(".yaml")) {
    GL_TRY(directory, ExperimentDirectory());
    path = directory / (name + ".yaml");
    std::error_code error;
    if (name.starts_with('_') || !fs::exists(path, error)) return Unknown(name);
  }
  Settings settings;
  settings.name_ = path.stem().string();
  settings.file_ = path.string();
  GL_TRY_STATUS(settings.Read(path, 0));
  return settings;
}

Result<Settings> Settings::FromText(std::string_view text, const std::string& file) {
  Settings settings;
  settings.name_ = settings.file_ = file;
  GL_TRY(entries, sim::ReadYamlMap(text, file));
  for (const sim::YamlEntry& entry : entries) settings.Fill(entry.key, entry.value);
  return settings;
}

Status Settings::Read(const fs::path& path, int depth) {
  if (depth > kMostInheritance) return Error{path.string() + ": inherits from itself"};
  GL_TRY(text, ReadWholeFile(path.string()));
  GL_TRY(entries, sim::ReadYamlMap(text, path.string()));
  std::string parent;
  for (const sim::YamlEntry& entry : entries) {
    if (entry.key == "inherits") parent = entry.value;
    else Fill(entry.key, entry.value);
  }
  return parent.empty() ? Status() : Read(path.parent_path() / (parent + ".yaml"), depth + 1);
}

void Settings::Fill(const std::string& key, const std::string& value) {
  if (values_.try_emplace(key, value).second) order_.push_back(key);
}

Status Settings::Set(const std::string& key, const std::string& value) {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    const std::vector<std::string_view> known(order_.begin(), order_.end());
    return Error{file_ + " has no '" + key + "'" + DidYouMean(key, known)};
  }
  found->second = value;
  return {};
}

Result<std::string> Settings::Text(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return Error{file_ + ": '" + key + "' is missing"};
  return found->second;
}

Result<double> Settings::Number(const std::string& key) const {
  GL_TRY(text, Text(key));
  double number = 0;
  if (!ParseNumber(text, number)) return Error{file_ + ": '" + key + "' is '" + text + "'; expected a number"};
  return number;
}

Result<std::vector<std::string>> Settings::List(const std::string& key) const {
  GL_TRY(text, Text(key));
  return Words(text);
}

Result<std::vector<double>> Settings::Numbers(const std::string& key) const {
  GL_TRY(words, List(key));
  std::vector<double> numbers;
  for (const std::string& word : words) {
    double number = 0;
    if (!ParseNumber(word, number)) return Error{file_ + ": '" + key + "' has '" + word + "'; expected numbers"};
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::string> Settings::Below(const std::string& key) const {
  std::vector<std::string> names;
  const std::string prefix = key + ".";
  for (const std::string& known : order_) {
    if (!known.starts_with(prefix)) continue;
    std::string name = known.substr(prefix.size());
    // Keys of tables may be numbers with a point: what follows counts as another level only below a word.
    if (const auto dot = name.find('.'); dot != std::string::npos && (name[0] < '0' || name[0] > '9')) name.resize(dot);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace gridloom::study
