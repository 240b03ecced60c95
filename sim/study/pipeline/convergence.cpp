// How the allocator finds its splits (section 3.1).
#include <algorithm>
#include <cmath>

#include "scheduler/policy/share_table.h"
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
  GL_TRY(outcomes, runs.Measure<Outcome>({{.program = workload, .scheme = kDka, .device = runs.device()}}));
  GL_TRY(device, runs.DeviceOf({.scheme = kSerial, .device = runs.device()}));
  const auto pairs = PairsOf(outcomes[0]);
  const auto alone = AloneTimes(outcomes[0]);
  const auto pair = pairs.find({1, 0});
  if (pair == pairs.end() || !alone.contains(0) || !alone.contains(1))
    return Error{workload + " never ran kernels 1 and 2 side by side"};
  policy::ShareTable table(device.sm.count, {alone.at(1), alone.at(0)});
  for (std::size_t i = 0; i < pair->second.size(); ++i) {
    const PairStep& step = pair->second[i];
    exhibit.rows.push_back(
        {runs.device(), i + 1, step.sms[1], table.StepTime(step.sms), step.took[1], step.took[0], step.longest()});
    table.Measured(step.sms, step.took);
  }
  exhibit.notes.push_back(Number("Alone, kernel 1 takes %.0f cycles", alone.at(0)) +
                          Number(", kernel 2 %.0f.", alone.at(1)));
  return exhibit;
}

namespace {

/// Steps that a program's pairs need on average, and how far their first splits are from their last; of pairs that
/// converge.
struct Search {
  double steps = 0, off = 0;
  std::size_t converged = 0, pairs = 0;
};

Search SearchOf(const Outcome& outcome) {
  Search search;
  for (const auto& [stages, steps] : PairsOf(outcome)) {
    if (stages.size() != 2) continue;
    ++search.pairs;
    const std::size_t needed = StepsToConverge(steps);
    if (needed == 0) continue;
    ++search.converged;
    search.steps += static_cast<double>(needed);
    search.off += std::abs(static_cast<double>(steps.front().sms[0]) - steps.back().sms[0]);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(search.converged, 1));
  return {search.steps / count, search.off / count, search.converged, search.pairs};
}

}  // namespace

Result<Exhibit> Starts(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title =
                      "Where the search begins: at what straight lines say (dka), or at what Kernelet's model expects "
                      "(dka-predicted)",
                  .columns = {"device", "workload", "steps from straight lines", "from the model",
                              "SMs off at first, straight lines", "model", "not converged, straight lines", "model",
                              "cycles saved %"},
                  .drawings = {{.caption = "steps to converge", .unit = "", .names = {1}, .values = {2, 3}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    for (const char* scheme : {kDka, kDkaPredicted})
      wanted.push_back({.program = workload, .scheme = scheme, .device = runs.device()});
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  Search sums[2];
  Means saved;
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const Outcome& lines = outcomes[2 * i];
    const Outcome& model = outcomes[2 * i + 1];
    const Search searches[] = {SearchOf(lines), SearchOf(model)};
    exhibit.rows.push_back({runs.device(), runs.programs()[i], searches[0].steps, searches[1].steps, searches[0].off,
                            searches[1].off, searches[0].pairs - searches[0].converged,
                            searches[1].pairs - searches[1].converged, Gain(lines.cycles, model.cycles)});
    saved.Add(Gain(lines.cycles, model.cycles), false);
    if (searches[0].converged == 0 || searches[1].converged == 0) continue;
    for (std::size_t j = 0; j < 2; ++j) {
      sums[j].steps += searches[j].steps;
      sums[j].off += searches[j].off;
      ++sums[j].converged;
    }
  }
  const auto count = static_cast<double>(std::max<std::size_t>(sums[0].converged, 1));
  exhibit.rows.push_back({runs.device(), "mean", sums[0].steps / count, sums[1].steps / count, sums[0].off / count,
                          sums[1].off / count, nullptr, nullptr, saved.all()});
  return exhibit;
}

Result<Exhibit> Together(const Settings& settings, Runs& runs) {
  GL_TRY(most, settings.Number("together.most"));
  if (most < 3 || most > 16) return Error{settings.name() + ": together.most must be 3 to 16"};
  Exhibit exhibit{
      .name = {},
      .title =
          "Kernels of a pipeline that run side by side at most: speed-up over one kernel after the other, per cent",
      .columns = {"device", "workload", "stages"}};
  std::vector<Run> wanted;
  const auto counts = static_cast<std::uint32_t>(most) - 1;
  for (std::uint32_t together = 2; together < counts + 2; ++together)
    exhibit.columns.push_back(std::to_string(together));
  for (const std::string& workload : runs.programs()) {
    wanted.push_back({.program = workload, .scheme = kSerial, .device = runs.device()});
    for (std::uint32_t together = 2; together < counts + 2; ++together) {
      wanted.push_back({.program = workload, .scheme = kDka, .device = runs.device()});
      wanted.back().inputs.dka.together = together;
    }
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  for (std::size_t i = 0; i < runs.programs().size(); ++i) {
    const auto* const of = &outcomes[(counts + 1) * i];
    std::size_t stages = 0;
    for (const Launch& launch : of[1].launches) stages = std::max(stages, launch.stage + 1);
    Row row = {runs.device(), runs.programs()[i], stages};
    for (std::uint32_t j = 1; j <= counts; ++j) {
      // More kernels than a pipeline has are the same again.
      row.push_back(j + 1 > std::max<std::size_t>(stages, 2)
                        ? nlohmann::ordered_json()
                        : nlohmann::ordered_json(Gain(of[0].cycles, of[j].cycles)));
    }
    exhibit.rows.push_back(std::move(row));
  }
  exhibit.notes.push_back(
      "Shares are searched for in one table for as many kernels: of all ways, the one whose slowest kernel is "
      "fastest.");
  return exhibit;
}

Result<Exhibit> Table4(const Settings& settings, Runs& runs) {
  Exhibit exhibit{
      .name = {},
      .title = "Steps until the split of a pair does not change any more",
      .columns = {"device", "workload", "pairs", "steps of each pair", "steps to converge", "mean", "not converged"}};
  std::vector<Run> wanted;
  for (const std::string& device : runs.devices()) {
    for (const std::string& workload : runs.programs())
      wanted.push_back({.program = workload, .scheme = kDka, .device = device});
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
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
    exhibit.rows.push_back({wanted[i].device, wanted[i].program, pairs.size(), steps, each,
                            converged == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(mean),
                            pairs.size() - converged});
    if (wanted[i].device != runs.device() || converged == 0) continue;
    sum += mean;
    ++count;
  }
  GL_TRY_STATUS(AddFinding(settings, "steps to converge, mean over programs", "table4",
                           count == 0 ? "none converged" : Number("%.1f", sum / static_cast<double>(count)), exhibit));
  return exhibit;
}

}  // namespace gridloom::study::pipeline
