// Programs that share a device, beside what each of them takes alone.
#include "sim/study/replay/sharing.h"

#include <catch2/catch.hpp>

#include "sim/study/replay/columns.h"
#include "sim/study/replay/report.h"
#include "tests/sim/study/replay/replay_folder.h"

namespace gridloom::study {
namespace {

ReplayOptions MixOptions(const ReplayFolder& folder) {
  folder.WriteTrace("two.gltrace", 600);
  ReplayOptions options = folder.Options();
  options.workloads = WorkloadsOf({folder.Path("one.gltrace"), folder.Path("two.gltrace")}, true);
  return options;
}

TEST_CASE("Plan_ProgramsOfAMix_AreReplayedAlone_UnlessTheyAreAnyway") {
  const ReplayFolder folder;
  ReplayOptions options = MixOptions(folder);
  const auto plan = PlanReplays(options);
  REQUIRE(plan.ok());
  CHECK(plan->asked == 4);
  REQUIRE(plan->cells.size() == 8);  // two programs on two devices
  CHECK(plan->alone.at({0, 0}) == std::vector<std::size_t>{4, 5});
  CHECK(plan->alone.at({0, 1}) == std::vector<std::size_t>{6, 7});
  CHECK(plan->NameOf(plan->cells[5]) == "two alone on gtx480 under leftover");
  CHECK(plan->ProgramsOf(plan->cells[0]) == std::vector<std::string>{"one", "two"});
  // Both alone under the policy are asked for, too.
  options.workloads.push_back({"one", {folder.Path("one.gltrace")}});
  options.workloads.push_back({"another", {folder.Path("two.gltrace")}});
  const auto both = PlanReplays(options);
  REQUIRE(both.ok());
  CHECK(both->cells.size() == 12);
  CHECK(both->alone.at({0, 0}) == std::vector<std::size_t>{5, 9});
  // Those of a policy that is the baseline.
  options.baseline = "serial";
  CHECK(PlanReplays(options)->alone.at({0, 0}) == std::vector<std::size_t>{4, 8});
  options.alone = false;
  CHECK(PlanReplays(options)->alone.empty());
}

TEST_CASE("Replay_OfAMix_HasFiguresThatFollowFromTheReplaysOfItsProgramsAlone") {
  const ReplayFolder folder;
  ReplayOptions options = MixOptions(folder);
  options.report.clear();
  const auto run = RunReplay(options);
  REQUIRE(run.ok());
  ReplayOptions apart = options;
  apart.workloads = WorkloadsOf({folder.Path("one.gltrace"), folder.Path("two.gltrace")}, false);
  apart.policies = {"leftover"};
  const auto alone = RunReplay(apart);  // one on both devices, then two
  REQUIRE(alone.ok());
  for (std::size_t i = 0; i < 4; ++i) {
    const Json record = RunRecord(*run, i);
    const double one = alone->cells[i / 2].result["seconds"], two = alone->cells[2 + i / 2].result["seconds"];
    CHECK(record["programs"][0]["alone_seconds"] == one);
    CHECK(record["programs"][1]["alone_seconds"] == two);
    const double first = record["programs"][0]["program_seconds"], second = record["programs"][1]["program_seconds"];
    CHECK(std::max(first, second) == record["seconds"].get<double>());
    CHECK(record["stp"] == Approx(one / first + two / second));
    CHECK(record["antt"] == Approx((first / one + second / two) / 2));
    CHECK(record["fairness"] == Approx(std::min(one / first, two / second) / std::max(one / first, two / second)));
  }
  // A program alone has none.
  CHECK(RunRecord(*alone, 0)["stp"].is_null());
  CHECK(ProgramRecords(RunRecord(*alone, 0)).empty());
}

TEST_CASE("Replay_OfTheLaunchesOfAMixAlone_KnowsWhenEachProgramHasEnded") {
  const ReplayFolder folder;
  ReplayOptions options = MixOptions(folder);
  options.report.clear();
  options.kernels_only = true;
  options.policies = {"serial"};
  options.devices = {"gtx480"};
  const auto run = RunReplay(options);
  REQUIRE(run.ok());
  const Json record = RunRecord(*run, 0);
  const Json& programs = record["programs"];
  CHECK(programs[1]["program_cycles"] == record["cycles"]);
  CHECK(programs[0]["program_cycles"] < programs[1]["program_cycles"]);
  CHECK(record["stp"].get<double>() > 0);
}

TEST_CASE("Report_OfAMix_HasItsProgramsInEveryForm") {
  const ReplayFolder folder;
  const ReplayOptions options = MixOptions(folder);
  const auto run = RunReplay(options);
  REQUIRE(run.ok());
  const Json json = Json::parse(folder.Read("report/report.json"));
  REQUIRE(json["runs"].size() == 4);  // those alone are no replays that were asked for
  CHECK(json["runs"][3]["stp"].get<double>() > 0);
  CHECK(json["runs"][3]["programs"][1]["slowdown"].get<double>() > 0);
  const std::string programs = folder.Read("report/programs.csv"), runs = folder.Read("report/runs.csv");
  CHECK(std::ranges::count(programs, '\n') == 9);
  CHECK(
      programs.starts_with("workload,device,policy,program,program_cycles,program_seconds,alone_seconds,slowdown\r\n"));
  CHECK(std::ranges::count(runs, '\n') == 5);
  const std::string html = folder.Read("report/report.html");
  for (const char* text : {"Programs that share the device", "System throughput (STP)", "under leftover", "slowdown"})
    CHECK(html.find(text) != std::string::npos);
  // The same again, of what is kept.
  REQUIRE(RunReplay(options).ok());
  CHECK(folder.Read("report/programs.csv") == programs);
  CHECK(folder.Read("report/report.html") == html);
}

TEST_CASE("Report_OfAMix_WithoutAProgramAlone_SaysNothingOfIt") {
  const ReplayFolder folder;
  ReplayOptions options = MixOptions(folder);
  options.alone = false;
  const auto run = RunReplay(options);
  REQUIRE(run.ok());
  const Json record = RunRecord(*run, 0);
  CHECK(record["stp"].is_null());
  CHECK(record["programs"].size() == 2);
  CHECK_FALSE(record["programs"][0].contains("slowdown"));
  CHECK(folder.Read("report/report.html").find("--no-alone") != std::string::npos);
}

}  // namespace
}  // namespace gridloom::study
