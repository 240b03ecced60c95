#include "sim/study/pagoda/pagoda.h"

#include <algorithm>
#include <utility>

#include "sim/study/pagoda/exhibits.h"

namespace gridloom::study {
namespace pagoda {
namespace {

/// A new exhibit is a row.
constexpr std::pair<const char*, Result<Exhibit> (*)(const Settings&, Runs&)> kExhibits[] = {
    {"table3", Table3}, {"fig5", Fig5},   {"fig6", Fig6},     {"fig7", Fig7},         {"fig8", Fig8},       {"fig9", Fig9},
    {"fig10", Fig10},   {"fig11", Fig11}, {"table5", Table5}, {"readings", Readings}, {"devices", Devices},
};

class PagodaStudy final : public Study {
 public:
  PagodaStudy(const Settings& settings, Environment environment) : settings_(settings), environment_(std::move(environment)) {}

  Status ReadSettings() {
    GL_TRY(runs, Runs::Create(settings_, environment_));
    runs_ = std::move(runs);
    GL_TRY(made, runs_->DeviceOf({.scheme = Scheme::kPagoda}));
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

Status AddFinding(const Settings& settings, const std::string& what, const std::string& key, const std::string& ours, Exhibit& exhibit) {
  GL_TRY(paper, settings.Text("paper.findings." + key));
  exhibit.findings.push_back({what, ours, paper});
  exhibit.notes.push_back(what + ": " + ours + "; the paper: " + paper + ".");
  return {};
}

}  // namespace pagoda

Result<std::unique_ptr<Study>> MakePagoda(const Settings& settings, const Environment& environment) {
  auto study = std::make_unique<pagoda::PagodaStudy>(settings, environment);
  GL_TRY_STATUS(study->ReadSettings());
  return std::unique_ptr<Study>(std::move(study));
}

}  // namespace gridloom::study
