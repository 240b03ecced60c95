#include "interpose/launcher/replay/print.h"

#include <set>
#include <string>

#include "interpose/launcher/command.h"
#include "rewriter/support/terminal.h"
#include "sim/exec/memcheck.h"
#include "sim/hardware/catalog.h"
#include "sim/study/replay/columns.h"
#include "sim/study/replay/sharing.h"
#include "sim/study/report/files.h"

namespace gridloom::launcher {
namespace {

using study::CellOutcome;
using study::Json;
using study::ReplayRun;

/// With more replays than that, only what compares them is shown.
constexpr std::size_t kMostInFull = 6;

std::string Text(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Count(const Json& json, const char* name) { return exec::WithCommas(json[name].get<std::uint64_t>()); }
double Value(const Json& json, const char* name) { return json[name].get<double>(); }
std::string Name(const Json& json, const char* name) { return json[name].get<std::string>(); }

void PrintComparison(const ReplayRun& run) {
  Table table({"workload", "device", "policy", ">cycles", ">time us", ">speed-up", ">IPC", ">DRAM GB/s", "bound by"});
  for (std::size_t i = 0; i < run.plan.asked; ++i) {
    if (!run.cells[i].ok()) continue;
    const Json& cell = run.cells[i].result;
    const double speed_up = SpeedUp(run, i);
    table.Add({Name(cell, "workload"), Name(cell, "device"), Name(cell, "policy"), Count(cell, "cycles"),
               Text("%.1f", Value(cell, "seconds") * 1e6), speed_up == 0 ? "" : Text("%.2f", speed_up),
               Text("%.2f", Value(cell, "ipc")), Text("%.1f", Value(cell, "dram_gb_s")), Name(cell, "bound_by")});
  }
  if (!table.empty()) Print(table.Text(0) + "\n");
}

/// How well the programs of mixes fare; a dash where it is not known.
void PrintSharing(const ReplayRun& run) {
  const auto text = [](const char* format, const Json& value) {
    return value.is_null() ? "-" : Text(format, value.get<double>());
  };
  Table table({"workload", "device", "policy", ">STP", ">ANTT", ">fairness", ">program us", ">alone us", ">slowdown",
               "program"});
  for (std::size_t i = 0; i < run.plan.asked; ++i) {
    if (!run.cells[i].ok() || run.cells[i].result["programs"].size() < 2) continue;
    const Json record = RunRecord(run, i);
    bool first = true;
    for (const Json& program : record["programs"]) {
      const auto once = [&](const std::string& cell) { return first ? cell : std::string(); };
      const Json alone = program.value("alone_seconds", Json());
      table.Add({once(Name(record, "workload")), once(Name(record, "device")), once(Name(record, "policy")),
                 once(text("%.3f", record["stp"])), once(text("%.3f", record["antt"])),
                 once(text("%.3f", record["fairness"])), Text("%.1f", Value(program, "program_seconds") * 1e6),
                 alone.is_null() ? "-" : Text("%.1f", alone.get<double>() * 1e6),
                 text("%.3f", program.value("slowdown", Json())), Name(program, "program")});
      first = false;
    }
  }
  if (!table.empty()) Print(table.Text(0) + "\n");
}

/// What the proposed parts of the device counted: their reasons to wait, and their counters.
std::string PartCounters(const Json& cell, const sim::DeviceSpec& device) {
  Table table({"  counted by proposed parts", ">", "", ""});
  const auto counters = hardware::CountersOf(device);
  for (std::size_t i = timing::CounterTable().size(); i < counters.size(); ++i) {
    const std::string name(counters[i].name);
    table.Add({"  " + name, Count(cell["counters"], name.c_str()), std::string(counters[i].unit),
               std::string(counters[i].meaning)});
  }
  return table.empty() ? "" : table.Text(0) + "\n";
}

void PrintCell(const Json& cell, const sim::DeviceSpec& device) {
  Print(Coloured(Colour::kBold, Name(cell, "workload") + " on " + Name(cell, "device")) + ", policy " +
        Name(cell, "policy") + ": " + Count(cell, "cycles") + " cycles, " +
        Text("%.3f ms", Value(cell, "seconds") * 1e3) + "\n\n");
  Table table({">launches", ">CTAs", ">cycles", ">time us", ">IPC", ">occupancy", ">DRAM GB/s", "bound by", "kernel"});
  for (const Json& kernel : cell["kernels"]) {
    table.Add({Count(kernel, "launches"), Count(kernel, "kernel_ctas"), Count(kernel, "kernel_cycles"),
               Text("%.1f", Value(kernel, "seconds") * 1e6), Text("%.2f", Value(kernel, "kernel_ipc")),
               Text("%.0f %%", 100 * Value(kernel, "occupancy")), Text("%.1f", Value(kernel, "dram_gb_s")),
               Name(kernel, "bound_by"), Name(kernel, "kernel")});
  }
  const double instructions = Value(cell["counters"], "warp_instructions"), host = Value(cell, "host_seconds");
  Print(table.Text(2) + "\n  warp instructions " + Count(cell["counters"], "warp_instructions") + ", IPC " +
        Text("%.2f", Value(cell, "ipc")) + ", bound by " + Name(cell, "bound_by") + "\n  L1 hits " +
        Text("%.1f %%", 100 * Value(cell, "l1_hit_share")) + ", L2 hits " +
        Text("%.1f %%", 100 * Value(cell, "l2_hit_share")) + ", DRAM " + Text("%.1f GB/s", Value(cell, "dram_gb_s")) +
        "\n  simulated in " + Text("%.2f s", host) + ", " +
        Text("%.2f million", host == 0 ? 0 : instructions / host / 1e6) + " warp instructions per second\n\n" +
        PartCounters(cell, device));
}

Json WithSharing(const ReplayRun& run, std::size_t cell) {
  Json json = run.cells[cell].result;
  AddSharing(run, cell, json);
  return json;
}

/// The exit code of replays that have results: a failure when what was replayed is only the whole part of a damaged
/// trace.
int CheckTraces(const ReplayRun& run) {
  std::set<std::string> problems;
  for (const CellOutcome& outcome : run.cells) {
    if (!outcome.ok()) continue;
    for (const Json& problem : outcome.result.value("damaged_traces", Json::array()))
      problems.insert(problem.get<std::string>());
  }
  int exit_code = kExitOk;
  for (const std::string& problem : problems) exit_code = Fail("replayed without what is damaged: " + problem);
  return exit_code;
}

}  // namespace

int PrintReplay(const study::ReplayRun& run, bool json) {
  Json all = Json::array();
  if (!json && run.plan.asked > 1) PrintComparison(run);
  if (!json) PrintSharing(run);
  int exit_code = CheckTraces(run);
  for (std::size_t i = 0; i < run.cells.size(); ++i) {
    const CellOutcome& outcome = run.cells[i];
    if (!outcome.ok()) exit_code = Fail(run.plan.NameOf(run.plan.cells[i]) + ": " + outcome.problem);
    else if (i >= run.plan.asked) continue;
    else if (json) all.push_back(WithSharing(run, i));
    else if (run.plan.asked <= kMostInFull) PrintCell(outcome.result, run.plan.SpecOf(run.plan.cells[i]));
  }
  if (json) Print(report::JsonText(all, 2) + "\n");
  return exit_code;
}

}  // namespace gridloom::launcher
