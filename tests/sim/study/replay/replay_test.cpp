// Plans, results, reports and sweeps of replays, on a small trace that is written here.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "rewriter/support/progress.h"
#include "sim/study/replay/columns.h"
#include "sim/study/replay/report.h"
#include "sim/study/replay/run.h"
#include "sim/study/sweep/plan.h"
#include "sim/study/sweep/slurm.h"
#include "sim/trace/trace_file.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHostileName = "</script><script>alert(1)//,\"\xfe";

/// A folder that vanishes with the test, with a trace in it.
class Folder {
 public:
  Folder() {
    static int number = 0;
    root_ = fs::temp_directory_path() / ("gridloom_replay_" + std::to_string(getpid()) + "_" + std::to_string(number++));
    fs::create_directories(root_);
    WriteTrace("one.gltrace", 6);
  }
  ~Folder() { fs::remove_all(root_); }
  std::string Path(const std::string& name) const { return (root_ / name).string(); }
  std::string Read(const std::string& name) const {
    std::ifstream file(root_ / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(root_ / name) << text; }

  /// Two launches of CTAs of one warp that loads and adds.
  void WriteTrace(const std::string& name, std::uint64_t ctas) const {
    trace::KernelCode code;
    code.name = kHostileName;
    code.register_count = 2;
    trace::Instruction load;
    load.op = trace::OpClass::kMemory;
    load.space = trace::Space::kGlobal;
    load.width = 4;
    load.destinations = 1;
    trace::Instruction add;
    add.op = trace::OpClass::kInt;
    add.destinations = add.sources = 1;
    add.operands = 1;
    code.instructions = {load, add};
    code.operands = {1, 2, 1};
    code.blocks = {{0, 2}};
    trace::CtaTrace cta;
    cta.warps = {{0, 20, 0, 20}};
    for (std::uint64_t i = 0; i < 20; ++i) {
      cta.visits.push_back({0, ~0u});
      cta.accesses.push_back({4096 + i * 512, 4, ~0u});
    }
    const auto shared = std::make_shared<const trace::CtaTrace>(std::move(cta));
    auto writer = trace::TraceWriter::Create(Path(name), "test");
    REQUIRE(writer.ok());
    trace::LaunchInfo info;
    info.kernel = (*writer)->AddKernel(code);
    info.shape = {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 8, .shared_bytes = 0};
    info.grid[0] = static_cast<std::uint32_t>(ctas);
    info.block[0] = 32;
    for (int launch = 0; launch < 2; ++launch) {
      const auto out = (*writer)->BeginLaunch(info, code);
      for (std::uint64_t c = 0; c < ctas; ++c) out->Add(c, {shared, {}});
      out->End(0);
    }
    REQUIRE((*writer)->Close().ok());
  }

  ReplayOptions Options() const {
    ReplayOptions options;
    options.workloads = WorkloadsOf({Path("one.gltrace")}, false);
    options.devices = {"gtx480", "v100"};
    options.policies = {"serial", "leftover"};
    options.report = Path("report");
    options.command = "gridloom replay one.gltrace";
    options.quiet = true;
    return options;
  }

 private:
  fs::path root_;
};

std::vector<std::string> Words(const std::string& line, char separator = ',') {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, separator);) words.push_back(word);
  return words;
}

std::vector<std::string> Names(const std::vector<report::Column>& columns) {
  std::vector<std::string> names;
  for (const report::Column& column : columns) names.push_back(column.name);
  return names;
}

std::string ErrorOf(const ReplayOptions& options) {
  const auto plan = PlanReplays(options);
  REQUIRE(!plan.ok());
  return plan.error().message;
}

TEST_CASE("Workloads_HaveUniqueNames_OrAreOneMix") {
  const auto apart = WorkloadsOf({"a/x.gltrace", "b/x.gltrace", "y.gltrace"}, false);
  REQUIRE(apart.size() == 3);
  CHECK(apart[0].name == "x");
  CHECK(apart[1].name == "x-2");
  const auto mix = WorkloadsOf({"a/x.gltrace", "y.gltrace"}, true);
  REQUIRE(mix.size() == 1);
  CHECK(mix[0].name == "x+y");
  CHECK(mix[0].traces.size() == 2);
}

