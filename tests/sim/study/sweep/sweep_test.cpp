// Sweeps: their files, plans that come back, and what Slurm is told.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "sim/study/sweep/file.h"
#include "sim/study/sweep/plan.h"
#include "sim/study/sweep/slurm.h"
#include "tests/growth.h"
#include "tests/sim/study/replay/replay_folder.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

TEST_CASE("Sweep_ReadsItsFile") {
  const auto sweep = ParseSweep(
      "title: study\ntraces: [a.gltrace, /x/b.gltrace]\nmixes:\n  both: [a.gltrace, b.gltrace]\ndevices: [v100, "
      "./mine.yaml]\n"
      "policies: serial\nhardware: [none, lazy-ctas+other]\nparameters:\n  timing.l1.mshrs: [16, 32]\nslurm:\n  "
      "partition: main\n  cpus: "
      "2\n  options: [\"--nice=5\"]\n",
      "/sweeps/s.yaml");
  INFO((sweep.ok() ? "" : sweep.error().message));
  REQUIRE(sweep.ok());
  const ReplayOptions& replays = sweep->replays;
  REQUIRE(replays.workloads.size() == 3);
  CHECK(replays.workloads[0].traces[0] == "/sweeps/a.gltrace");
  CHECK(replays.workloads[1].traces[0] == "/x/b.gltrace");
  CHECK(replays.workloads[2].name == "both");
  CHECK(replays.devices == std::vector<std::string>{"v100", "/sweeps/mine.yaml"});
  CHECK(replays.policies == std::vector<std::string>{"serial"});
  CHECK(replays.hardware == std::vector<std::string>{"none", "lazy-ctas+other"});
  CHECK(replays.parameters[0].values == std::vector<std::string>{"16", "32"});
  CHECK(replays.report == "/sweeps/s-report");
  CHECK(sweep->slurm.cpus == 2);
}

TEST_CASE("Sweep_MistakesAreNamedWithTheirLine") {
  const auto error = [](const std::string& text) {
    const auto sweep = ParseSweep(text, "s.yaml");
    return sweep.ok() ? std::string() : sweep.error().message;
  };
  CHECK(error("traces: [a]\npolices: [serial]\n") == "s.yaml:2: unknown key 'polices'; did you mean 'policies'?");
  CHECK(error("traces: [a]\nslurm:\n  partitions: x\n") ==
        "s.yaml:3: unknown key 'slurm.partitions'; did you mean 'slurm.partition'?");
  CHECK(error("traces: [a]\nslurm: {cpus: two}\n") == "s.yaml:2: slurm.cpus is 'two'; expected a number");
  CHECK(error("traces: [a, [b]]\n") == "s.yaml:1: a list is not expected here");
  CHECK(error("traces: [a, {b: c}]\n") == "s.yaml:1: a map is not expected in a list");
  CHECK(error("traces: [a]\ntraces: [b]\n") == "s.yaml:2: key 'traces' is given twice");
  CHECK(error("title: [a, b]\ntraces: [a]\n") == "s.yaml:1: title has one value, not a list");
  CHECK(error("devices: [v100]\n") == "s.yaml: there are neither traces nor mixes");
  CHECK(error("traces: [a.gltrace]\nmixes: {a: [a.gltrace]}\n") == "s.yaml: mix 'a' has the name of a trace");
}

TEST_CASE("Sweep_PlanComesBack_AndAnotherTraceIsRefused") {
  const ReplayFolder folder;
  SweepPlan plan;
  plan.options = folder.Options();
  plan.options.parameters = {{"timing.l1.mshrs", {"16", "32"}}};
  plan.options.hardware = {"none", "lazy-ctas"};
  fs::create_directories(plan.options.report);
  plan.replays = *PlanReplays(plan.options);
  plan.tasks = 3;
  REQUIRE(SaveSweep(plan).ok());
  const auto loaded = LoadSweep(plan.path());
  INFO((loaded.ok() ? "" : loaded.error().message));
  REQUIRE(loaded.ok());
  CHECK(loaded->replays.cells == plan.replays.cells);
  CHECK(loaded->tasks == 3);
  CHECK(loaded->options.command == plan.options.command);
  folder.WriteTrace("one.gltrace", 9);
  REQUIRE(!LoadSweep(plan.path()).ok());
  CHECK(LoadSweep(plan.path()).error().message.find("plan it again") != std::string::npos);
  folder.Write("report/sweep.json", "{\"format\": 3}");
  CHECK(!LoadSweep(plan.path()).ok());
}

