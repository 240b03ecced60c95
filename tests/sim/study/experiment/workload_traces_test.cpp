#include "sim/study/experiment/workload_traces.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

/// Folders that vanish with the test: for programs, for what is kept, and a command in the place of `gridloom`.
class Place {
 public:
  Place() {
    char name[] = "/tmp/gridloom-traces-test.XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    root_ = name;
    environment.tool = root_ / "tool";
    environment.programs = root_ / "programs";
    environment.work = root_ / "work";
    environment.kept = fs::absolute("configs/experiments/traces");
    fs::create_directories(environment.work);
    fs::create_directories(environment.programs / "kernelet");
    REQUIRE(fs::exists(environment.kept / "kernelet-bs.gltrace"));
  }
  ~Place() { fs::remove_all(root_); }

  void Script(const fs::path& path, const std::string& text) const {
    std::ofstream(path) << "#!/bin/sh\n" + text;
    fs::permissions(path, fs::perms::owner_all);
  }
  /// A tool that writes down its arguments, a line for each, and leaves a trace.
  void MakeTool() const {
    Script(environment.tool, "printf '%s\\n' \"$@\" > " + Said().string() + "\ncp " +
                                 (environment.kept / "kernelet-bs.gltrace").string() + " \"$3\"\n");
  }
  fs::path Said() const { return root_ / "said"; }
  std::string WhatWasSaid() const {
    std::ifstream file(Said());
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  Environment environment;

 private:
  fs::path root_;
};

TEST_CASE("TraceOf_WithoutProgram_TakesWhatCanBeRead") {
  const Place place;
  const WorkloadRun run{.study = "kernelet", .name = "bs"};
  const fs::path kept = place.environment.kept / "kernelet-bs.gltrace",
                 trace = place.environment.work / "kernelet-bs.gltrace";
  CHECK(*TraceOf(run, place.environment) == kept);
  fs::copy_file(kept, trace);
  CHECK(*TraceOf(run, place.environment) == trace);
  std::ofstream(trace, std::ios::trunc) << "of an earlier version";
  CHECK(*TraceOf(run, place.environment) == kept);
  const auto missing = TraceOf({.study = "kernelet", .name = "nothing"}, place.environment);
  REQUIRE(!missing.ok());
  CHECK(missing.error().message.find("there is no program " +
                                     (place.environment.programs / "kernelet/nothing").string()) == 0);
  // What was kept is of no other arguments.
  CHECK(!TraceOf({.study = "kernelet", .name = "bs", .arguments = {"--n=5"}}, place.environment).ok());
}

TEST_CASE("TraceOf_RunsTheProgramUnderTheTool_Once") {
  const Place place;
  place.MakeTool();
  place.Script(place.environment.programs / "kernelet/scholes", "");
  const WorkloadRun run{.study = "kernelet",
                        .name = "small",
                        .program = "scholes",
                        .kernel = "Black",
                        .options = {"--slice", "64"},
                        .arguments = {"--n=5", "a b"}};
  const fs::path trace = place.environment.work / run.FileName();
  const auto made = TraceOf(run, place.environment);
  INFO((made.ok() ? "" : made.error().message));
  REQUIRE(made.ok());
  CHECK(*made == trace);
  CHECK(fs::exists(trace));
  CHECK(place.WhatWasSaid() == "run\n--trace\n" + trace.string() +
                                   ".unfinished\n--trace-kernels\nBlack\n--slice\n64\n--\n" +
                                   (place.environment.programs / "kernelet/scholes").string() + "\n--n=5\na b\n");
  fs::remove(place.Said());
  CHECK(*TraceOf(run, place.environment) == trace);
  CHECK(!fs::exists(place.Said()));
}

TEST_CASE("TraceOf_AProgramThatFails_IsAnError") {
  const Place place;
  place.Script(place.environment.tool, "exit 3\n");
  place.Script(place.environment.programs / "kernelet/bs", "");
  const auto failed = TraceOf({.study = "kernelet", .name = "bs"}, place.environment);
  REQUIRE(!failed.ok());
  CHECK(failed.error().message.ends_with("kernelet/bs ended with exit code 3"));
}

TEST_CASE("WorkloadRun_OtherArgumentsAndOptions_HaveOtherFiles") {
  const WorkloadRun plain{.study = "dtbl", .name = "bfs"};
  const WorkloadRun one{.study = "dtbl", .name = "bfs", .arguments = {"a", "b"}},
      joined{.study = "dtbl", .name = "bfs", .arguments = {"ab"}};
  const WorkloadRun option{.study = "dtbl", .name = "bfs", .options = {"a", "b"}};
  CHECK(plain.FileName() == "dtbl-bfs.gltrace");
  CHECK(one.FileName() != joined.FileName());
  CHECK(one.FileName() != option.FileName());
  CHECK(one.FileName() != plain.FileName());
  CHECK(one.FileName().starts_with("dtbl-bfs-"));
}

}  // namespace
}  // namespace gridloom::study
