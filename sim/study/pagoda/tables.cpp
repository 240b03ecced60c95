// Tables 3 and 5, and what goes beyond the paper: readings, other devices.
#include "sim/study/pagoda/exhibits.h"

namespace gridloom::study::pagoda {
namespace {

double SpeedUp(const Outcome& slower, const Outcome& faster) { return slower.cycles / faster.cycles; }

}  // namespace

Result<Exhibit> Table3(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Copies' share of the time in which copies or kernels run, under HyperQ, per cent",
                  .columns = {"device", "program", "tasks", "copies, %", "the paper", "time of a task, us",
                              "kernel of a task, us"}};
  std::vector<Run> wanted;
  for (const std::string& program : runs.programs()) wanted.push_back({.program = program});
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Outcome& of = outcomes[i];
    exhibit.rows.push_back({runs.device(), wanted[i].program, of.launches, of.copy_percent(),
                            PaperValue(settings, "copies", wanted[i].program), 1000 * of.milliseconds() / of.launches,
                            of.latency_us()});
  }
  return exhibit;
}

Result<Exhibit> Table5(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "Tasks with and without shared memory: speed-up over HyperQ with it (kernels alone), and occupancy",
      .columns = {"device", "program", "shared memory", "over HyperQ", "the paper", "occupancy, %", "the paper's, %"}};
  for (const std::string& program : settings.Below("table5")) {
    GL_TRY(arguments, settings.List("table5." + program));
    arguments.emplace_back("--copies=no");
    std::vector<std::string> without = arguments;
    without.emplace_back("--shared=no");
    GL_TRY(of, runs.Measure<Outcome>({{.program = program, .scheme = kHyperQ, .arguments = arguments},
                                      {.program = program, .scheme = kPagoda, .arguments = arguments},
                                      {.program = program, .scheme = kPagoda, .arguments = without}}));
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      const std::string which = i == 1 ? "yes" : "no";
      exhibit.rows.push_back({runs.device(), program, which, of[0].span_cycles / of[i].span_cycles,
                              PaperValue(settings, "shared_" + which, program), of[i].occupancy(),
                              PaperValue(settings, "occupancy_" + which, program)});
    }
  }
  return exhibit;
}

Result<Exhibit> Readings(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Where the paper is open: speed-up of Pagoda, geometric means over the programs",
                  .columns = {"device", "reading", "over HyperQ", "over GeMTC", "over Pagoda in batches"}};
  GL_TRY(readings, ReadingsFrom(settings));
  const std::string schemes[] = {kPagoda, kHyperQ, kGemtc, kBatching};
  for (const auto& [name, keys] : readings) {
    std::vector<Run> wanted;
    for (const std::string& program : runs.programs()) {
      for (const std::string& scheme : schemes) {
        if (!Can(settings, program, kGemtc)) continue;
        Run run{.program = program, .scheme = scheme, .keys = keys};
        // The one key that is none of the device's.
        const auto spawn = run.keys.extract("spawn");
        if (spawn && spawn.mapped() == "free" && scheme == kGemtc) run.scheme = kGemtcFree;
        if (spawn && spawn.mapped() == "free" && scheme == kBatching) run.scheme = kBatchingFree;
        wanted.push_back(std::move(run));
      }
    }
    GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
    GeometricMean means[3];
    for (std::size_t i = 0; i < outcomes.size(); i += std::size(schemes)) {
      for (std::size_t other = 1; other < std::size(schemes); ++other)
        means[other - 1].Add(SpeedUp(outcomes[i + other], outcomes[i]));
    }
    exhibit.rows.push_back(
        {runs.device(), name, Cell(means[0].value()), Cell(means[1].value()), Cell(means[2].value())});
  }
  return exhibit;
}

Result<Exhibit> Devices(const Settings& settings, Runs& runs) {
  GL_TRY(devices, settings.List("devices.names"));
  Exhibit exhibit{
      .name = {},
      .title = "On other devices, against graphs: time with copies, ms",
      .columns = {"device", "program", "HyperQ", "graphs", "Pagoda", "Pagoda over HyperQ", "Pagoda over graphs"}};
  exhibit.drawings = {{.caption = exhibit.title, .unit = "ms", .names = {1}, .values = {2, 3, 4}}};
  const std::string schemes[] = {kHyperQ, kGraph, kPagoda};
  for (const std::string& device : devices) {
    GL_TRY(keys, KeysFrom(settings, "devices.keys"));
    std::vector<Run> wanted;
    std::vector<std::string> programs;
    for (const std::string& program : runs.programs()) {
      if (!Can(settings, program, kGraph)) continue;
      programs.push_back(program);
      for (const std::string& scheme : schemes)
        wanted.push_back({.program = program, .scheme = scheme, .device = device, .keys = keys});
    }
    GL_TRY(of, runs.Measure<Outcome>(wanted));
    GeometricMean hyperq, graphs;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const Outcome* const row = &of[i * std::size(schemes)];
      hyperq.Add(SpeedUp(row[0], row[2]));
      graphs.Add(SpeedUp(row[1], row[2]));
      exhibit.rows.push_back({device, programs[i], row[0].milliseconds(), row[1].milliseconds(), row[2].milliseconds(),
                              SpeedUp(row[0], row[2]), SpeedUp(row[1], row[2])});
    }
    exhibit.notes.push_back(device + ": Pagoda over HyperQ " + Number("%.2fx", hyperq.value()) +
                            Number(", over graphs %.2fx.", graphs.value()));
  }
  return exhibit;
}

}  // namespace gridloom::study::pagoda
