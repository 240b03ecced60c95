// Plans, results and reports of replays, on a small trace that is written here.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/hardware/catalog.h"
#include "sim/study/replay/columns.h"
#include "sim/study/replay/report.h"
#include "sim/study/replay/run.h"
#include "sim/study/replay/sharing.h"
#include "tests/sim/study/replay/replay_folder.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;

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
  const ReplayFolder folder;
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

TEST_CASE("RangesFor_AreThoseThatDevicesGoByUnderThePolicies") {
  const auto ranges = [](const std::vector<std::string>& policies, const std::vector<std::string>& hardware,
                         const std::vector<ParameterValues>& parameters) {
    ReplayOptions options;
    options.devices = {"gtx480"};
    options.policies = policies;
    options.hardware = hardware;
    options.parameters = parameters;
    const auto forms = RangesFor(options);
    return forms.ok() ? *forms : forms.error().message;
  };
  CHECK(ranges({"leftover", "serial"}, {}, {}).empty());
  CHECK(ranges({"leftover"}, {"lazy-ctas"}, {}).empty());
  CHECK(ranges({"leftover", "crcs-ppcs"}, {}, {}) == "interval");
  CHECK(ranges({"leftover"}, {"crcs"}, {}) == "interval");
  CHECK(ranges({"leftover"}, {}, {{"proposed", {"none", "crcs"}}}) == "interval");
  CHECK(ranges({"crcs-fifo"}, {}, {{"hardware.crcs.ranges", {"strided"}}}) == "strided");
  CHECK(ranges({"crcs-fifo"}, {}, {{"hardware.crcs.ranges", {"strided", "interval"}}}) == "interval,strided");
  CHECK(ranges({"crcs-fif"}, {}, {}).find("did you mean 'crcs-fifo'?") != std::string::npos);
}

