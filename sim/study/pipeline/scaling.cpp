// How programs and their kernels gain from more SMs when they run one after the other (sections 2.2 and 2.3).
#include <algorithm>
#include <map>

#include "rewriter/support/demangle.h"
#include "sim/study/pipeline/exhibits.h"
#include "sim/timing/sm/occupancy.h"

namespace gridloom::study::pipeline {
namespace {

/// Kernels of one data set alone: instructions in a cycle, by stage.
std::vector<double> StageRates(const Outcome& outcome) {
  std::map<std::size_t, std::pair<double, double>> sums;  // instructions, cycles
  for (const Launch& launch : outcome.launches) {
    sums[launch.stage].first += launch.warp_instructions;
    sums[launch.stage].second += launch.took();
  }
  std::vector<double> rates;
  for (const auto& [stage, sum] : sums) rates.push_back(sum.first / sum.second);
  return rates;
}

Run OneSet(const std::string& workload, const std::string& device) {
  Run run{.program = workload, .scheme = kSerial, .device = device};
  run.arguments = {"--sets=1"};
  return run;
}

}  // namespace

/// Left: the device of the file's `fixed_channels` with other numbers of SMs. Right: devices whose channels and L2 grow
/// with the SMs.
Result<Exhibit> Fig2(const Settings& settings, Runs& runs) {
  GL_TRY(device, settings.Text("fixed_channels"));
  GL_TRY(sms, settings.List("scaling_sms"));
  if (sms.size() != runs.devices().size())
    return Error{settings.name() + ": scaling_sms needs a number for each of 'devices'"};
  Exhibit exhibit{.name = {},
                  .title = "Instructions per cycle, one kernel after the other, over those with the fewest SMs",
                  .columns = {"device", "workload"},
                  .drawings = {{.caption = "instructions per cycle", .unit = "times", .names = {1}, .values = {}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    for (const std::string& count : sms) {
      wanted.push_back({.program = workload, .scheme = kSerial, .device = device});
      wanted.back().keys = {{"sm.count", count}};
    }
    for (const std::string& other : runs.devices())
      wanted.push_back({.program = workload, .scheme = kSerial, .device = other});
  }
  for (std::size_t i = 0; i < sms.size(); ++i) exhibit.columns.push_back(sms[i] + " SMs, channels fixed");
  for (std::size_t i = 0; i < sms.size(); ++i) exhibit.columns.push_back(sms[i] + " SMs, in proportion");
  for (std::size_t i = 0; i < 2 * sms.size(); ++i) exhibit.drawings[0].values.push_back(2 + i);
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  std::size_t next = 0;
  for (const std::string& workload : runs.programs()) {
    Row row = {device, workload};
    for (std::size_t half = 0; half < 2; ++half) {
      const double least = outcomes[next].ipc();
      for (std::size_t i = 0; i < sms.size(); ++i) row.push_back(outcomes[next++].ipc() / least);
    }
    exhibit.rows.push_back(std::move(row));
  }
  return exhibit;
}

Result<Exhibit> Fig3(const Settings& settings, Runs& runs) {
  GL_TRY(device, settings.Text("fixed_channels"));
  GL_TRY(workload, settings.Text("fig3.workload"));
  GL_TRY(sms, settings.Numbers("fig3.sms"));
  Exhibit exhibit{
      .name = {},
      .title = "Instructions per cycle of each kernel of " + workload + " alone, by the number of SMs",
      .columns = {"device", "SMs"},
      .drawings = {{.caption = "instructions per cycle of each kernel", .unit = "", .names = {1}, .values = {}}}};
  std::vector<Run> wanted;
  for (const double count : sms) {
    wanted.push_back(OneSet(workload, device));
    wanted.back().keys = {{"sm.count", Number("%.0f", count)}};
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    Row row = {device, sms[i]};
    for (const double rate : StageRates(outcomes[i])) row.push_back(rate);
    exhibit.rows.push_back(std::move(row));
  }
  for (std::size_t stage = 0; stage + 2 < exhibit.rows.front().size(); ++stage) {
    exhibit.columns.push_back("kernel " + std::to_string(stage + 1));
    exhibit.drawings[0].values.push_back(stage + 2);
  }
  return exhibit;
}

/// Eq. 1: blocks of the grid over those that an SM holds.
Result<Exhibit> Classes(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Stages of each program, one data set alone: SMs that Eq. 1 asks for, and cycles",
                  .columns = {"device", "workload", "class", "kernel", "CTAs", "CTAs on an SM", "SMs required",
                              "cycles", "part of all %"}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) wanted.push_back(OneSet(workload, runs.device()));
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  GL_TRY(device, runs.DeviceOf(wanted.front()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    GL_TRY(light, IsLight(settings, runs.programs()[i]));
    GL_TRY(traced, runs.TraceOfRun(wanted[i]));
    GL_TRY(file, trace::TraceFile::Open(traced.path));
    double all = 0;
    for (const Launch& launch : outcomes[i].launches) all += launch.took();
    for (std::size_t stage = 0; stage < file->launches().size() && stage < outcomes[i].launches.size(); ++stage) {
      const trace::LaunchShape& shape = file->launches()[stage].info.shape;
      GL_TRY(needs, timing::NeedsOf(shape, device));
      const std::uint32_t fits = timing::CtasPerSm(needs, device);
      const double took = outcomes[i].launches[stage].took();
      exhibit.rows.push_back({runs.device(), runs.programs()[i], light ? "light" : "heavy",
                              DemangledName(file->kernels()[file->launches()[stage].info.kernel].name), shape.ctas,
                              fits, static_cast<double>(shape.ctas) / fits, took, 100 * took / all});
    }
  }
  return exhibit;
}

}  // namespace gridloom::study::pipeline
