// The example of a study in docs/extending.md.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "sim/study/studies.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

/// A folder for traces and measurements, empty at first. There are no programs: the traces that come with Gridloom
/// stand in.
Environment EnvironmentIn(const fs::path& work) {
  fs::remove_all(work);
  fs::create_directories(work);
  return {.tool = "/nonexistent/gridloom",
          .programs = "/nonexistent",
          .work = work,
          .kept = "configs/experiments/traces",
          .threads = 1};
}

Exhibit Show(const Settings& settings, const Environment& environment) {
  const auto study = CreateStudy(settings, environment);
  INFO((study.ok() ? std::string() : study.error().message));
  REQUIRE(study.ok());
  const auto show = ExhibitsToShow(settings, **study);
  REQUIRE(show.ok());
  CHECK(*show == std::vector<std::string>{"scaling"});
  auto exhibit = (*study)->Show("scaling");
  INFO((exhibit.ok() ? std::string() : exhibit.error().message));
  REQUIRE(exhibit.ok());
  return *std::move(exhibit);
}

Settings Sms() {
  auto settings = Settings::Load(EXAMPLE_FOLDER "/configs/experiments/sms.yaml");
  INFO((settings.ok() ? std::string() : settings.error().message));
  REQUIRE(settings.ok());
  REQUIRE(settings->Set("sms", "1 2"));
  return *std::move(settings);
}

TEST_CASE("Sms_MoreMultiprocessors_AreFaster_AndAreMeasuredOnce") {
  const Settings settings = Sms();
  std::size_t measured = 0;
  Environment environment = EnvironmentIn(fs::path(EXAMPLE_FOLDER) / "work");
  environment.progress = [&](std::size_t, std::size_t, const std::string& what) {
    ++measured;
    CHECK(what.starts_with("tea, alone count="));
  };
  const Exhibit exhibit = Show(settings, environment);
  CHECK(exhibit.name == "scaling");
  REQUIRE(exhibit.rows.size() == 2);
  CHECK(exhibit.rows[0] == std::vector<nlohmann::ordered_json>{"c2050", "tea", "1", 1.0, 1.0});
  CHECK(exhibit.rows[1][3].get<double>() > 1.5);
  CHECK(exhibit.rows[1][4] == 2.0);  // the paper's
  CHECK(measured == 2);
  CHECK(Show(settings, environment).rows == exhibit.rows);
  CHECK(measured == 2);
}

TEST_CASE("Sms_MistakesInTheFile_AreToldBeforeAnythingIsMeasured") {
  const auto message = [](const std::string& key, const std::string& value) {
    Settings settings = Sms();
    REQUIRE(settings.Set(key, value));
    const auto study = CreateStudy(settings, EnvironmentIn(fs::path(EXAMPLE_FOLDER) / "mistakes"));
    return study.ok() ? std::string() : study.error().message;
  };
  CHECK(message("device", "c2051").find("did you mean 'c2050'?") != std::string::npos);
  CHECK(message("device", "") == "sms: 'device' is empty");
}

}  // namespace
}  // namespace gridloom::study
