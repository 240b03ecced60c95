// Experiment files, kept measurements, exhibits as text.
#include "sim/study/experiment/settings.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

#include "sim/study/experiment/exhibit.h"
#include "sim/study/experiment/study.h"
#include "sim/study/measure/rate_cache.h"

namespace gridloom::study {
namespace {

TEST_CASE("Settings_ReadNumbersListsAndNames") {
  const auto settings =
      Settings::FromText("a: {x: 1.5, y: 2 3}\nlist: one, two\nb:\n  p.q: 4\n  r: {s: 5}\n", "test.yaml");
  REQUIRE(settings.ok());
  CHECK(*settings->Number("a.x") == 1.5);
  CHECK(*settings->Numbers("a.y") == std::vector<double>{2, 3});
  CHECK(*settings->List("list") == std::vector<std::string>{"one", "two"});
  CHECK(settings->Below("a") == std::vector<std::string>{"x", "y"});
  CHECK(settings->Number("list").error().message == "test.yaml: 'list' is 'one, two'; expected a number");
  CHECK(settings->Text("c").error().message == "test.yaml: 'c' is missing");
}

TEST_CASE("Settings_InheritAndCanBeSet") {
  auto settings = Settings::Load("kernelet-fig13");
  REQUIRE(settings.ok());
  CHECK(*settings->List("show") == std::vector<std::string>{"fig13"});
  CHECK(*settings->Numbers("paper.table4.c2050.pc") == std::vector<double>{0.0096, 0.1404, 1});
}

TEST_CASE("Settings_Lowering_IsThatOfAllDevices_OfThePapersNone") {
  const auto lowering = [](const Settings& settings, const std::string& device) {
    const auto made = DeviceNamed(settings, device);
    INFO((made.ok() ? "" : made.error().message));
    REQUIRE(made.ok());
    return made->timing.lowering;
  };
  const auto silent = Settings::FromText("study: kernelet\n", "test.yaml");
  REQUIRE(silent.ok());
  CHECK(lowering(*silent, "k20c") == sim::Lowering::kFull);  // as configs/devices say
  for (const char* paper : {"crcs", "dtbl", "kernelet", "pagoda", "pipeline"}) {
    INFO(paper);
    const auto settings = Settings::Load(paper);
    REQUIRE(settings.ok());
    for (const char* device : {"k20c", "h200"}) CHECK(lowering(*settings, device) == sim::Lowering::kNone);
  }
  const auto wrong = Settings::FromText("lowering: some\n", "test.yaml");
  REQUIRE(wrong.ok());
  const auto refused = DeviceNamed(*wrong, "k20c");
  REQUIRE(!refused.ok());
  CHECK(refused.error().message.starts_with("test.yaml: lowering: "));
}

TEST_CASE("Settings_UnknownNames_AreErrorsWithTheNearest") {
  CHECK(Settings::Load("kernelet-fig99").error().message.find("did you mean 'kernelet-fig9'") != std::string::npos);
  auto settings = Settings::Load("kernelet-fig13");
  REQUIRE(settings.ok());
  CHECK(settings->Set("arrivals.sead", "2").error().message.find("did you mean 'arrivals.seed'") != std::string::npos);
  REQUIRE(settings->Set("arrivals.seed", "2"));
  CHECK(*settings->Number("arrivals.seed") == 2);
}

TEST_CASE("RateCache_KeepsNumbers_AndLeavesOutDamagedLines") {
  const std::string path = std::string(std::tmpnam(nullptr)) + ".jsonl";
  {
    const auto cache = RateCache::Open(path);
    REQUIRE(cache.ok());
    REQUIRE((*cache)->Add("one", {1, 0.1}));
    std::ofstream(path, std::ios::app) << "{\"key\": \"cut o";
    REQUIRE((*cache)->Add("two", {2}));
  }
  const auto cache = RateCache::Open(path);
  REQUIRE(cache.ok());
  CHECK((*cache)->Find("one") == std::vector<double>{1, 0.1});
  CHECK((*cache)->Find("two") == std::vector<double>{2});
  CHECK(!(*cache)->Find("three"));
  std::remove(path.c_str());
  const auto nowhere = RateCache::Open("/nonexistent/folder/rates.jsonl");
  REQUIRE(nowhere.ok());
  CHECK(!(*nowhere)->Add("one", {1}).ok());
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);  // nobody writes to it, nobody reads it
  CHECK(!RateCache::Open(path).ok());
  std::remove(path.c_str());
  const auto empty = RateCache::Open(path);
  REQUIRE(empty.ok());
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(!(*empty)->Add("one", {1}).ok());
  std::remove(path.c_str());
}

TEST_CASE("Exhibit_AsCsv_QuotesAndKeepsDigits") {
  const Exhibit exhibit{
      .name = "x", .title = "t", .columns = {"name", "value"}, .rows = {{"a, \"b\"", 0.1}, {nullptr, 3}}, .notes = {}};
  CHECK(CsvOf(exhibit) == "name,value\r\n\"a, \"\"b\"\"\",0.1\r\n,3\r\n");
}

}  // namespace
}  // namespace gridloom::study
