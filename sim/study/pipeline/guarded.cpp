// Beyond the paper: no worse than the better of serial and preemptive, whatever the program.
#include <algorithm>

#include "sim/study/pipeline/exhibits.h"

namespace gridloom::study::pipeline {
namespace {

/// What a further data set takes, when there are already so many that whoever searches has found: the beginning and the
/// end do not count.
double CyclesOfASet(const Outcome& few, const Outcome& many, double sets) { return (many.cycles - few.cycles) / sets; }

}  // namespace

Result<Exhibit> Guarded(const Settings& settings, Runs& runs) {
  GL_TRY(sets, settings.Numbers("guarded.sets"));
  if (sets.size() != 2 || sets[1] <= sets[0]) return Error{settings.name() + ": guarded.sets needs two rising numbers"};
  GL_TRY(keys, KeysFrom(settings, "guarded.keys"));
  Exhibit exhibit{
      .name = {},
      .title = "What a further data set takes behind the first " + Number("%.0f", sets[0]) +
               ": speed-up over one kernel after the other, per cent",
      .columns = {"device", "workload", "serial cycles", "preemptive", "dka", "dka-guarded", "behind the better %"},
      .drawings = {
          {.caption = "speed-up over one kernel after the other", .unit = "%", .names = {1}, .values = {3, 4, 5}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    for (const std::string scheme : {kSerial, kPreemptive, kDka, kDkaGuarded}) {
      Run run{.program = workload, .scheme = scheme, .device = runs.device()};
      if (run.scheme != kSerial) run.keys = keys;
      for (const double count : sets) {
        wanted.push_back(run);
        wanted.back().arguments = {Number("--sets=%.0f", count)};
      }
    }
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  Means means[3];
  double most_behind = 0;
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    double cycles[4];
    for (std::size_t j = 0; j < 4; ++j)
      cycles[j] = CyclesOfASet(outcomes[8 * i + 2 * j], outcomes[8 * i + 2 * j + 1], sets[1] - sets[0]);
    const double behind = 100 * (cycles[3] / std::min(cycles[0], cycles[1]) - 1);
    most_behind = std::max(most_behind, behind);
    Row row = {runs.device(), runs.programs()[i], cycles[0]};
    for (std::size_t j = 1; j < 4; ++j) {
      row.push_back(Gain(cycles[0], cycles[j]));
      means[j - 1].Add(Gain(cycles[0], cycles[j]), false);
    }
    row.push_back(behind);
    exhibit.rows.push_back(std::move(row));
  }
  exhibit.rows.push_back({runs.device(), "mean", nullptr, means[0].all(), means[1].all(), means[2].all(), most_behind});
  exhibit.notes.push_back(
      "The last number of the last row is the most that dka-guarded is behind. Any number of kernels runs at once.");
  return exhibit;
}

}  // namespace gridloom::study::pipeline
