// The list of studies, and whether every experiment that comes with Gridloom is one of a study's.
#include "sim/study/studies.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

namespace gridloom::study {
namespace {

/// Nothing is there: whatever measures or traces fails.
Environment Nowhere() {
  return {.tool = "/nonexistent/gridloom", .programs = "/nonexistent", .work = "/nonexistent", .kept = "/nonexistent"};
}

Settings FromText(const std::string& text) {
  auto settings = Settings::FromText(text, "mine.yaml");
  REQUIRE(settings.ok());
  return *std::move(settings);
}

TEST_CASE("Studies_HaveNamesOfTheirOwn_AndOneLine") {
  std::set<std::string_view> names;
  for (const StudyRow& row : Studies()) {
    CHECK(names.insert(row.name).second);
    CHECK(!row.summary.empty());
    CHECK(row.summary.find('\n') == std::string_view::npos);
  }
}

TEST_CASE("CreateStudy_OfAnUnknownName_NamesTheNearestOrAll") {
  const auto message = [](const std::string& text) {
    const auto study = CreateStudy(FromText(text), Nowhere());
    return study.ok() ? std::string() : study.error().message;
  };
  CHECK(message("study: kernlet\n") == "mine.yaml: no study 'kernlet'; did you mean 'kernelet'?");
  CHECK(message("study: of-something-else\n").find("; there is crcs, dtbl, kernelet") != std::string::npos);
  CHECK(message("show: fig1\n") == "mine.yaml: 'study' is missing");
}

TEST_CASE("Experiments_SayWhatTheyShow_AndTheirStudiesHaveIt") {
  const std::vector<std::string> names = ExperimentNames();
  REQUIRE(!names.empty());
  std::set<std::string> studied;
  for (const std::string& name : names) {
    INFO(name);
    const auto line = DescribeExperiment(name);
    REQUIRE(line.ok());
    CHECK(!line->about.empty());
    CHECK(line->about.size() <= 100);
    const auto settings = Settings::Load(name);
    REQUIRE(settings.ok());
    const auto study = CreateStudy(*settings, Nowhere());  // measures nothing
    REQUIRE(study.ok());
    const auto show = ExhibitsToShow(*settings, **study);
    INFO((show.ok() ? "" : show.error().message));
    REQUIRE(show.ok());
    CHECK(!show->empty());
    studied.insert(line->study);
  }
  for (const StudyRow& row : Studies()) CHECK(studied.contains(std::string(row.name)));
}

TEST_CASE("Studies_EveryExhibitHasAnExperimentOfItsOwn") {
  for (const StudyRow& row : Studies()) {
    std::set<std::string> alone;
    std::vector<std::string> exhibits;
    for (const std::string& name : ExperimentNames()) {
      const auto settings = Settings::Load(name);
      REQUIRE(settings.ok());
      if (*settings->Text("study") != row.name) continue;
      if (exhibits.empty()) exhibits = (*CreateStudy(*settings, Nowhere()))->Exhibits();
      if (const auto show = *settings->List("show"); show.size() == 1) alone.insert(show[0]);
    }
    for (const std::string& exhibit : exhibits) {
      INFO(row.name << " " << exhibit);
      CHECK(alone.contains(exhibit));
    }
  }
}

TEST_CASE("ExhibitsToShow_NamesTheNearestOfThoseThereAre") {
  auto settings = Settings::Load("kernelet");
  REQUIRE(settings.ok());
  const auto study = CreateStudy(*settings, Nowhere());
  REQUIRE(study.ok());
  REQUIRE(settings->Set("show", "fig6 fig13x"));
  const auto show = ExhibitsToShow(*settings, **study);
  REQUIRE(!show.ok());
  CHECK(show.error().message == "kernelet: the study has no exhibit 'fig13x'; did you mean 'fig13'?");
}

}  // namespace
}  // namespace gridloom::study
