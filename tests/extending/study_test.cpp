// The example of a study in docs/extending.md.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "sim/study/studies.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

/// A folder for traces and measurements, empty at first. There are no programs: the traces that come with Gridloom stand in.
Environment EnvironmentIn(const fs::path& work) {
  fs::remove_all(work);
  fs::create_directories(work);
  return {.tool = "/nonexistent/gridloom", .programs = "/nonexistent", .work = work, .kept = "configs/experiments/traces", .threads = 1};
}

TEST_CASE("Blocks_MoreBlocksOnAnSm_DoMoreInACycle") {
  auto settings = Settings::Load(EXAMPLE_FOLDER "/configs/experiments/blocks.yaml");
  INFO((settings.ok() ? std::string() : settings.error().message));
  REQUIRE(settings.ok());
  REQUIRE(settings->Set("devices", "c2050"));
  REQUIRE(settings->Set("most", "2"));

  const auto study = CreateStudy(*settings, EnvironmentIn(fs::path(EXAMPLE_FOLDER) / "work"));
  REQUIRE(study.ok());
  const auto show = ExhibitsToShow(*settings, **study);
  REQUIRE(show.ok());
  CHECK(*show == std::vector<std::string>{"blocks"});
  const auto exhibit = (*study)->Show("blocks");
  INFO((exhibit.ok() ? std::string() : exhibit.error().message));
  REQUIRE(exhibit.ok());
  REQUIRE(exhibit->rows.size() == 2);
  CHECK(exhibit->rows[0][0] == "c2050");
  CHECK(exhibit->rows[0][2].get<double>() > 0);
  CHECK(exhibit->rows[1][2].get<double>() > exhibit->rows[0][2].get<double>());
  CHECK(fs::file_size(fs::path(EXAMPLE_FOLDER) / "work/measurements.jsonl") > 0);
}

}  // namespace
}  // namespace gridloom::study