TEST_CASE("Slurm_ScriptQuotesWhatItIsGiven") {
  SlurmRequest request;
  request.partition = "long";
  request.memory = "2G";
  request.options = {"--nice=5"};
  const std::string script =
      BatchScript(request, "my study!", "/shared/50% done", {"/opt/grid loom", "sweep", "--task"});
  CHECK(script ==
        "#!/bin/bash\n# Written by gridloom sweep.\n#SBATCH --job-name=gridloom-my_study_\n#SBATCH "
        "--output=\"/shared/50%% "
        "done/slurm/%A_%a.log\"\n"
        "#SBATCH --partition=long\n#SBATCH --mem=2G\n#SBATCH --cpus-per-task=1\n#SBATCH --nice=5\n"
        "exec '/opt/grid loom' sweep --task \"$SLURM_ARRAY_TASK_ID\"\n");
  CHECK(ArrayRange({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(ArrayRange({}) == "");
}

/// Programs of Slurm that say what a test wants.
class FakeSlurm {
 public:
  FakeSlurm() {
    fs::create_directories(folder_.Path("bin"));
    const char* path = std::getenv("PATH");
    before_ = path != nullptr ? path : "";
    setenv("PATH", (folder_.Path("bin") + ":" + before_).c_str(), 1);
  }
  ~FakeSlurm() { setenv("PATH", before_.c_str(), 1); }
  void Says(const std::string& program, const std::string& text, int exit_code = 0) {
    folder_.Write("answer-" + program, text);
    folder_.Write("bin/" + program, "#!/bin/sh\ncat '" + folder_.Path("answer-" + program) + "'\nexit " +
                                        std::to_string(exit_code) + "\n");
    fs::permissions(folder_.Path("bin/" + program), fs::perms::owner_all);
  }

 private:
  const ReplayFolder folder_;
  std::string before_;
};

TEST_CASE("Slurm_AnswersThatAreNone_AreRefused") {
  FakeSlurm slurm;
  const auto submitted = [&](const std::string& answer) {
    slurm.Says("sbatch", answer);
    return SubmitArray("script", {0}, 0);
  };
  CHECK(submitted("sbatch: warning: late\n123;cluster\n").value() == "123");
  CHECK(submitted("7\n").value() == "7");
  for (const char* answer : {"", ";cluster", "12x", "-1", "99999999999999999999999", "Submitted batch job 7"})
    CHECK(!submitted(answer).ok());
  const auto hostile = submitted("\033[2J" + std::string(100'000, 'x'));
  REQUIRE(!hostile.ok());
  CHECK(hostile.error().message.size() < 5000);
  CHECK(hostile.error().message.find('\033') == std::string::npos);
  slurm.Says("sbatch", "123\n", 1);
  CHECK(!SubmitArray("script", {0}, 0).ok());
}

TEST_CASE("Slurm_UnfinishedTasks_AreThoseOfTheJob") {
  FakeSlurm slurm;
  slurm.Says("squeue", "squeue: warning: busy\n12_0\n12_3\n123_1\nnoise\n");
  CHECK(UnfinishedTasks("12").value() == 2);
  slurm.Says("squeue", "");
  CHECK(UnfinishedTasks("12").value() == 0);
  slurm.Says("squeue", "slurm_load_jobs error: Invalid job id specified", 1);
  CHECK(UnfinishedTasks("12").value() == 0);
  slurm.Says("squeue", "no answer", 1);
  CHECK(!UnfinishedTasks("12").ok());
}

TEST_CASE("Sweep_LinesOfTheBatchScript_CannotBeAdded") {
  const std::string start = "traces: [a.gltrace]\n";
  for (const char* line :
       {"slurm: {partition: \"x\\nrm -rf /\"}", "slurm: {options: [\"--x\\n evil\"]}", "report: \"a\\nb\""}) {
    const auto sweep = ParseSweep(start + line, "s.yaml");
    REQUIRE(!sweep.ok());
    CHECK(sweep.error().message.find("control characters") != std::string::npos);
  }
}

TEST_CASE("Sweep_ManyMixes_CostInProportion") {
  const double growth = testing::Growth(2'000, [](std::size_t count) {
    std::string text = "mixes:\n";
    for (std::size_t i = 0; i < count; ++i) text += "  m" + std::to_string(i) + ": [a.gltrace]\n";
    CHECK(ParseSweep(text, "s.yaml").ok());
  });
  CHECK(growth < testing::kLinear);
}

TEST_CASE("Replay_MoreReplaysThanAnybodyWaitsFor_AreRefused") {
  const ReplayFolder folder;
  ReplayOptions options = folder.Options();
  for (int i = 0; i < 40; ++i) options.parameters.push_back({"timing.l1.mshrs", {"16", "32", "64"}});
  const auto plan = PlanReplays(options);
  REQUIRE(!plan.ok());
  CHECK(plan.error().message == "more than 100000 replays in one run");
}

}  // namespace
}  // namespace gridloom::study
