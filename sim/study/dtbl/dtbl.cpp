#include "sim/study/dtbl/dtbl.h"

#include <algorithm>
#include <utility>

#include "sim/study/dtbl/exhibits.h"

namespace gridloom::study {
namespace dtbl {
namespace {

/// A new exhibit is a row.
constexpr std::pair<const char*, Result<Exhibit> (*)(const Settings&, Runs&)> kExhibits[] = {
    {"fig6", Fig6},   {"fig7", Fig7},   {"fig8", Fig8},       {"fig9", Fig9},         {"fig10", Fig10},
    {"fig11", Fig11}, {"fig12", Fig12}, {"matches", Matches}, {"readings", Readings}, {"devices", Devices},
};

class DtblStudy final : public Study {
 public:
  DtblStudy(const Settings& settings, Environment environment) : settings_(settings), environment_(std::move(environment)) {}

  Status ReadSettings() {
    GL_TRY(runs, Runs::Create(settings_, environment_));
    runs_ = std::move(runs);
    GL_TRY(made, runs_->DeviceOf({.form = Form::kDtbl}));
    static_cast<void>(made);
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
}  // namespace dtbl

Result<std::unique_ptr<Study>> MakeDtbl(const Settings& settings, const Environment& environment) {
  auto study = std::make_unique<dtbl::DtblStudy>(settings, environment);
  GL_TRY_STATUS(study->ReadSettings());
  return std::unique_ptr<Study>(std::move(study));
}

}  // namespace gridloom::study
