// What the time of programs is spent on whose stages follow each other (Figures 2 and 11).
#include "sim/study/crcs/exhibits.h"

namespace gridloom::study::crcs {
namespace {

constexpr const char* kStages[] = {"prelude",     "H2D copy", "first kernel", "other kernels",
                                   "last kernel", "D2H copy", "postlude",     "rest"};

std::vector<std::string> Columns(std::vector<std::string> first) {
  first.insert(first.end(), std::begin(kStages), std::end(kStages));
  return first;
}

/// Shares of the stages, in per cent.
Row WithShares(Row row, const Times& times) {
  for (const double part : {times.read, times.to_device, times.first, times.middle, times.last, times.to_host,
                            times.write, times.outside()}) {
    row.push_back(100 * part / times.total);
  }
  return row;
}

}  // namespace

/// Programs that the paper timed on a board, for inputs of several sizes.
Result<Exhibit> Fig2(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "What the time is spent on, by the size of the input; per cent of the run time",
                  .columns = Columns({"device", "program", "size", "kernels", "total ms"}),
                  .drawings = {{.caption = "per cent of the run time",
                                .unit = "%",
                                .names = {1, 2},
                                .values = {5, 6, 7, 8, 9, 10, 11, 12}}}};
  GL_TRY(device, settings.Text("fig2.device"));
  std::vector<Run> wanted;
  std::vector<double> sizes_of;
  for (const std::string& program : settings.Below("fig2.sizes")) {
    GL_TRY(sizes, settings.Numbers("fig2.sizes." + program));
    for (const double size : sizes) {
      wanted.push_back({.program = program, .arguments = {Number("--size=%.0f", size)}, .device = device});
      sizes_of.push_back(size);
    }
  }
  GL_TRY(times, runs.Measure<Times>(wanted));
  double most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    exhibit.rows.push_back(
        WithShares({device, wanted[i].program, sizes_of[i], times[i].kernels, times[i].total}, times[i]));
    most = std::max(most, 100 * (times[i].read + times[i].write) / times[i].total);
  }
  GL_TRY(paper, settings.Text("paper.findings.fig2"));
  exhibit.findings.push_back({"prelude and postlude together, at most", Number("%.0f %%", most), paper});
  exhibit.notes.push_back("Prelude and postlude together take at most " + Number("%.0f", most) +
                          " % of the time; the paper: " + paper + ".");
  return exhibit;
}

Result<Exhibit> Fig11(const Settings&, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "What the baseline's time is spent on, in per cent",
      .columns = Columns({"device", "workload", "kernels", "total ms"}),
      .drawings = {
          {.caption = "per cent of the run time", .unit = "%", .names = {1}, .values = {4, 5, 6, 7, 8, 9, 10, 11}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) wanted.push_back({.program = workload});
  GL_TRY(times, runs.Measure<Times>(wanted));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    exhibit.rows.push_back(WithShares({runs.device(), wanted[i].program, times[i].kernels, times[i].total}, times[i]));
  }
  return exhibit;
}

}  // namespace gridloom::study::crcs
