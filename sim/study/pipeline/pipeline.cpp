#include "sim/study/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

#include "sim/study/pipeline/exhibits.h"

namespace gridloom::study {
namespace pipeline {
namespace {

/// A new exhibit is a row.
constexpr std::pair<const char*, Result<Exhibit> (*)(const Settings&, Runs&)> kExhibits[] = {
    {"classes", Classes},   {"fig2", Fig2},       {"fig3", Fig3},           {"fig4", Fig4},         {"fig6", Fig6},   {"table4", Table4},
    {"fig9", Fig9},         {"fig10", Fig10},     {"fig11", Fig11},         {"fig12", Fig12},       {"best", Best},   {"starts", Starts},
    {"together", Together}, {"guarded", Guarded}, {"victims", VictimTable}, {"readings", Readings}, {"sizes", Sizes},
};

class PipelineStudy final : public Study {
 public:
  PipelineStudy(const Settings& settings, Environment environment) : settings_(settings), environment_(std::move(environment)) {}

  Status ReadSettings() {
    GL_TRY(runs, Runs::Create(settings_, environment_));
    runs_ = std::move(runs);
    for (const std::string& device : runs_->devices()) {
      GL_TRY(made, runs_->DeviceOf(Allocated("", device, true)));
      static_cast<void>(made);
    }
    return {};
  }

  std::vector<std::string> Exhibits() const override {
    std::vector<std::string> names;
    for (const auto& [name, show] : kExhibits) names.emplace_back(name);
    return names;
  }

  Result<Exhibit> Show(const std::string& name) override {
    const auto row = std::ranges::find(kExhibits, name, [](const auto& exhibit) { return std::string(exhibit.first); });
    GL_TRY(exhibit, row->second(settings_, *runs_));
    exhibit.name = name;
    return exhibit;
  }

 private:
  const Settings settings_;
  const Environment environment_;
  std::unique_ptr<Runs> runs_;  // last: it measures with the above
};

}  // namespace

nlohmann::ordered_json PaperValue(const Settings& settings, const std::string& key, const std::string& name) {
  const std::vector<std::string> known = settings.Below("paper." + key);
  if (std::ranges::find(known, name) == known.end()) return nullptr;
  const auto number = settings.Number("paper." + key + "." + name);
  return number.ok() ? nlohmann::ordered_json(*number) : nullptr;
}

Result<bool> IsLight(const Settings& settings, const std::string& workload) {
  GL_TRY(light, settings.List("light"));
  return std::ranges::find(light, workload) != light.end();
}

Status AddFinding(const Settings& settings, const std::string& what, const std::string& key, const std::string& ours, Exhibit& exhibit) {
  GL_TRY(paper, settings.Text("paper.findings." + key));
  exhibit.findings.push_back({what, ours, paper});
  exhibit.notes.push_back(what + ": " + ours + "; the paper: " + paper + ".");
  return {};
}

void Means::Add(double value, bool light) {
  sum_[light ? 0 : 1] += value;
  ++count_[light ? 0 : 1];
}

double Means::Of(bool light, bool heavy) const {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    if (i == 0 ? !light : !heavy) continue;
    sum += sum_[i];
    count += count_[i];
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace pipeline

Result<std::unique_ptr<Study>> MakePipeline(const Settings& settings, const Environment& environment) {
  auto study = std::make_unique<pipeline::PipelineStudy>(settings, environment);
  GL_TRY_STATUS(study->ReadSettings());
  return std::unique_ptr<Study>(std::move(study));
}

}  // namespace gridloom::study