TEST_CASE("Plan_IsEveryCombination_WithKeysThatFollowContents") {
  const Folder folder;
  ReplayOptions options = folder.Options();
  options.parameters = {{"timing.l1.mshrs", {"16", "32"}}};
  const auto plan = PlanReplays(options);
  REQUIRE(plan.ok());
  CHECK(plan->devices.size() == 4);
  CHECK(plan->devices[1].label == "gtx480 timing.l1.mshrs=32");
  REQUIRE(plan->cells.size() == 8);
  std::set<std::string> files;
  for (const Cell& cell : plan->cells) files.insert(cell.file);
  CHECK(files.size() == 8);
  CHECK(PlanReplays(options)->cells == plan->cells);
  folder.WriteTrace("one.gltrace", 7);
  CHECK(PlanReplays(options)->cells[0].key != plan->cells[0].key);
}

TEST_CASE("Plan_NamesThatDoNotExist_AreErrorsWithTheNearestOne") {
  const Folder folder;
  ReplayOptions options = folder.Options();
  options.devices = {"v1000"};
  CHECK(ErrorOf(options).find("did you mean 'v100'?") != std::string::npos);
  options = folder.Options();
  options.policies = {"leftovers"};
  CHECK(ErrorOf(options).find("did you mean 'leftover'?") != std::string::npos);
  options = folder.Options();
  options.baseline = "v10";
  CHECK(ErrorOf(options).find("did you mean 'v100'?") != std::string::npos);
  options = folder.Options();
  options.parameters = {{"timing.l1.mshr", {"16"}}};
  CHECK(ErrorOf(options).find("did you mean 'timing.l1.mshrs'?") != std::string::npos);
  options.parameters = {{"timing.l1.mshrs", {"5000"}}};
  CHECK(ErrorOf(options).find("timing.l1.mshrs must be at most 4096") != std::string::npos);
  options = folder.Options();
  options.workloads = WorkloadsOf({folder.Path("none.gltrace")}, false);
  CHECK(ErrorOf(options).find("none.gltrace: No such file") != std::string::npos);
  CHECK(!ParseParameter("timing.l1.mshrs").ok());
  CHECK(!ParseParameter("=3").ok());
}

TEST_CASE("Report_FilesHaveTheDocumentedColumns_AndNoHostileName") {
  const Folder folder;
  const ReplayOptions options = folder.Options();
  const auto run = RunReplay(options);
  INFO((run.ok() ? "" : run.error().message));
  REQUIRE(run.ok());
  const std::string runs = folder.Read("report/runs.csv"), kernels = folder.Read("report/kernels.csv");
  CHECK(Words(runs.substr(0, runs.find('\r'))) == Names(RunColumns()));
  CHECK(Words(kernels.substr(0, kernels.find('\r'))) == Names(KernelColumns()));
  CHECK(std::ranges::count(runs, '\n') == 5);
  const Cell& cell = run->plan.cells[0];
  const std::string intervals = folder.Read("report/intervals/" + cell.file + ".csv");
  CHECK(Words(intervals.substr(0, intervals.find('\r'))) == Names(IntervalColumns()));

  const std::string html = folder.Read("report/report.html");
  CHECK(html.find("<script>alert") == std::string::npos);
  CHECK(html.find("\\u003c/script>\\u003cscript>alert") != std::string::npos);
  for (const char* outside : {"http:", "https:", "src="}) CHECK(html.find(outside) == std::string::npos);
  CHECK(html.find("gridloom replay one.gltrace") != std::string::npos);

  const Json json = Json::parse(folder.Read("report/report.json"));
  REQUIRE(json["runs"].size() == 4);
  CHECK(json["problems"].empty());
  for (const Json& one : json["runs"]) {
    for (const std::string& name : Names(RunColumns())) {
      INFO(name);
      CHECK((one.contains(name) || one["counters"].contains(name)));
    }
    for (const std::string& name : Names(KernelColumns())) {
      INFO(name);
      const Json& kernel = one["kernels"][0];
      CHECK((kernel.contains(name) || kernel["counters"].contains(name) || one.contains(name)));
    }
    CHECK(one["counters"]["ctas"] == 12);
    CHECK(!one.contains("host_seconds"));
  }
  CHECK(json["runs"][0]["speed_up"] == 1);
}

