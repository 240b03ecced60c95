// Exhibits about schedules: what pairs of kernels gain, and whole mixes under BASE, Kernelet, OPT and at random (section 5.4).
#include <algorithm>
#include <cmath>

#include "interpose/launcher/experiment/kernelet_parts.h"

namespace gridloom::experiment {
namespace {

Result<std::vector<std::size_t>> MixOf(const Settings& settings, const KernelStudy& study, const std::string& name) {
  GL_TRY(names, settings.List("mixes." + name));
  std::vector<std::size_t> mix;
  for (const std::string& kernel : names) {
    mix.push_back(study.KernelNamed(kernel));
    if (mix.back() == study.kernels().size()) return Error{"mixes." + name + ": no kernel '" + kernel + "'"};
  }
  return mix;
}

/// All loads that BASE, Kernelet, OPT and random schedules may come to.
std::vector<PairLoad> AllLoads(const KernelStudy& study) {
  std::vector<PairLoad> loads;
  for (std::size_t a = 0; a < study.kernels().size(); ++a) {
    for (std::size_t b = 0; b < study.kernels().size(); ++b) {
      if (a < b) std::ranges::copy(study.RatiosOf(a, b), std::back_inserter(loads));
      const std::uint32_t room = a == b ? 0 : study.LeftOver(a, b);
      if (room != 0) loads.push_back({a, b, study.profile(a).max_resident_ctas, room});
    }
  }
  return loads;
}

model::GreedyPlanner KerneletPlanner(const KernelStudy& study) {
  return {study.sm(), study.profiles(), study.model(), study.plan_options()};
}

/// Pairs and ratios by measured rates; nothing is pruned.
model::GreedyPlanner OraclePlanner(const KernelStudy& study) {
  model::PlanOptions options = study.plan_options();
  options.ratio = model::PlanOptions::Ratio::kBest;
  options.ratio_tolerance = 0;
  options.prune_pur = options.prune_mur = 0;
  return {study.sm(), study.profiles(), study.measured(), options};
}

double Seconds(const KernelStudy& study, double cycles) { return cycles / (study.device().timing.clock.sm_mhz * 1e6); }

/// Times of random schedules of a mix in Kernelet's, ascending.
Result<std::vector<double>> RandomTimes(KernelStudy& study, const std::vector<std::size_t>& mix, std::uint64_t schedules,
                                        std::uint64_t count, std::uint64_t seed) {
  auto planner = KerneletPlanner(study);
  GL_TRY(kernelet, study.Simulate(mix, &planner, count, seed));
  std::vector<double> times;
  for (std::uint64_t i = 0; i < schedules; ++i) {
    model::RandomPlanner random(study.sm(), study.profiles(), i + 1);
    GL_TRY(result, study.Simulate(mix, &random, count, seed));
    times.push_back(result.cycles / kernelet.cycles);
  }
  std::ranges::sort(times);
  return times;
}

void AddRow(Exhibit& exhibit, const std::string& device, const std::string& mix, unsigned percent, double time) {
  exhibit.rows.push_back({device, mix, percent, time, 100 * (time - 1)});
}

}  // namespace

Result<Exhibit> Pairs(const Settings& settings, const Studies& studies) {
  static_cast<void>(settings);
  Exhibit exhibit{
      .name = "pairs",
      .title = "What pairs save at most: CP (Eq. 1) of the best of all slice ratios, measured, and of the one that the model chooses",
      .columns = {"device", "kernels", "best ratio", "CP", "rate of first", "rate of second", "model's ratio", "CP there"},
      .drawings = {{.caption = "co-scheduling profit", .unit = "", .names = {1}, .values = {3, 7}}}};
  for (const auto& study : studies) {
    GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    for (std::size_t a = 0; a < study->kernels().size(); ++a) {
      for (std::size_t b = a + 1; b < study->kernels().size(); ++b) {
        const auto chosen = ModelsChoice(*study, a, b);
        std::optional<PairLoad> best;
        double most = -INFINITY;
        for (const PairLoad& load : study->RatiosOf(a, b)) {
          GL_TRY(profit, MeasuredProfit(*study, load));
          if (profit <= most) continue;
          most = profit;
          best = load;
        }
        if (!best || !chosen) continue;
        GL_TRY(ipc, study->PairIpc(*best));
        GL_TRY(there, MeasuredProfit(*study, *chosen));
        exhibit.rows.push_back({study->device().id, PairName(*study, a, b), RatioText(*best), most, ipc[0] / study->profile(a).ipc,
                                ipc[1] / study->profile(b).ipc, RatioText(*chosen), there});
      }
    }
  }
  exhibit.notes.push_back(
      "Rates are parts of what the kernel does alone on all of an SM. No schedule of pairs can gain what no pair saves.");
  return exhibit;
}

Result<Exhibit> Fig13(const Settings& settings, const Studies& studies) {
  Exhibit exhibit{.name = "fig13",
                  .title = "Total time of the four mixes under BASE, Kernelet and OPT",
                  .columns = {"device", "mix", "BASE s", "Kernelet s", "OPT s", "over BASE %", "behind OPT %", "side by side %"},
                  .drawings = {{.caption = "total time of 1000 instances of each kernel", .unit = "s", .names = {1}, .values = {2, 3, 4}},
                               {.caption = "Kernelet over BASE", .unit = "%", .names = {1}, .values = {5}}}};
  GL_TRY(seed, settings.Number("arrivals.seed"));
  GL_TRY(instances, settings.Number("arrivals.instances"));
  for (const auto& study : studies) {
    const std::string& id = study->device().id;
    GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    double least = INFINITY, most = -INFINITY, least_opt = INFINITY, most_opt = -INFINITY;
    for (const std::string& name : settings.Below("mixes")) {
      GL_TRY(mix, MixOf(settings, *study, name));
      auto kernelet_planner = KerneletPlanner(*study), oracle = OraclePlanner(*study);
      const auto number = static_cast<std::uint64_t>(seed), count = static_cast<std::uint64_t>(instances);
      GL_TRY(base, study->Simulate(mix, nullptr, count, number));
      GL_TRY(kernelet, study->Simulate(mix, &kernelet_planner, count, number));
      GL_TRY(best, study->Simulate(mix, &oracle, count, number));
      const double over = 100 * (base.cycles / kernelet.cycles - 1), behind = 100 * (kernelet.cycles / best.cycles - 1);
      exhibit.rows.push_back({id, name, Seconds(*study, base.cycles), Seconds(*study, kernelet.cycles), Seconds(*study, best.cycles), over,
                              behind, 100 * kernelet.together / kernelet.cycles});
      least = std::min(least, over);
      most = std::max(most, over);
      least_opt = std::min(least_opt, behind);
      most_opt = std::max(most_opt, behind);
    }
    GL_TRY(paper, settings.Numbers("paper.over_base." + id));
    GL_TRY(paper_opt, settings.Numbers("paper.behind_opt." + id));
    exhibit.findings.push_back({id + ", over BASE", Number("%.1f", least) + " to " + Number("%.1f %%", most),
                                Number("%g", paper.at(0)) + " to " + Number("%g %%", paper.at(1))});
    exhibit.findings.push_back({id + ", behind OPT", Number("%.1f", least_opt) + " to " + Number("%.1f %%", most_opt),
                                Number("%g", paper_opt.at(0)) + " to " + Number("%g %%", paper_opt.at(1))});
    exhibit.notes.push_back(id + ": Kernelet over BASE " + Number("%.1f", least) + " to " + Number("%.1f", most) +
                            " % (the paper: " + Number("%g", paper.at(0)) + " to " + Number("%g", paper.at(1)) + " %), behind OPT " +
                            Number("%.1f", least_opt) + " to " + Number("%.1f", most_opt) +
                            " % (the paper: " + Number("%g", paper_opt.at(0)) + " to " + Number("%g", paper_opt.at(1)) + " %).");
  }
  exhibit.notes.push_back(
      "Over BASE: BASE's time / Kernelet's - 1. Launches have the paper's number of blocks; rates are those of scaled blocks.");
  return exhibit;
}

Result<Exhibit> Fig14(const Settings& settings, const Studies& studies) {
  Exhibit exhibit{.name = "fig14",
                  .title = "Total time of random schedules, MC, relative to Kernelet's",
                  .columns = {"device", "mix", "part of schedules %", "time / Kernelet's", "longer %"},
                  .drawings = {{.kind = Drawing::Kind::kLines,
                                .caption = "how much longer than Kernelet's random schedules take, the best on the left",
                                .unit = "% longer",
                                .names = {1},
                                .values = {2, 4}}}};
  GL_TRY(schedules, settings.Number("monte_carlo.schedules"));
  GL_TRY(names, settings.List("monte_carlo.mixes"));
  GL_TRY(seed, settings.Number("arrivals.seed"));
  GL_TRY(instances, settings.Number("monte_carlo.instances"));
  const auto count = static_cast<std::uint64_t>(instances);
  for (const auto& study : studies) {
    GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    for (const std::string& name : names) {
      GL_TRY(mix, MixOf(settings, *study, name));
      GL_TRY(times, RandomTimes(*study, mix, static_cast<std::uint64_t>(schedules), count, static_cast<std::uint64_t>(seed)));
      for (const unsigned percent : {0u, 1u, 5u, 10u, 25u, 50u, 75u, 90u, 95u, 99u, 100u})
        AddRow(exhibit, study->device().id, name, percent, times[(times.size() - 1) * percent / 100]);
      const auto better = std::ranges::count_if(times, [](double time) { return time < 1; });
      exhibit.findings.push_back({study->device().id + ", " + name + ": random schedules better than Kernelet",
                                  std::to_string(better) + " of " + std::to_string(times.size()), "none of 1000"});
      exhibit.notes.push_back(study->device().id + ", " + name + ": of " + std::to_string(times.size()) + " random schedules (" +
                              std::to_string(count) + " instances of each kernel), " + std::to_string(better) +
                              " are better than Kernelet; the best takes " + Number("%.4f", times.front()) +
                              " of its time. The paper: none is better.");
    }
  }
  return exhibit;
}

Result<Exhibit> Together(const Settings& settings, const Studies& studies) {
  static_cast<void>(settings);
  Exhibit exhibit{.name = "together",
                  .title = "All kernels launched at once: the timing model alone, and the two levels",
                  .columns = {"device", "policy", "cycles, timing model", "cycles, two levels", "two levels %", "over leftover %"},
                  .drawings = {{.caption = "all kernels launched at once", .unit = "cycles", .names = {1}, .values = {2, 3}}}};
  for (const auto& study : studies) {
    GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    GL_TRY(leftover, study->TogetherWhole("leftover", nullptr));
    const auto planner = std::make_shared<model::GreedyPlanner>(KerneletPlanner(*study));
    for (const std::string policy : {"serial", "leftover", "kernelet"}) {
      const bool plans = policy == "kernelet";
      GL_TRY(whole, study->TogetherWhole(policy, plans ? planner : nullptr));
      GL_TRY(two_levels, study->TogetherInTwoLevels(plans ? planner.get() : nullptr));
      exhibit.rows.push_back({study->device().id, policy, whole, two_levels, 100 * (two_levels / whole - 1), 100 * (leftover / whole - 1)});
    }
  }
  exhibit.notes.push_back(
      "Launches are those of the traces, with 4 to 50 loads of the device; the two levels leave out how one launch ends while the next "
      "begins, "
      "which counts for more here than with the paper's launches. Theirs beside `serial` is BASE's.");
  return exhibit;
}

}  // namespace gridloom::experiment
