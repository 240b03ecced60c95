// The allocator and labels in L2 against one kernel after the other (section 4.1 to 4.3).
#include <algorithm>

#include "sim/study/pipeline/exhibits.h"

namespace gridloom::study::pipeline {
namespace {

std::string Percent(double value) { return Number("%.1f %%", value); }

/// The program's runs that all three exhibits show.
struct Compared {
  Outcome serial, preemptive, allocated, labelled;
};

Result<std::vector<Compared>> Compare(Runs& runs, const std::vector<std::string>& devices) {
  std::vector<Run> wanted;
  for (const std::string& device : devices) {
    for (const std::string& workload : runs.programs()) {
      for (const char* scheme : {kSerial, kPreemptive, kDka, kDkaLabelled})
        wanted.push_back({.program = workload, .scheme = scheme, .device = device});
    }
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  std::vector<Compared> all;
  for (std::size_t i = 0; i < outcomes.size(); i += 4) {
    all.push_back(
        {std::move(outcomes[i]), std::move(outcomes[i + 1]), std::move(outcomes[i + 2]), std::move(outcomes[i + 3])});
  }
  return all;
}

}  // namespace

Result<Exhibit> Fig9(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "Speed-up over one kernel after the other, in per cent; the paper's beside it (p.)",
      .columns = {"device", "workload", "class", "serial cycles", "preemptive", "p.", "dka + labels", "p. dka"},
      .drawings = {
          {.caption = "speed-up over one kernel after the other", .unit = "%", .names = {1}, .values = {4, 6}}}};
  GL_TRY(compared, Compare(runs, runs.devices()));
  std::size_t next = 0;
  for (const std::string& device : runs.devices()) {
    Means preemptive, dka, over;
    std::size_t better = 0;
    for (const std::string& workload : runs.programs()) {
      const Compared& of = compared[next++];
      GL_TRY(light, IsLight(settings, workload));
      const double left = Gain(of.serial.cycles, of.preemptive.cycles),
                   allocated = Gain(of.serial.cycles, of.labelled.cycles);
      preemptive.Add(left, light);
      dka.Add(allocated, light);
      over.Add(Gain(of.preemptive.cycles, of.labelled.cycles), light);
      better += allocated > 1;
      exhibit.rows.push_back({device, workload, light ? "light" : "heavy", of.serial.cycles, left,
                              PaperValue(settings, "preemptive." + device, workload), allocated,
                              PaperValue(settings, "dka." + device, workload)});
    }
    exhibit.rows.push_back({device, "mean", "", nullptr, preemptive.all(), nullptr, dka.all(), nullptr});
    exhibit.rows.push_back({device, "light", "", nullptr, preemptive.light(), nullptr, dka.light(), nullptr});
    exhibit.rows.push_back({device, "heavy", "", nullptr, preemptive.heavy(), nullptr, dka.heavy(), nullptr});
    if (device != runs.device()) continue;
    GL_TRY_STATUS(AddFinding(settings, "dka with labels over serial, mean", "mean", Percent(dka.all()), exhibit));
    GL_TRY_STATUS(
        AddFinding(settings, "dka with labels over preemptive, mean", "over_preemptive", Percent(over.all()), exhibit));
    GL_TRY_STATUS(AddFinding(settings, "heavy programs, dka with labels", "heavy_dka", Percent(dka.heavy()), exhibit));
    GL_TRY_STATUS(
        AddFinding(settings, "heavy programs, preemptive", "heavy_preemptive", Percent(preemptive.heavy()), exhibit));
    GL_TRY_STATUS(AddFinding(settings, "programs that gain more than 1 %", "better", std::to_string(better), exhibit));
  }
  return exhibit;
}

Result<Exhibit> Fig10(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "What the allocator brings over one kernel after the other, and what labels in L2 add, in per cent",
      .columns = {"device", "workload", "class", "dka", "dka + labels", "labels alone", "serial + labels"},
      .drawings = {
          {.caption = "speed-up over one kernel after the other", .unit = "%", .names = {1}, .values = {3, 4}}}};
  GL_TRY(compared, Compare(runs, {runs.device()}));
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    wanted.push_back({.program = workload, .scheme = kSerialLabelled, .device = runs.device()});
  }
  GL_TRY(labelled, runs.Measure<Outcome>(wanted));
  Means dka, both, alone;
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const Compared& of = compared[i];
    GL_TRY(light, IsLight(settings, runs.programs()[i]));
    const double without = Gain(of.serial.cycles, of.allocated.cycles),
                 with = Gain(of.serial.cycles, of.labelled.cycles);
    const double added = Gain(of.allocated.cycles, of.labelled.cycles);
    dka.Add(without, light);
    both.Add(with, light);
    alone.Add(added, light);
    exhibit.rows.push_back({runs.device(), runs.programs()[i], light ? "light" : "heavy", without, with, added,
                            Gain(of.serial.cycles, labelled[i].cycles)});
  }
  exhibit.rows.push_back({runs.device(), "light", "", dka.light(), both.light(), alone.light(), nullptr});
  exhibit.rows.push_back({runs.device(), "heavy", "", dka.heavy(), both.heavy(), alone.heavy(), nullptr});
  return exhibit;
}

Result<Exhibit> Fig11(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title =
          "Bytes that go to and from DRAM beside one kernel after the other, in per cent more; the paper's beside it "
          "(p.)",
      .columns = {"device", "workload", "serial MB", "preemptive", "dka", "dka + labels", "p.", "reads", "writes"},
      .drawings = {{.caption = "bytes of DRAM over one kernel after the other",
                    .unit = "%",
                    .names = {1},
                    .values = {3, 4, 5}}}};
  GL_TRY(compared, Compare(runs, {runs.device()}));
  Means labels;
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const Compared& of = compared[i];
    const std::string& workload = runs.programs()[i];
    const double bytes = of.serial.dram_bytes(), with = More(bytes, of.labelled.dram_bytes());
    labels.Add(with, false);
    exhibit.rows.push_back({runs.device(), workload, bytes / 1e6, More(bytes, of.preemptive.dram_bytes()),
                            More(bytes, of.allocated.dram_bytes()), with, PaperValue(settings, "dram", workload),
                            More(of.serial.dram_read_bytes, of.labelled.dram_read_bytes),
                            More(of.serial.dram_write_bytes, of.labelled.dram_write_bytes)});
  }
  exhibit.rows.push_back({runs.device(), "mean", nullptr, nullptr, nullptr, labels.all(),
                          PaperValue(settings, "dram", "mean"), nullptr, nullptr});
  GL_TRY_STATUS(AddFinding(settings, "bytes of DRAM, mean", "dram", Percent(labels.all()), exhibit));
  return exhibit;
}

}  // namespace gridloom::study::pipeline
