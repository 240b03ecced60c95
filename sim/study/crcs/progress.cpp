// How far each kernel has come by when (Figure 10).
#include "sim/study/crcs/exhibits.h"

namespace gridloom::study::crcs {

Result<Exhibit> Fig10(const Settings& settings, Runs& runs) {
  GL_TRY(workload, settings.Text("fig10.workload"));
  Exhibit exhibit{.name = {},
                  .title = "Thread blocks of each kernel of " + workload + " that have ended, by time",
                  .columns = {"scheduler", "kernel", "ms", "ended %"},
                  .drawings = {{.kind = Drawing::Kind::kLines,
                                .caption = "thread blocks that have ended",
                                .unit = "%",
                                .names = {1},
                                .values = {2, 3}}}};
  GL_TRY(schedulers, settings.List("fig10.schedulers"));
  for (const std::string& policy : schedulers) {
    Run run{.program = workload, .scheme = policy};
    run.inputs.kept_ctas = Progress::kMostCtas;
    GL_TRY(measured, runs.Measure<Progress>({run}));
    const Progress& progress = measured.front();
    double later = 0, done = 0;  // of all kernels but the first, at the end of the prelude
    for (std::size_t kernel = 0; kernel < progress.kernels.size(); ++kernel) {
      const std::vector<double>& ends = progress.kernels[kernel];
      for (std::size_t i = 0; i < ends.size(); ++i) {
        exhibit.rows.push_back({policy, kernel, ends[i], 100.0 * static_cast<double>(i + 1) / Progress::kSteps});
        if (kernel == 0) continue;
        ++later;
        done += ends[i] <= progress.prelude_ends;
      }
    }
    exhibit.notes.push_back(policy + ": the prelude ends after " + Number("%.2f", progress.prelude_ends) + " of " +
                            Number("%.2f", progress.total) + " ms; until then " +
                            Number("%.0f", later == 0 ? 0 : 100 * done / later) +
                            " % of the thread blocks of all kernels but the first have ended.");
  }
  return exhibit;
}

}  // namespace gridloom::study::crcs
