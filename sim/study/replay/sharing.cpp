#include "sim/study/replay/sharing.h"

#include <algorithm>

#include "sim/study/replay/columns.h"

namespace gridloom::study {
namespace {

using report::Column;
using report::Kind;

const std::vector<Column> kPrograms{
    {"workload", "", "traces that were replayed together", Kind::kText},
    {"device", "", "device, with what was changed of it", Kind::kText},
    {"policy", "", "scheduling policy", Kind::kText},
    {"program", "", "trace of the program", Kind::kText},
    {"program_cycles", "cycles", "SM cycles until the program had ended, the others beside it", Kind::kCount},
    {"program_seconds", "s", "the same as simulated time", Kind::kTime},
    {"alone_seconds", "s", "simulated time until it has ended when it has the device alone", Kind::kTime},
    {"slowdown", "times", "program_seconds over alone_seconds", Kind::kReal},
};

/// Programs of one workload on one device under all policies: a group of bars.
std::vector<report::BarGroup> BarsOf(const ReplayRun& run, double model::SharingFigures::*figure) {
  constexpr std::size_t kMostBars = 400;
  const ReplayPlan& plan = run.plan;
  std::vector<report::BarGroup> groups(plan.workloads.size());
  std::size_t bars = 0;
  for (std::size_t i = 0; i < plan.asked && bars < kMostBars; ++i) {
    const auto figures = model::FiguresOf(SharedTimes(run, i));
    if (!figures) continue;
    const Cell& cell = plan.cells[i];
    report::BarGroup& group = groups[cell.workload];
    group.name = plan.workloads[cell.workload].name;
    const std::string device = plan.devices.size() > 1 ? plan.devices[cell.device].label + ", " : "";
    group.bars.push_back({device + cell.policy, plan.policies.size() > 1 ? cell.policy : "", (*figures).*figure});
    ++bars;
  }
  std::erase_if(groups, [](const report::BarGroup& group) { return group.bars.empty(); });
  return groups;
}

}  // namespace

bool HasMixes(const ReplayPlan& plan) {
  return std::ranges::any_of(plan.workloads, [](const Workload& workload) { return workload.traces.size() > 1; });
}

std::vector<model::SharedTime> SharedTimes(const ReplayRun& run, std::size_t number) {
  const Cell& cell = run.plan.cells[number];
  const auto alone = run.plan.alone.find({cell.workload, cell.device});
  if (cell.program || alone == run.plan.alone.end() || !run.cells[number].ok()) return {};
  const Json& programs = run.cells[number].result["programs"];
  if (programs.size() != alone->second.size()) return {};
  std::vector<model::SharedTime> times;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const CellOutcome& own = run.cells[alone->second[i]];
    const bool known = own.ok() && own.result["programs"].size() == 1;
    times.push_back({.alone = known ? own.result["programs"][0]["program_seconds"].get<double>() : 0,
                     .shared = programs[i]["program_seconds"].get<double>()});
  }
  return times;
}

void AddSharing(const ReplayRun& run, std::size_t cell, Json& record) {
  const std::vector<model::SharedTime> times = SharedTimes(run, cell);
  const auto figures = model::FiguresOf(times);
  record["stp"] = figures ? Json(figures->stp) : Json();
  record["antt"] = figures ? Json(figures->antt) : Json();
  record["fairness"] = figures ? Json(figures->fairness) : Json();
  for (std::size_t i = 0; i < times.size(); ++i) {
    Json& program = record["programs"][i];
    program["alone_seconds"] = times[i].alone > 0 ? Json(times[i].alone) : Json();
    program["slowdown"] = times[i].known() ? Json(times[i].slowdown()) : Json();
  }
}

std::vector<Column> ProgramColumns() { return kPrograms; }

std::vector<Json> ProgramRecords(const Json& run_record) {
  std::vector<Json> records;
  for (const Json& program : run_record["programs"]) {
    records.push_back(program);
    for (const char* name : {"workload", "device", "policy"}) records.back()[name] = run_record[name];
  }
  return records.size() > 1 ? records : std::vector<Json>();
}

void AddMixes(const ReplayRun& run, report::Page& page) {
  constexpr std::size_t kMostRows = 1000;
  if (!HasMixes(run.plan)) return;
  page.Section("Programs that share the device");
  page.Add(report::Paragraph(run.plan.alone.empty()
                                 ? "What each program takes alone was not asked for (--no-alone)."
                                 : "What each program takes alone was replayed on the same device under " +
                                       run.plan.alone_policy + "."));
  std::vector<Json> rows, programs;
  const std::vector<Column> columns =
      Select(RunColumns(), {"workload", "device", "policy", "stp", "antt", "fairness", "seconds"});
  for (std::size_t i = 0; i < run.plan.asked; ++i) {
    if (!run.cells[i].ok() || run.plan.workloads[run.plan.cells[i].workload].traces.size() < 2) continue;
    const Json record = RunRecord(run, i);
    rows.push_back(Row(columns, record));
    for (const Json& program : ProgramRecords(record)) programs.push_back(Row(kPrograms, program));
  }
  page.Add(report::Table("Throughput and fairness", columns, rows));
  if (const auto groups = BarsOf(run, &model::SharingFigures::stp); !groups.empty()) {
    page.Add(report::Bars("System throughput (STP): more is better", "programs", groups, 1));
    page.Add(report::Bars("Average normalised turnaround time (ANTT): less is better", "times",
                          BarsOf(run, &model::SharingFigures::antt), 1));
    page.Add(report::Bars("Fairness: least over greatest progress", "share",
                          BarsOf(run, &model::SharingFigures::fairness), 1));
  }
  const std::size_t all = programs.size();
  programs.resize(std::min(all, kMostRows));
  page.Add(report::Table("What each program takes", kPrograms, programs));
  if (all > kMostRows)
    page.Add(report::Paragraph("The first " + std::to_string(kMostRows) + " of " + std::to_string(all) +
                               " rows; programs.csv has all."));
}

}  // namespace gridloom::study
