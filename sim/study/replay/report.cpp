#include "sim/study/replay/report.h"

#include <algorithm>
#include <filesystem>

#include "sim/exec/memcheck.h"
#include "sim/hardware/catalog.h"
#include "sim/study/replay/columns.h"
#include "sim/study/replay/sharing.h"
#include "sim/timing/derived.h"

namespace gridloom::study {
namespace {

namespace fs = std::filesystem;
using report::Block;
using report::Column;

std::string Text(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Plural(std::size_t count, const std::string& one) {
  return exec::WithCommas(count) + " " +
         (count == 1            ? one
          : one.ends_with("cy") ? one.substr(0, one.size() - 1) + "ies"
                                : one + "s");
}

/// What tells a replay from the others of the run: nothing that is the same for all.
std::string ShortName(const ReplayPlan& plan, const Cell& cell, bool workload) {
  std::string name;
  const auto add = [&](bool several, const std::string& part) {
    if (several) name += (name.empty() ? "" : ", ") + part;
  };
  add(workload && plan.workloads.size() > 1, plan.workloads[cell.workload].name);
  add(plan.devices.size() > 1, plan.devices[cell.device].label);
  add(plan.policies.size() > 1, cell.policy);
  return name.empty() ? (workload ? plan.workloads[cell.workload].name : plan.devices[cell.device].label) : name;
}

std::string BaselineName(const ReplayPlan& plan) {
  if (plan.base_device.empty()) return plan.base_policy + " on the same device";
  if (plan.base_policy.empty()) return plan.base_device + " under the same policy";
  return plan.base_device + " under " + plan.base_policy;
}

/// The replays that have ended, of those that were asked for.
std::vector<std::size_t> Finished(const ReplayRun& run) {
  std::vector<std::size_t> finished;
  for (std::size_t i = 0; i < run.plan.asked; ++i) {
    if (run.cells[i].ok()) finished.push_back(i);
  }
  return finished;
}

void AddSummary(const ReplayRun& run, report::Page& page) {
  page.Section("Summary");
  const std::vector<std::size_t> finished = Finished(run);
  const auto failed = std::ranges::count_if(run.cells, [](const CellOutcome& cell) { return !cell.ok(); });
  if (failed != 0) {
    std::string text = Plural(static_cast<std::size_t>(failed), "replay") + " of " + std::to_string(run.cells.size()) +
                       " have no result:";
    for (std::size_t i = 0; i < run.cells.size(); ++i) {
      if (!run.cells[i].ok()) text += "\n" + run.plan.NameOf(run.plan.cells[i]) + ": " + run.cells[i].problem;
    }
    page.Add(report::Code(text));
  }
  if (finished.size() == 1) {
    const Json& cell = run.cells[finished[0]].result;
    page.Add(
        report::Figures({{"simulated time", Text("%.4g ms", cell["seconds"].get<double>() * 1e3),
                          exec::WithCommas(cell["cycles"]) + " cycles"},
                         {"warp instructions per cycle", Text("%.3g", cell["ipc"]),
                          exec::WithCommas(cell["counters"]["warp_instructions"]) + " instructions"},
                         {"bound by", cell["bound_by"], ""},
                         {"DRAM", Text("%.4g GB/s", cell["dram_gb_s"]),
                          Text("%.0f %% of its cycles", 100 * cell["dram_share"].get<double>())},
                         {"occupancy", Text("%.0f %%", 100 * cell["occupancy"].get<double>()), "of the warps that fit"},
                         {"L2 hits", Text("%.0f %%", 100 * cell["l2_hit_share"].get<double>()),
                          Text("L1: %.0f %%", 100 * cell["l1_hit_share"].get<double>())}}));
  }
  std::vector<Column> columns =
      Select(RunColumns(), {"workload", "device", "policy", "cycles", "seconds", "speed_up", "ipc", "occupancy",
                            "l1_hit_share", "l2_hit_share", "dram_gb_s", "dram_share", "bound_by"});
  if (run.plan.asked == 1) std::erase_if(columns, [](const Column& column) { return column.name == "speed_up"; });
  std::vector<Json> rows;
  for (const std::size_t i : finished) rows.push_back(Row(columns, RunRecord(run, i)));
  page.Add(report::Table("Replays", columns, rows));
}

void AddSpeedUps(const ReplayRun& run, report::Page& page) {
  constexpr std::size_t kMostBars = 400;
  const ReplayPlan& plan = run.plan;
  if (plan.devices.size() * plan.policies.size() < 2) return;
  page.Section("Speed-up");
  std::vector<report::BarGroup> groups(plan.workloads.size());
  std::size_t bars = 0;
  for (const std::size_t i : Finished(run)) {
    const Cell& cell = plan.cells[i];
    const double speed_up = SpeedUp(run, i);
    if (speed_up == 0 || bars++ >= kMostBars) continue;
    report::BarGroup& group = groups[cell.workload];
    group.name = plan.workloads[cell.workload].name;
    group.bars.push_back({ShortName(plan, cell, false), plan.policies.size() > 1 ? cell.policy : "", speed_up});
  }
  std::erase_if(groups, [](const report::BarGroup& group) { return group.bars.empty(); });
  page.Add(report::Bars("Speed-up over " + BaselineName(plan), "times", groups, 1));
  if (bars > kMostBars)
    page.Add(report::Paragraph("The first " + std::to_string(kMostBars) + " of " + std::to_string(bars) +
                               " replays are shown; runs.csv has all."));
}

void AddStates(const ReplayRun& run, report::Page& page) {
  constexpr std::size_t kMost = 48;
  page.Section("Where the time goes");
  std::vector<std::string> parts;
  const std::vector<timing::SchedulerState> states = StatesOf(run.plan);
  for (const timing::SchedulerState& state : states) parts.emplace_back(state.label);
  std::vector<report::Shares> rows;
  for (const std::size_t i : Finished(run)) {
    if (rows.size() == kMost) break;
    report::Shares shares{ShortName(run.plan, run.plan.cells[i], true), {}};
    const Json& counters = run.cells[i].result["counters"];  // a device without the part has not its reason to wait
    for (const timing::SchedulerState& state : states)
      shares.values.push_back(counters.value(std::string(state.counter), 0.0));
    rows.push_back(std::move(shares));
  }
  page.Add(report::Divided("What the SMs' schedulers did, in cycles in which the SM had a CTA", parts, rows));
}

void AddTimelines(const ReplayRun& run, NamedBlocks timelines, report::Page& page) {
  if (timelines.empty()) return;
  page.Section("What happened when");
  const std::size_t more = Finished(run).size() - timelines.size();
  if (timelines.size() > 1) {
    page.Add(report::Choice("Replay", std::move(timelines)));
  } else {
    for (Block& block : timelines[0].second) page.Add(std::move(block));
  }
  if (more != 0)
    page.Add(report::Paragraph("What happened when in " + Plural(more, "more replay") +
                               " is not in this page, but in the files beside it."));
}

/// Every statistic, one row each, with the first replays as columns.
void AddStatistics(const ReplayRun& run, report::Page& page) {
  constexpr std::size_t kMost = 12;
  page.Section("All statistics");
  std::vector<std::size_t> finished = Finished(run);
  const std::size_t all = finished.size();
  finished.resize(std::min(all, kMost));
  std::vector<Column> heads{{"name", "", "name in JSON and CSV", report::Kind::kText}};
  for (const std::size_t i : finished)
    heads.push_back({ShortName(run.plan, run.plan.cells[i], true), "", run.plan.NameOf(run.plan.cells[i])});
  heads.push_back({"unit", "", "", report::Kind::kText});
  heads.push_back({"meaning", "", "", report::Kind::kText});
  std::vector<Json> rows;
  for (const Column& column : RunColumns(CountersOf(run.plan))) {
    if (column.kind == report::Kind::kText) continue;
    Json row{column.name};
    for (const std::size_t i : finished) row.push_back(Row({column}, RunRecord(run, i))[0]);
    row.push_back(column.unit);
    row.push_back(column.meaning);
    rows.push_back(std::move(row));
  }
  page.Add(report::Table("Statistics", heads, rows));
  if (all > kMost)
    page.Add(report::Paragraph("The first " + std::to_string(kMost) + " of " + std::to_string(all) +
                               " replays; runs.csv has all."));
}

/// The value of a key of proposed parts; empty for a device that has not the part.
std::string PartField(const sim::DeviceSpec& device, const std::string& key) {
  const auto fields = hardware::FieldsOf(device);
  const auto field = std::ranges::find(fields, key, &hardware::KeyText::key);
  return field == fields.end() ? "" : field->value;
}

void AddConfiguration(const ReplayRun& run, const ReplayOptions& options, report::Page& page) {
  const ReplayPlan& plan = run.plan;
  page.Section("Configuration");
  page.Add(report::Paragraph("The command that does the same again; the traces and the device numbers that it used:"));
  page.Add(report::Code(options.command));
  std::vector<Json> traces;
  for (std::size_t w = 0; w < plan.workloads.size(); ++w) {
    for (const FileIdentity& trace : plan.traces[w])
      traces.push_back({plan.workloads[w].name, trace.path, trace.bytes, trace.hash});
  }
  page.Add(report::Table("Traces",
                         {{"workload", "", "", report::Kind::kText},
                          {"file", "", "", report::Kind::kText},
                          {"bytes", "", "", report::Kind::kCount},
                          {"XXH3", "", "of the contents", report::Kind::kText}},
                         traces));
  constexpr std::size_t kMostDevices = 16;
  const std::size_t shown = std::min(plan.devices.size(), kMostDevices);
  std::vector<Column> heads{{"key", "", "of the device file", report::Kind::kText}};
  for (std::size_t d = 0; d < shown; ++d) heads.push_back({plan.devices[d].label, "", "", report::Kind::kText});
  std::vector<Json> rows;
  for (const sim::DeviceField& field : sim::DeviceFields()) {
    Json row{field.key};
    for (std::size_t d = 0; d < shown; ++d) row.push_back(sim::FieldText(field, plan.devices[d].spec));
    rows.push_back(std::move(row));
  }
  std::vector<std::string> keys;  // of proposed parts that some of them have
  for (std::size_t d = 0; d < shown; ++d) {
    for (const hardware::KeyText& field : hardware::FieldsOf(plan.devices[d].spec)) {
      if (std::ranges::find(keys, field.key) == keys.end()) keys.push_back(field.key);
    }
  }
  for (const std::string& key : keys) {
    Json row{key};
    for (std::size_t d = 0; d < shown; ++d) row.push_back(PartField(plan.devices[d].spec, key));
    rows.push_back(std::move(row));
  }
  page.Add(report::Table("Devices", heads, rows));
}

Json ReportJson(const ReplayRun& run, const ReplayOptions& options) {
  Json json{{"format", "gridloom-report-1"},
            {"command", options.command},
            {"baseline", BaselineName(run.plan)},
            {"runs", Json::array()},
            {"problems", Json::array()}};
  for (std::size_t i = 0; i < run.cells.size(); ++i) {
    if (run.cells[i].ok() && i < run.plan.asked) json["runs"].push_back(RunRecord(run, i));
    if (!run.cells[i].ok())
      json["problems"].push_back({{"replay", run.plan.NameOf(run.plan.cells[i])}, {"problem", run.cells[i].problem}});
  }
  return json;
}

Status WriteTables(const ReplayRun& run, const std::string& folder) {
  std::vector<Json> runs, kernels, programs;
  const std::vector<timing::CounterInfo> counters = CountersOf(run.plan);
  const std::vector<Column> run_columns = RunColumns(counters), kernel_columns = KernelColumns(counters);
  for (const std::size_t i : Finished(run)) {
    const Json record = RunRecord(run, i);
    runs.push_back(Row(run_columns, record));
    for (const Json& kernel : record["kernels"]) kernels.push_back(Row(kernel_columns, KernelRecord(record, kernel)));
    for (const Json& program : ProgramRecords(record)) programs.push_back(Row(ProgramColumns(), program));
  }
  GL_TRY_STATUS(report::WriteFile(folder + "/runs.csv", report::Csv(run_columns, runs)));
  GL_TRY_STATUS(report::WriteFile(folder + "/kernels.csv", report::Csv(kernel_columns, kernels)));
  return report::WriteFile(folder + "/programs.csv", report::Csv(ProgramColumns(), programs));
}

Status WriteTimeline(const std::string& folder, const std::string& name, const Json& cell,
                     const sim::DeviceSpec& device) {
  const std::vector<Column> columns = IntervalColumns(hardware::CountersOf(device));
  std::vector<Json> rows;
  for (const Json& record : IntervalRecords(cell, device)) rows.push_back(Row(columns, record));
  GL_TRY_STATUS(report::WriteFile(folder + "/intervals/" + name + ".csv", report::Csv(columns, rows)));
  return report::WriteFile(folder + "/trace-events/" + name + ".json",
                           report::JsonText(TraceEvents(cell, device)) + "\n");
}

}  // namespace

report::Page ReportPage(const ReplayRun& run, const ReplayOptions& options, NamedBlocks timelines) {
  const ReplayPlan& plan = run.plan;
  std::string title = options.title;
  for (const Workload& workload : plan.workloads) {
    if (options.title.empty()) title += (title.empty() ? "" : ", ") + workload.name;
  }
  report::Page page(title, Plural(plan.asked, "replay") +
                               " on Gridloom's timing model: " + Plural(plan.workloads.size(), "workload") + ", " +
                               Plural(plan.devices.size(), "device") + ", " + Plural(plan.policies.size(), "policy"));
  AddSummary(run, page);
  AddSpeedUps(run, page);
  AddMixes(run, page);
  AddStates(run, page);
  AddTimelines(run, std::move(timelines), page);
  AddStatistics(run, page);
  AddConfiguration(run, options, page);
  return page;
}

Status WriteReport(const ReplayRun& run, const ReplayOptions& options) {
  std::error_code error;
  for (const char* part : {"/intervals", "/trace-events"}) {
    fs::create_directories(options.report + part, error);
    if (error) return Error{"cannot make the folder " + options.report + part + ": " + error.message()};
  }
  const CellStore store(options.report);
  NamedBlocks timelines;
  std::size_t written = 0, length = 0;
  for (const std::size_t i : Finished(run)) {
    if (written++ == kMostTimelines) break;
    const Cell& cell = run.plan.cells[i];
    const sim::DeviceSpec device = run.plan.SpecOf(cell);
    GL_TRY(whole, store.Load(cell, device));
    if (!whole) return Error{"cannot read " + store.PathOf(cell) + ", which was there"};
    GL_TRY_STATUS(WriteTimeline(options.report, cell.file, *whole, device));
    if (length > kLongPage) continue;
    timelines.emplace_back(run.plan.NameOf(cell), TimelineBlocks(*whole, device));
    for (const Block& block : timelines.back().second) length += report::JsonText(block).size();
  }
  GL_TRY_STATUS(WriteTables(run, options.report));
  GL_TRY_STATUS(
      report::WriteFile(options.report + "/report.json", report::JsonText(ReportJson(run, options), 1) + "\n"));
  return report::WriteFile(options.report + "/report.html", ReportPage(run, options, std::move(timelines)).Html());
}

}  // namespace gridloom::study