TEST_CASE("Plan_NamesThatDoNotExist_AreErrorsWithTheNearestOne") {
  const ReplayFolder folder;
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

std::vector<std::string> Labels(const ReplayPlan& plan) {
  std::vector<std::string> labels;
  for (const DeviceVariant& device : plan.devices) labels.push_back(device.label);
  return labels;
}

TEST_CASE("Plan_ChoicesOfHardware_AreVariantsOfEachDevice_AndTheirKeysVaryThoseThatHaveThePart") {
  const ReplayFolder folder;
  ReplayOptions options = folder.Options();
  options.policies = {"leftover"};
  const auto plain = PlanReplays(options);
  options.hardware = {"none", "lazy-ctas"};
  options.parameters = {{"hardware.lazy-ctas.watch", {"1", "2"}}};
  const auto plan = PlanReplays(options);
  INFO((plan.ok() ? "" : plan.error().message));
  REQUIRE(plan.ok());
  CHECK(Labels(*plan) == std::vector<std::string>{"gtx480", "gtx480 + lazy-ctas hardware.lazy-ctas.watch=1",
                                                  "gtx480 + lazy-ctas hardware.lazy-ctas.watch=2", "v100",
                                                  "v100 + lazy-ctas hardware.lazy-ctas.watch=1",
                                                  "v100 + lazy-ctas hardware.lazy-ctas.watch=2"});
  CHECK(plan->base_device == "gtx480");
  std::set<std::string> keys;
  for (const Cell& cell : plan->cells) keys.insert(cell.key);
  CHECK(keys.size() == 6);
  // Without parts nothing is another, results that were kept least of all.
  CHECK(plan->cells[0].key == plain->cells[0].key);
  // --set proposed says the same as --hardware.
  options.hardware.clear();
  options.parameters = {{"hardware.lazy-ctas.watch", {"1", "2"}}, {"proposed", {"none", "lazy-ctas"}}};
  const auto set = PlanReplays(options);
  REQUIRE(set.ok());
  CHECK(Labels(*set) == Labels(*plan));
  CHECK(set->cells == plan->cells);
}

TEST_CASE("Plan_KeysOfAPartThatAPolicyBrings_AreThoseOfItsReplaysAlone") {
  const ReplayFolder folder;
  ReplayOptions options = folder.Options();
  options.devices = {"gtx480"};
  options.policies = {"leftover", "crcs-fifo"};
  options.parameters = {{"hardware.crcs.page_bytes", {"4096", "65536"}}};
  const auto plan = PlanReplays(options);
  INFO((plan.ok() ? "" : plan.error().message));
  REQUIRE(plan.ok());
  REQUIRE(plan->cells.size() % 4 == 0);
  for (const Cell& cell : plan->cells) {
    const sim::DeviceSpec spec = plan->SpecOf(cell);
    const bool brought = cell.policy == "crcs-fifo";
    CHECK(spec.proposed.size() == (brought ? 1 : 0));
    CHECK(spec.part_values.size() == (brought ? 1 : 0));
    CHECK(hardware::Build(spec).ok());
  }
  // What leftover makes of the device is the same whatever the part's pages are.
  CHECK(plan->cells[0].key == plan->cells[2].key);
  CHECK(plan->cells[1].key != plan->cells[3].key);
  options.parameters = {{"hardware.crcs.page_bytes", {"5000"}}};
  CHECK(ErrorOf(options).find("page_bytes is 5000, which is no power of two") != std::string::npos);
}

TEST_CASE("Plan_MistakesAboutHardware_AreNamedAsTheyWereGiven") {
  const ReplayFolder folder;
  ReplayOptions options = folder.Options();
  options.devices = {"gtx480"};
  const auto error = [&](std::vector<std::string> hardware, std::vector<ParameterValues> parameters) {
    options.hardware = std::move(hardware);
    options.parameters = std::move(parameters);
    CHECK(!CheckNames(options).ok());
    return ErrorOf(options);
  };
  CHECK(error({"lazy-cats"}, {}).find("there is no proposed part 'lazy-cats'; did you mean 'lazy-ctas'?") !=
        std::string::npos);
  CHECK(error({"lazy-ctas"}, {{"hardware.lazy-ctas.wach", {"2"}}}) ==
        "gtx480 + lazy-ctas hardware.lazy-ctas.wach=2: --set hardware.lazy-ctas.wach=2: the part lazy-ctas has no key "
        "'wach'; did you mean "
        "'watch'?");
  CHECK(error({"lazy-ctas"}, {{"hardware.lazy-ctas.watch", {"0"}}}).find("is '0'; expected a number from 1 to 1024") !=
        std::string::npos);
  CHECK(error({}, {{"hardware.lazy-ctas.watch", {"2"}}}) ==
        "--set hardware.lazy-ctas.watch=2: the device has no part lazy-ctas; --hardware lazy-ctas gives it one");
  CHECK(error({}, {{"hardware.lazy-cats.watch", {"2"}}}) ==
        "--set hardware.lazy-cats.watch=2: there is no proposed part 'lazy-cats'; did you mean 'lazy-ctas'?");
  CHECK(error({}, {{"timing.l1.mshr", {"16"}}}) ==
        "--set timing.l1.mshr=16: unknown key 'timing.l1.mshr'; did you mean 'timing.l1.mshrs'?");
  CHECK(error({"none", "none"}, {}) == "device gtx480 is given twice");
}

TEST_CASE("Options_KeysThatAreSetTwice_AreRefused") {
  const auto problem = [](std::vector<std::string> sets, std::vector<std::string> lowering = {},
                          std::vector<std::string> storage = {}) {
    ReplayOptions options;
    options.sets = std::move(sets);
    options.lowering = std::move(lowering);
    options.storage = std::move(storage);
    const Status complete = options.Complete();
    return complete.ok() ? "" : complete.error().message;
  };
  CHECK(problem({"timing.l1.mshrs=16,32", "timing.lowering=full"}) == "");
  CHECK(problem({"timing.l1.mshrs=16"}, {"none", "full"}) == "");
  CHECK(problem({"timing.l1.mshrs=16", "timing.l1.mshrs=32"}).starts_with("timing.l1.mshrs is set twice"));
  CHECK(problem({"timing.lowering=full"}, {"none"}).starts_with("timing.lowering is set twice"));
  CHECK(problem({"timing.host.storage_mb_s=5"}, {}, {"1MB/s"}).starts_with("timing.host.storage_mb_s is set twice"));
}

TEST_CASE("Report_OfADeviceWithAPart_HasItsCountersAndKeys_WhereTheDeviceWithoutHasNone") {
  const ReplayFolder folder;
  ReplayOptions options = folder.Options();
  options.devices = {"gtx480"};
  options.policies = {"leftover"};
  options.hardware = {"none", "lazy-ctas"};
  const auto run = RunReplay(options);
  INFO((run.ok() ? "" : run.error().message));
  REQUIRE(run.ok());
  const Json json = Json::parse(folder.Read("report/report.json"));
  REQUIRE(json["runs"].size() == 2);
  const Json &without = json["runs"][0], &with = json["runs"][1];
  CHECK((!without["counters"].contains("lazy_decisions") && with["counters"].contains("lazy_decisions")));
  CHECK(with["kernels"][0]["counters"].contains("block_ctas"));
  CHECK((!without["device_fields"].contains("proposed") && with["device_fields"]["proposed"] == "lazy-ctas"));
  CHECK(with["device_fields"]["hardware.lazy-ctas.watch"] == "1");
  const std::string runs = folder.Read("report/runs.csv");
  const std::vector<timing::CounterInfo> counters = CountersOf(run->plan);
  CHECK(counters.size() > timing::CounterTable().size());
  CHECK(Words(runs.substr(0, runs.find('\r'))) == Names(RunColumns(counters)));
  const auto head = [&](std::size_t cell) {
    const std::string intervals = folder.Read("report/intervals/" + run->plan.cells[cell].file + ".csv");
    return intervals.substr(0, intervals.find('\r'));
  };
  CHECK(head(0).find("lazy_limits") == std::string::npos);
  CHECK(head(1).find("lazy_limits") != std::string::npos);
  CHECK(folder.Read("report/report.html").find("hardware.lazy-ctas.block") != std::string::npos);
}

TEST_CASE("Report_FilesHaveTheDocumentedColumns_AndNoHostileName") {
  const ReplayFolder folder;
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
  const ReplayFolder folder;
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
  const ReplayFolder folder;
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
  const auto redone = store.Load(first->plan.cells[1], first->plan.devices[first->plan.cells[1].device].spec);
  CHECK((redone.ok() && redone->has_value()));
  CHECK(folder.Read("report/report.json") == report);
  CHECK(folder.Read("report/report.html") == html);
}

TEST_CASE("Replay_ResultsWithWrongShapes_AreNamedAndDoneAgain") {
  const ReplayFolder folder;
  ReplayOptions options = folder.Options();
  options.quiet = true;
  const auto first = RunReplay(options);
  REQUIRE(first.ok());
  const CellStore store(options.report);
  const Cell& cell = first->plan.cells[0];
  const sim::DeviceSpec& device = first->plan.devices[cell.device].spec;
  const std::string path = store.PathOf(cell), name = "report" + path.substr(options.report.size());
  const std::string whole = folder.Read(name), report = folder.Read("report/report.json");
  // What is replaced (nothing: all of it), by what, and what the message names.
  struct Damage {
    const char *where, *value, *named;
  };
  const Damage damages[] = {
      {"", "[]", "no result of a replay"},
      {"", "3", "no result of a replay"},
      {"", "{\"a\":", "no JSON"},
      {"/timeline", "{}", "timeline.kernels"},
      {"/timeline", "[]", "timeline"},
      {"/cycles", "\"many\"", "cycles"},
      {"/cycles", "-1", "cycles"},
      {"/cycles", "18446744073709551615", "cycles"},
      {"/seconds", "null", "seconds"},
      {"/bound_by", "7", "bound_by"},
      {"/counters", "[1]", "counters"},
      {"/counters/warp_instructions", "1.5", "counters.warp_instructions"},
      {"/counters/of_another", "{\"a\": []}", "counters.of_another"},
      {"/kernels", "{}", "kernels"},
      {"/kernels/0", "[]", "kernels[0]"},
      {"/kernels/0/kernel", "[]", "kernels[0].kernel"},
      {"/kernels/0/counters", "{}", "kernels[0].counters."},
      {"/programs", "{}", "programs"},
      {"/programs/0", "3", "programs[0]"},
      {"/programs/0/program_cycles", "-1", "programs[0].program_cycles"},
      {"/timeline/kernels/0", "1", "timeline.kernels"},
      {"/timeline/works/left_out", "null", "timeline.works.left_out"},
      {"/timeline/works/rows/0", "[0, 0]", "timeline.works.rows[0]"},
      {"/timeline/works/rows/0/0", "1000000", "timeline.works.rows[0]"},
      {"/timeline/residencies/rows/0/0", "4000000000", "timeline.residencies.rows[0]"},
      {"/timeline/residencies/rows/0/3", "0", "timeline.residencies.rows[0]"},
      {"/timeline/ctas/rows/0/2", "\"k\"", "timeline.ctas.rows[0]"},
      {"/timeline/samples/end", "[5, 4]", "timeline.samples.end"},
      {"/timeline/samples/counters/warp_instructions", "[]", "timeline.samples.counters.warp_instructions"},
  };
  for (const Damage& damage : damages) {
    INFO(damage.where << " = " << damage.value);
    std::string text = damage.value;
    if (damage.where[0] != '\0') {
      Json json = Json::parse(whole);
      json[Json::json_pointer(damage.where)] = Json::parse(damage.value);
      text = json.dump();
    }
    folder.Write(name, text);
    const auto loaded = store.Load(cell, device);
    REQUIRE(!loaded.ok());
    CHECK(loaded.error().message.find(path) != std::string::npos);
    CHECK(loaded.error().message.find(damage.named) != std::string::npos);
    const ReplayRun gathered = GatherCells(first->plan, options);
    CHECK(gathered.cells[0].problem == loaded.error().message);
  }
  folder.Write(name, std::string(100'000, '[') + std::string(100'000, ']'));  // its copy would need the stack
  CHECK(!store.Load(cell, device).ok());
  const auto again = RunReplay(options);
  REQUIRE(again.ok());
  CHECK(folder.Read("report/report.json") == report);
}

TEST_CASE("CellStore_RemovesWhatKilledRunsLeft_AndNothingYoung") {
  const ReplayFolder folder;
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
  const ReplayFolder folder;
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

/// A few hundred bytes that ask for 2^32 turns of a loop: hours of simulation that nobody has asked for.
TEST_CASE("Replay_LaunchesOfMoreInstructionsThanItIsToldToSimulate_AreRefused") {
  const ReplayFolder folder;
  trace::Instruction add;
  add.op = trace::OpClass::kInt;
  const trace::KernelCode code{
      .name = "waits", .instructions = {add}, .operands = {}, .blocks = {{0, 1}}, .register_count = 0};
  const auto write = [&](const std::string& name, std::uint64_t turns, std::uint64_t ctas) {
    trace::CtaTrace cta;
    cta.warps = {{0, 1, 0, 0}};
    cta.visits.push_back({0, ~0u});
    cta.repeats = {{.warp = 0, .visit = 0, .visit_count = 1, .access = 0, .access_count = 0, .more = turns - 1}};
    auto writer = trace::TraceWriter::Create(folder.Path(name), "test");
    REQUIRE(writer.ok());
    trace::LaunchInfo info;
    info.kernel = (*writer)->AddKernel(code);
    info.shape = {.ctas = ctas, .threads_per_cta = 32, .registers_per_thread = 8, .shared_bytes = 0};
    const auto out = (*writer)->BeginLaunch(info, code);
    const auto shared = std::make_shared<const trace::CtaTrace>(std::move(cta));
    for (std::uint64_t c = 0; c < ctas; ++c) out->Add(c, {shared, {}});
    out->End(0);
    REQUIRE((*writer)->Close().ok());
  };
  write("few.gltrace", 1000, 1000);
  write("many.gltrace", 1000, 1001);
  write("long.gltrace", (std::uint64_t{1} << 32) - 1, 2);
  ReplayOptions options = folder.Options();
  options.report.clear();
  options.workloads =
      WorkloadsOf({folder.Path("few.gltrace"), folder.Path("many.gltrace"), folder.Path("long.gltrace")}, false);
  options.devices = {"gtx480"};
  options.policies = {"leftover"};
  for (const bool kernels_only : {false, true}) {
    INFO(kernels_only);
    options.kernels_only = kernels_only;
    options.most_instructions = 1;
    auto run = RunReplay(options);
    REQUIRE(run.ok());
    CHECK(run->cells[0].ok());
    const std::string why = "kernel waits: a launch executes more than 1000000 warp instructions (--most-instructions)";
    CHECK(run->cells[1].problem.find(why) != std::string::npos);
    CHECK(run->cells[2].problem.find(why) != std::string::npos);
    options.most_instructions = ReplayOptions().most_instructions;
    options.workloads.erase(options.workloads.begin());
    run = RunReplay(options);
    REQUIRE(run.ok());
    CHECK(run->cells[0].ok());
    CHECK(run->cells[1].problem.find("more than 4000000000 warp instructions") != std::string::npos);
    options.workloads =
        WorkloadsOf({folder.Path("few.gltrace"), folder.Path("many.gltrace"), folder.Path("long.gltrace")}, false);
  }
}

TEST_CASE("SpeedUp_RefersToTheBaseline") {
  const ReplayFolder folder;
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
  const std::string docs =
      std::string(std::istreambuf_iterator<char>(file), {}) + std::string(std::istreambuf_iterator<char>(timing), {});
  for (const auto& columns : {RunColumns(), KernelColumns(), ProgramColumns(), IntervalColumns()}) {
    for (const report::Column& column : columns) {
      INFO("| `" << column.name << "` | " << column.unit << " | " << column.meaning << " |");
      CHECK(docs.find("| `" + column.name + "` | " + column.unit + " | " + column.meaning + " |") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace gridloom::study
