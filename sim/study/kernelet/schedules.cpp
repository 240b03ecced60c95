// Exhibits about schedules: what pairs of kernels gain, and whole mixes under BASE, Kernelet, OPT and at random
// (section 5.4).
#include <algorithm>
#include <cmath>

#include "scheduler/model/probing_planner.h"
#include "sim/study/kernelet/parts.h"

namespace gridloom::study {
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
Result<std::vector<double>> RandomTimes(KernelStudy& study, const std::vector<std::size_t>& mix,
                                        std::uint64_t schedules, std::uint64_t count, std::uint64_t seed) {
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

struct ProbedTimes {
  double seconds = 0;
  std::uint64_t probes = 0;
};

/// Kernelet that tries a pair before it keeps it. A probe's blocks are work done; where the two are slower side by side
/// than one after the other, it costs the difference.
Result<ProbedTimes> SimulateProbing(KernelStudy& study, const std::vector<std::size_t>& mix, std::uint64_t count,
                                    std::uint64_t seed) {
  Status status;
  double lost = 0;  // cycles
  const model::Probe probe = [&](const model::KernelProfile& a, std::uint32_t ctas_a, const model::KernelProfile& b,
                                 std::uint32_t ctas_b) -> std::array<double, 2> {
    const auto tried = study.ProbePair({study.KernelNamed(a.kernel), study.KernelNamed(b.kernel), ctas_a, ctas_b});
    if (!tried.ok()) {
      status = tried.error();
      return {};
    }
    lost += tried->cycles * std::max(0.0, 1 - tried->parts[0] - tried->parts[1]);
    return tried->parts;
  };
  model::ProbingPlanner planner(study.sm(), study.profiles(), study.model(), probe, study.plan_options());
  GL_TRY(result, study.Simulate(mix, &planner, count, seed));
  GL_TRY_STATUS(status);
  return ProbedTimes{.seconds = Seconds(study, result.cycles + lost), .probes = planner.probes()};
}

/// What one layout says of a mix.
struct MixTimes {
  double base = 0, kernelet = 0, best = 0;  ///< s
  double together = 0;                      ///< of Kernelet's time, part with two kernels side by side
};

Result<MixTimes> SimulateMix(const Settings& settings, KernelStudy& study, const std::string& name) {
  GL_TRY(seed, settings.Number("arrivals.seed"));
  GL_TRY(instances, settings.Number("arrivals.instances"));
  GL_TRY(mix, MixOf(settings, study, name));
  auto kernelet_planner = KerneletPlanner(study), oracle = OraclePlanner(study);
  const auto number = static_cast<std::uint64_t>(seed), count = static_cast<std::uint64_t>(instances);
  GL_TRY(base, study.Simulate(mix, nullptr, count, number));
  GL_TRY(kernelet, study.Simulate(mix, &kernelet_planner, count, number));
  GL_TRY(best, study.Simulate(mix, &oracle, count, number));
  return MixTimes{.base = Seconds(study, base.cycles),
                  .kernelet = Seconds(study, kernelet.cycles),
                  .best = Seconds(study, best.cycles),
                  .together = kernelet.together / kernelet.cycles};
}

/// A number of each of several things, and its spread.
template <typename Things, typename NumberOf>
Spread SpreadOfEach(const Things& things, const NumberOf& number) {
  std::vector<double> numbers;
  for (const auto& thing : things) numbers.push_back(number(thing));
  return SpreadOf(numbers);
}

std::string RangeText(const Spread& spread) {
  return Number("%.1f", spread.least) + " to " + Number("%.1f\u00a0%%", spread.most);
}

std::string LayoutsNote(const LayoutStudies& layouts) {
  return "Means over " + std::to_string(layouts.size()) +
         " layouts of the programs' pages; least and most are those of single layouts.";
}

/// One row of Pairs; nothing where a pair has no ratio.
Status AddPair(const LayoutStudies& layouts, std::size_t a, std::size_t b, Exhibit& exhibit) {
  const KernelStudy& first = *layouts.front();
  std::optional<PairLoad> best;
  Spread most{.mean = -INFINITY};
  for (const PairLoad& load : first.RatiosOf(a, b)) {
    std::vector<double> profits;
    for (const auto& study : layouts) {
      GL_TRY(profit, MeasuredProfit(*study, load));
      profits.push_back(profit);
    }
    const Spread spread = SpreadOf(profits);
    if (spread.mean <= most.mean) continue;
    most = spread;
    best = load;
  }
  const auto chosen = ModelsChoice(first, a, b);
  if (!best || !chosen) return {};
  std::vector<double> there;
  double rate_a = 0, rate_b = 0;  // of the best ratio
  const auto count = static_cast<double>(layouts.size());
  for (const auto& study : layouts) {
    GL_TRY(ipc, study->PairIpc(*best));
    rate_a += ipc[0] / study->profile(a).ipc / count;
    rate_b += ipc[1] / study->profile(b).ipc / count;
    GL_TRY(profit, MeasuredProfit(*study, *chosen));
    there.push_back(profit);
  }
  exhibit.rows.push_back({first.device().id, PairName(first, a, b), RatioText(*best), most.mean, most.least, most.most,
                          rate_a, rate_b, RatioText(*chosen), SpreadOf(there).mean});
  return {};
}

}  // namespace

Result<Exhibit> Pairs(const Settings& settings, DeviceStudies& studies) {
  static_cast<void>(settings);
  Exhibit exhibit{
      .name = "pairs",
      .title =
          "What pairs save at most: CP (Eq. 1) of the best of all slice ratios, measured, and of the one that the "
          "model chooses",
      .columns = {"device", "kernels", "best ratio", "CP", "least", "most", "rate of first", "rate of second",
                  "model's ratio", "CP there"},
      .drawings = {
          {.caption = "co-scheduling profit", .unit = "", .names = {1}, .values = {3, 9}, .ranges = {{3, {4, 5}}}}}};
  for (const LayoutStudies& layouts : studies) {
    for (const auto& study : layouts) GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    const std::size_t kernels = layouts.front()->kernels().size();
    for (std::size_t a = 0; a < kernels; ++a) {
      for (std::size_t b = a + 1; b < kernels; ++b) GL_TRY_STATUS(AddPair(layouts, a, b, exhibit));
    }
  }
  exhibit.notes.push_back(LayoutsNote(studies.front()));
  exhibit.notes.push_back(
      "Rates are parts of what the kernel does alone on all of an SM. No schedule of pairs can gain what no pair "
      "saves.");
  return exhibit;
}

Result<Exhibit> Fig13(const Settings& settings, DeviceStudies& studies) {
  GL_TRY(instances, settings.Number("arrivals.instances"));
  Exhibit exhibit{
      .name = "fig13",
      .title = "Total time of the four mixes under BASE, Kernelet and OPT",
      .columns = {"device", "mix", "BASE s", "Kernelet s", "OPT s", "over BASE %", "least", "most", "behind OPT %",
                  "least behind", "most behind", "side by side %"},
      .drawings = {
          {.caption = Number("total time of %.0f instances of each kernel", instances),
           .unit = "s",
           .names = {1},
           .values = {2, 3, 4}},
          {.caption = "Kernelet over BASE", .unit = "%", .names = {1}, .values = {5}, .ranges = {{5, {6, 7}}}}}};
  for (const LayoutStudies& layouts : studies) {
    const std::string& id = layouts.front()->device().id;
    for (const auto& study : layouts) GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    std::vector<double> over_means, behind_means;
    for (const std::string& name : settings.Below("mixes")) {
      std::vector<MixTimes> times;
      for (const auto& study : layouts) {
        GL_TRY(one, SimulateMix(settings, *study, name));
        times.push_back(one);
      }
      const Spread over = SpreadOfEach(times, [](const MixTimes& one) { return 100 * (one.base / one.kernelet - 1); });
      const Spread behind =
          SpreadOfEach(times, [](const MixTimes& one) { return 100 * (one.kernelet / one.best - 1); });
      exhibit.rows.push_back({id, name, SpreadOfEach(times, [](const MixTimes& one) { return one.base; }).mean,
                              SpreadOfEach(times, [](const MixTimes& one) { return one.kernelet; }).mean,
                              SpreadOfEach(times, [](const MixTimes& one) { return one.best; }).mean, over.mean,
                              over.least, over.most, behind.mean, behind.least, behind.most,
                              SpreadOfEach(times, [](const MixTimes& one) { return 100 * one.together; }).mean});
      over_means.push_back(over.mean);
      behind_means.push_back(behind.mean);
    }
    GL_TRY(paper, settings.Numbers("paper.over_base." + id));
    GL_TRY(paper_opt, settings.Numbers("paper.behind_opt." + id));
    exhibit.findings.push_back({id + ", over BASE", RangeText(SpreadOf(over_means)),
                                Number("%g", paper.at(0)) + " to " + Number("%g %%", paper.at(1))});
    exhibit.findings.push_back({id + ", behind OPT", RangeText(SpreadOf(behind_means)),
                                Number("%g", paper_opt.at(0)) + " to " + Number("%g %%", paper_opt.at(1))});
    exhibit.notes.push_back(
        id + ": Kernelet over BASE " + RangeText(SpreadOf(over_means)) + " (the paper: " + Number("%g", paper.at(0)) +
        " to " + Number("%g", paper.at(1)) + " %), behind OPT " + RangeText(SpreadOf(behind_means)) +
        " (the paper: " + Number("%g", paper_opt.at(0)) + " to " + Number("%g", paper_opt.at(1)) + " %).");
  }
  exhibit.notes.push_back(LayoutsNote(studies.front()));
  exhibit.notes.push_back(
      "Over BASE: BASE's time / Kernelet's - 1. Launches have the paper's number of blocks; rates are those of scaled "
      "blocks.");
  return exhibit;
}

Result<Exhibit> Fig14(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit{
      .name = "fig14",
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
  GL_TRY(finding, settings.Text("paper.findings.fig14"));
  GL_TRY(note, settings.Text("paper.notes.fig14"));
  const auto count = static_cast<std::uint64_t>(instances);
  for (const LayoutStudies& layouts : studies) {
    const std::string& id = layouts.front()->device().id;
    for (const auto& study : layouts) GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    for (const std::string& name : names) {
      std::vector<double> times;
      std::string better;
      for (const auto& study : layouts) {
        GL_TRY(mix, MixOf(settings, *study, name));
        GL_TRY(some, RandomTimes(*study, mix, static_cast<std::uint64_t>(schedules), count,
                                 static_cast<std::uint64_t>(seed)));
        better += (better.empty() ? "" : ", ") +
                  std::to_string(std::ranges::count_if(some, [](double time) { return time < 1; }));
        times.insert(times.end(), some.begin(), some.end());
      }
      std::ranges::sort(times);
      for (const unsigned percent : {0u, 1u, 5u, 10u, 25u, 50u, 75u, 90u, 95u, 99u, 100u})
        AddRow(exhibit, id, name, percent, times[(times.size() - 1) * percent / 100]);
      const std::string of = Number(" of %.0f in each layout", schedules);
      exhibit.findings.push_back({id + ", " + name + ": random schedules better than Kernelet", better + of, finding});
      exhibit.notes.push_back(id + ", " + name + ": " + better + of + " (" + std::to_string(count) +
                              " instances of each kernel) are better than Kernelet; the best takes " +
                              Number("%.4f", times.front()) + " of its time. The paper: " + note);
    }
  }
  exhibit.notes.push_back("The curves are those of the schedules of all layouts, each beside Kernelet in its layout.");
  return exhibit;
}

Result<Exhibit> Probes(const Settings& settings, DeviceStudies& studies) {
  Exhibit exhibit{
      .name = "probes",
      .title = "Beyond the paper: Kernelet that tries a pair on the device before it keeps it",
      .columns = {"device", "mix", "Kernelet %", "with probes %", "least", "most", "OPT %", "probes"},
      .drawings = {{.caption = "over BASE", .unit = "%", .names = {1}, .values = {2, 3, 6}, .ranges = {{3, {4, 5}}}}}};
  GL_TRY(seed, settings.Number("arrivals.seed"));
  GL_TRY(instances, settings.Number("arrivals.instances"));
  GL_TRY(note, settings.Text("paper.notes.probes"));
  for (const LayoutStudies& layouts : studies) {
    for (const auto& study : layouts) GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
    for (const std::string& name : settings.Below("mixes")) {
      std::vector<double> kernelet, probing, best, probes;
      for (const auto& study : layouts) {
        GL_TRY(mix, MixOf(settings, *study, name));
        GL_TRY(times, SimulateMix(settings, *study, name));
        GL_TRY(probed,
               SimulateProbing(*study, mix, static_cast<std::uint64_t>(instances), static_cast<std::uint64_t>(seed)));
        kernelet.push_back(100 * (times.base / times.kernelet - 1));
        probing.push_back(100 * (times.base / probed.seconds - 1));
        best.push_back(100 * (times.base / times.best - 1));
        probes.push_back(static_cast<double>(probed.probes));
      }
      const Spread over = SpreadOf(probing);
      exhibit.rows.push_back({layouts.front()->device().id, name, SpreadOf(kernelet).mean, over.mean, over.least,
                              over.most, SpreadOf(best).mean, SpreadOf(probes).mean});
    }
  }
  exhibit.notes.push_back("Time saved over BASE as in fig13: BASE's time / the policy's - 1. " +
                          LayoutsNote(studies.front()));
  exhibit.notes.push_back(
      "A pair that is chosen for the first time in a slice ratio runs so for as many waves as are measured; what it "
      "reaches takes the "
      "place of what the model predicted, and the choice is made again. " +
      note);
  return exhibit;
}

Result<Exhibit> Together(const Settings& settings, DeviceStudies& studies) {
  static_cast<void>(settings);
  Exhibit exhibit{
      .name = "together",
      .title = "All kernels launched at once: the timing model alone, and the two levels",
      .columns = {"device", "policy", "cycles, timing model", "cycles, two levels", "two levels %", "over leftover %",
                  "least", "most"},
      .drawings = {{.caption = "all kernels launched at once", .unit = "cycles", .names = {1}, .values = {2, 3}}}};
  for (const LayoutStudies& layouts : studies) {
    for (const std::string policy : {"serial", "leftover", "kernelet"}) {
      std::vector<double> whole, two_levels, over;
      for (const auto& study : layouts) {
        GL_TRY_STATUS(study->MeasurePairs(AllLoads(*study)));
        GL_TRY(leftover, study->TogetherWhole("leftover", nullptr));
        const auto planner =
            policy == "kernelet" ? std::make_shared<model::GreedyPlanner>(KerneletPlanner(*study)) : nullptr;
        GL_TRY(cycles, study->TogetherWhole(policy, planner));
        GL_TRY(upper, study->TogetherInTwoLevels(planner.get()));
        whole.push_back(cycles);
        two_levels.push_back(upper);
        over.push_back(100 * (leftover / cycles - 1));
      }
      const double mean = SpreadOf(whole).mean, upper = SpreadOf(two_levels).mean;
      const Spread gain = SpreadOf(over);
      exhibit.rows.push_back({layouts.front()->device().id, policy, mean, upper, 100 * (upper / mean - 1), gain.mean,
                              gain.least, gain.most});
    }
  }
  exhibit.notes.push_back(LayoutsNote(studies.front()));
  exhibit.notes.push_back(
      "Launches are those of the traces, with 4 to 50 loads of the device; the two levels leave out how one launch "
      "ends while the next "
      "begins, which counts for more here than with the paper's launches. Theirs beside `serial` is BASE's.");
  return exhibit;
}

}  // namespace gridloom::study
