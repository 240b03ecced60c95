// How the allocator finds its splits (section 3.1).
#include <algorithm>

#include "scheduler/policy/pair_table.h"
#include "sim/study/pipeline/exhibits.h"
#include "sim/study/pipeline/steps.h"

namespace gridloom::study::pipeline {

/// One pair, step by step: what was predicted for the split that was chosen, and what it took.
Result<Exhibit> Fig6(const Settings& settings, Runs& runs) {
  GL_TRY(workload, settings.Text("fig6.workload"));
  Exhibit exhibit{.name = {},
                  .title = "How the split of kernels 1 and 2 of " + workload + " is found",
                  .columns = {"device", "step", "SMs of K1", "predicted cycles", "K1 took", "K2 took", "step took"},
                  .drawings = {{.caption = "cycles of a step", .unit = "", .names = {1}, .values = {3, 6}}}};
  GL_TRY(outcomes, runs.Measure({Allocated(workload, runs.device(), false)}));
  GL_TRY(device, runs.DeviceOf(Serial("", runs.device())));
  const auto pairs = PairsOf(outcomes[0]);
  const auto alone = AloneTimes(outcomes[0]);
  const auto pair = pairs.find({1, 0});
  if (pair == pairs.end() || !alone.contains(0) || !alone.contains(1)) return Error{workload + " never ran kernels 1 and 2 side by side"};
  policy::PairTable table(device.sm.count, {alone.at(1), alone.at(0)});
  for (std::size_t i = 0; i < pair->second.size(); ++i) {
    const PairStep& step = pair->second[i];
    exhibit.rows.push_back({runs.device(), i + 1, step.sms[1], table.StepTime(step.sms[0]), step.took[1], step.took[0], step.longest()});
    table.Measured(step.sms[0], {step.took[0], step.took[1]});
  }
  exhibit.notes.push_back(Number("Alone, kernel 1 takes %.0f cycles", alone.at(0)) + Number(", kernel 2 %.0f.", alone.at(1)));
  return exhibit;
}

Result<Exhibit> Table4(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Steps until the split of a pair does not change any more",
                  .columns = {"device", "workload", "pairs", "steps of each pair", "steps to converge", "mean", "not converged"}};
  std::vector<Run> wanted;
  for (const std::string& device : runs.devices()) {
    for (const std::string& workload : runs.workloads()) wanted.push_back(Allocated(workload, device, false));
  }
  GL_TRY(outcomes, runs.Measure(wanted));
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto pairs = PairsOf(outcomes[i]);
    std::string each;
    double converge = 0;
    std::size_t converged = 0, steps = 0;
    for (const auto& [stages, taken] : pairs) {
      const std::size_t needed = StepsToConverge(taken);
      each += (each.empty() ? "" : ", ") + NameOf(stages) + " " + (needed == 0 ? "-" : std::to_string(needed));
      steps = std::max(steps, taken.size());
      converge += static_cast<double>(needed);
      converged += needed != 0;
    }
    const double mean = converged == 0 ? 0 : converge / static_cast<double>(converged);
    exhibit.rows.push_back({wanted[i].device, wanted[i].workload, pairs.size(), steps, each,
                            converged == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(mean), pairs.size() - converged});
    if (wanted[i].device != runs.device() || converged == 0) continue;
    sum += mean;
    ++count;
  }
  GL_TRY_STATUS(AddFinding(settings, "steps to converge, mean over programs", "table4",
                           count == 0 ? "none converged" : Number("%.1f", sum / static_cast<double>(count)), exhibit));
  return exhibit;
}

}  // namespace gridloom::study::pipeline
