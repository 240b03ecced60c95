#include "sim/study/crcs/crcs.h"

#include <algorithm>
#include <utility>

#include "sim/study/crcs/exhibits.h"

namespace gridloom::study {
namespace crcs {
namespace {

/// A new exhibit is a row.
constexpr std::pair<const char*, Result<Exhibit> (*)(const Settings&, Runs&)> kExhibits[] = {
    {"fig2", Fig2},           {"fig9", Fig9},       {"fig10", Fig10},   {"fig11", Fig11},       {"fig12", Fig12}, {"random", Random},
    {"profilers", Profilers}, {"storage", Storage}, {"beyond", Beyond}, {"readings", Readings}, {"pays", Pays},
};

class CrcsStudy final : public Study {
 public:
  CrcsStudy(const Settings& settings, Environment environment) : settings_(settings), environment_(std::move(environment)) {}

  Status ReadSettings() {
    GL_TRY(runs, Runs::Create(settings_, environment_));
    runs_ = std::move(runs);
    GL_TRY(device, runs_->DeviceOf({.policy = "crcs-fifo"}));
    static_cast<void>(device);
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

nlohmann::ordered_json PaperValue(const Settings& settings, const std::string& key, const std::string& workload) {
  const std::vector<std::string> known = settings.Below("paper." + key);
  if (std::ranges::find(known, workload) == known.end()) return nullptr;
  const auto number = settings.Number("paper." + key + "." + workload);
  return number.ok() ? nlohmann::ordered_json(*number) : nullptr;
}

}  // namespace crcs

Result<std::unique_ptr<Study>> MakeCrcs(const Settings& settings, const Environment& environment) {
  auto study = std::make_unique<crcs::CrcsStudy>(settings, environment);
  GL_TRY_STATUS(study->ReadSettings());
  return std::unique_ptr<Study>(std::move(study));
}

}  // namespace gridloom::study
