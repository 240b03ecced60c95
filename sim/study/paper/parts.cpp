#include "sim/study/paper/parts.h"

#include <cmath>

namespace gridloom::study {

nlohmann::ordered_json Cell(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json PaperValue(const Settings& settings, const std::string& key, const std::string& name) {
  const auto number = settings.Number("paper." + key + "." + name);
  return number.ok() ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

Status AddFinding(const Settings& settings, const std::string& what, const std::string& key, const std::string& ours,
                  Exhibit& exhibit) {
  GL_TRY(paper, settings.Text("paper.findings." + key));
  exhibit.findings.push_back({what, ours, paper});
  exhibit.notes.push_back(what + ": " + ours + "; the paper: " + paper + ".");
  return {};
}

Status AddPapersNote(const Settings& settings, const std::string& key, Exhibit& exhibit) {
  GL_TRY(paper, settings.Text("paper.findings." + key));
  exhibit.notes.push_back("The paper: " + paper + ".");
  return {};
}

Result<DeviceKeys> KeysFrom(const Settings& settings, const std::string& key) {
  GL_TRY(texts, settings.List(key));
  DeviceKeys keys;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos) return Error{settings.name() + ": " + key + " has '" + text + "', expected KEY=VALUE"};
    keys[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return keys;
}

Result<std::vector<std::pair<std::string, DeviceKeys>>> ReadingsFrom(const Settings& settings) {
  std::vector<std::pair<std::string, DeviceKeys>> readings = {{"default", {}}};
  for (const std::string& name : settings.Below("readings")) {
    GL_TRY(keys, KeysFrom(settings, "readings." + name));
    readings.emplace_back(name, std::move(keys));
  }
  return readings;
}

}  // namespace gridloom::study