TEST_CASE("Report_TraceEvents_AreSpansThatDoNotOverlap") {
  const Folder folder;
  const auto run = RunReplay(folder.Options());
  REQUIRE(run.ok());
  const Json events = Json::parse(folder.Read("report/trace-events/" + run->plan.cells[3].file + ".json"));
  std::map<std::pair<int, std::uint64_t>, double> ends;
  std::size_t spans = 0, ctas = 0;
  for (const Json& event : events["traceEvents"]) {
    CHECK(event.contains("ph"));
    if (event["ph"] != "X") continue;
    ++spans;
    ctas += event["args"].contains("cta");
    double& end = ends[{event["pid"].get<int>(), event["tid"].get<std::uint64_t>()}];
    CHECK(event["ts"].get<double>() >= end - 1e-9);
    end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  CHECK(ctas == 12);
  CHECK(spans > ctas + 2);
}

TEST_CASE("Replay_FinishedCellsAreNotDoneAgain_AndDamagedOnesAre") {
  const Folder folder;
  const ReplayOptions options = folder.Options();
  const auto first = RunReplay(options);
  REQUIRE(first.ok());
  const std::string report = folder.Read("report/report.json"), html = folder.Read("report/report.html");
  const CellStore store(options.report);
  const std::string kept = store.PathOf(first->plan.cells[0]), damaged = store.PathOf(first->plan.cells[1]);
  const auto time = fs::last_write_time(kept);
  fs::resize_file(damaged, fs::file_size(damaged) / 2);
  const auto again = RunReplay(options);
  REQUIRE(again.ok());
  CHECK(fs::last_write_time(kept) == time);
  CHECK(store.Load(first->plan.cells[1]).has_value());
  CHECK(folder.Read("report/report.json") == report);
  CHECK(folder.Read("report/report.html") == html);
}

TEST_CASE("CellStore_RemovesWhatKilledRunsLeft_AndNothingYoung") {
  const Folder folder;
  const CellStore store(folder.Path("report"));
  REQUIRE(store.Prepare().ok());
  const auto write = [&](const std::string& name, std::chrono::minutes age) {
    folder.Write("report/cells/" + name, "{");
    fs::last_write_time(folder.Path("report/cells/" + name), fs::file_time_type::clock::now() - age);
  };
  write("a.json.x7f2aa", std::chrono::minutes(90));
  write("b.json.x7f2ab", std::chrono::minutes(5));
  write("c.json", std::chrono::minutes(900));
  REQUIRE(store.Prepare().ok());
  CHECK(!fs::exists(folder.Path("report/cells/a.json.x7f2aa")));
  CHECK(fs::exists(folder.Path("report/cells/b.json.x7f2ab")));
  CHECK(fs::exists(folder.Path("report/cells/c.json")));
}

TEST_CASE("Replay_FailureOfOne_LeavesTheOthersAndIsNamed") {
  const Folder folder;
  ReplayOptions options = folder.Options();
  folder.Write("broken.gltrace", "no trace");
  options.workloads.push_back({"broken", {folder.Path("broken.gltrace")}});
  const auto run = RunReplay(options);
  REQUIRE(run.ok());
  CHECK(run->cells[0].ok());
  CHECK(!run->cells[4].ok());
  const Json json = Json::parse(folder.Read("report/report.json"));
  CHECK(json["runs"].size() == 4);
  REQUIRE(json["problems"].size() == 4);
  CHECK(json["problems"][0]["replay"] == "broken on gtx480 under serial");
}

TEST_CASE("SpeedUp_RefersToTheBaseline") {
  const Folder folder;
  ReplayOptions options = folder.Options();
  options.report.clear();
  const auto seconds = [](const ReplayRun& run, std::size_t i) { return run.cells[i].result["seconds"].get<double>(); };
  const auto first = RunReplay(options);  // gtx480 serial, gtx480 leftover, v100 serial, v100 leftover
  REQUIRE(first.ok());
  CHECK(SpeedUp(*first, 3) == Approx(seconds(*first, 0) / seconds(*first, 3)));
  options.baseline = "serial";
  const auto policy = RunReplay(options);
  CHECK(SpeedUp(*policy, 3) == Approx(seconds(*policy, 2) / seconds(*policy, 3)));
  options.baseline = "v100,leftover";
  const auto both = RunReplay(options);
  CHECK(SpeedUp(*both, 3) == 1);
  CHECK(SpeedUp(*both, 0) == Approx(seconds(*both, 3) / seconds(*both, 0)));
}

TEST_CASE("Docs_NameEveryColumn") {
  std::ifstream file("docs/reports.md"), timing("docs/timing.md");
  const std::string docs = std::string(std::istreambuf_iterator<char>(file), {}) + std::string(std::istreambuf_iterator<char>(timing), {});
  for (const auto& columns : {RunColumns(), KernelColumns(), IntervalColumns()}) {
    for (const report::Column& column : columns) {
      INFO("| `" << column.name << "` | " << column.unit << " | " << column.meaning << " |");
      CHECK(docs.find("| `" + column.name + "` | " + column.unit + " | " + column.meaning + " |") != std::string::npos);
    }
  }
}

TEST_CASE("Sweep_ReadsItsFile") {
  const auto sweep = ParseSweep(
      "title: study\ntraces: [a.gltrace, /x/b.gltrace]\nmixes:\n  both: [a.gltrace, b.gltrace]\ndevices: [v100, ./mine.yaml]\n"
      "policies: serial\nparameters:\n  timing.l1.mshrs: [16, 32]\nslurm:\n  partition: main\n  cpus: 2\n  options: [\"--nice=5\"]\n",
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
  CHECK(error("traces: [a]\nslurm:\n  partitions: x\n") == "s.yaml:3: unknown key 'slurm.partitions'; did you mean 'slurm.partition'?");
  CHECK(error("traces: [a]\nslurm: {cpus: two}\n") == "s.yaml:2: slurm.cpus is 'two'; expected a number");
  CHECK(error("traces: [a, [b]]\n") == "s.yaml:1: a list is not expected here");
  CHECK(error("traces: [a, {b: c}]\n") == "s.yaml:1: a map is not expected in a list");
  CHECK(error("traces: [a]\ntraces: [b]\n") == "s.yaml:2: key 'traces' is given twice");
  CHECK(error("title: [a, b]\ntraces: [a]\n") == "s.yaml:1: title has one value, not a list");
  CHECK(error("devices: [v100]\n") == "s.yaml: there are neither traces nor mixes");
  CHECK(error("traces: [a.gltrace]\nmixes: {a: [a.gltrace]}\n") == "s.yaml: mix 'a' has the name of a trace");
}

TEST_CASE("Sweep_PlanComesBack_AndAnotherTraceIsRefused") {
  const Folder folder;
  SweepPlan plan;
  plan.options = folder.Options();
  plan.options.parameters = {{"timing.l1.mshrs", {"16", "32"}}};
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
  const std::string script = BatchScript(request, "my study!", "/shared/50% done", {"/opt/grid loom", "sweep", "--task"});
  CHECK(script ==
        "#!/bin/bash\n# Written by gridloom sweep.\n#SBATCH --job-name=gridloom-my_study_\n#SBATCH --output=\"/shared/50%% "
        "done/slurm/%A_%a.log\"\n"
        "#SBATCH --partition=long\n#SBATCH --mem=2G\n#SBATCH --cpus-per-task=1\n#SBATCH --nice=5\n"
        "exec '/opt/grid loom' sweep --task \"$SLURM_ARRAY_TASK_ID\"\n");
  CHECK(ArrayRange({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(ArrayRange({}) == "");
}

TEST_CASE("Progress_IsPlainLinesInAFile_AndABarOnATerminal") {
  const Folder folder;
  const auto run = [&](bool bar) {
    FILE* out = std::fopen(folder.Path("progress").c_str(), "w");
    {
      Progress progress(2, {.out = out, .bar = bar, .quiet = false, .running = [] { return 0.5; }});
      progress.Done("first");
      progress.Note("look");
      progress.Done("second");
    }
    std::fclose(out);
    return folder.Read("progress");
  };
  CHECK(run(false) == "gridloom: 1 of 2: first\ngridloom: look\ngridloom: 2 of 2: second\n");
  const std::string bar = run(true);
  CHECK(bar.find("[######################........]  75 %  1 of 2") != std::string::npos);
  CHECK(bar.find("gridloom: look\n") != std::string::npos);
  CHECK(bar.ends_with("\r\033[K"));
}

}  // namespace
}  // namespace gridloom::study
