// Fixed splits of the SMs among kernels that run side by side (sections 2.3 and 4.4), and how near the allocator comes
// to the best.
#include <algorithm>

#include "sim/study/pipeline/exhibits.h"
#include "sim/study/pipeline/steps.h"

namespace gridloom::study::pipeline {
namespace {

constexpr const char* kQuick = "quick";

Result<std::uint32_t> SmsOf(Runs& runs) {
  GL_TRY(device, runs.DeviceOf({.scheme = kSerial, .device = runs.device()}));
  return device.sm.count;
}

/// Instructions per cycle of the first two stages when one follows the other; `all`: stages of a data set.
double SerialRate(const Outcome& serial, std::size_t all, std::size_t stages) {
  double instructions = 0, cycles = 0;
  for (const Launch& launch : serial.launches) {
    if (launch.stage % all >= stages) continue;
    instructions += launch.warp_instructions;
    cycles += launch.took();
  }
  return instructions / cycles;
}

std::size_t StagesOf(const Outcome& outcome) {
  std::size_t stages = 0;
  for (const Launch& launch : outcome.launches) stages = std::max(stages, launch.stage + 1);
  return stages;
}

}  // namespace

Result<Exhibit> Fig4(const Settings& settings, Runs& runs) {
  GL_TRY(workload, settings.Text("fig4.workload"));
  GL_TRY(sms, SmsOf(runs));
  Exhibit exhibit{.name = {},
                  .title = "Kernels 1 and 2 of " + workload +
                           " side by side: instructions per cycle by the SMs of kernel 1, over one after the other",
                  .columns = {"device", "SMs of kernel 1", "IPC", "one after the other", "gain %"},
                  .drawings = {{.kind = Drawing::Kind::kLines,
                                .caption = "instructions per cycle by the SMs of kernel 1",
                                .unit = "",
                                .names = {},
                                .values = {1, 2}}}};
  std::vector<Run> wanted = {{.program = workload, .scheme = kSerial, .device = runs.device()},
                             {.program = workload, .scheme = kPreemptive, .device = runs.device()}};
  for (std::uint32_t first = 1; first < sms; ++first) {
    Run run{.program = workload, .scheme = kDka, .device = runs.device()};
    run.inputs.stages = 2;
    run.inputs.dka.fixed = {{{1, 0}, {sms - first, first}}};
    wanted.push_back(std::move(run));
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  const double serial = SerialRate(outcomes[0], StagesOf(outcomes[1]), 2);
  double best = -100;
  std::uint32_t least = 0, most = 0;
  for (std::uint32_t first = 1; first < sms; ++first) {
    const double rate = outcomes[1 + first].ipc(), gain = 100 * (rate / serial - 1);
    exhibit.rows.push_back({runs.device(), first, rate, serial, gain});
    best = std::max(best, gain);
    if (gain <= 0) continue;
    if (least == 0) least = first;
    most = first;
  }
  GL_TRY_STATUS(AddFinding(settings, "SMs of kernel 1 that are better than one after the other", "fig4_range",
                           least == 0 ? "none" : std::to_string(least) + " to " + std::to_string(most), exhibit));
  GL_TRY_STATUS(
      AddFinding(settings, "best split over one after the other", "fig4_best", Number("%.1f %%", best), exhibit));
  return exhibit;
}

/// All splits in steps of `fig12.step` SMs, sorted by what they reach; beside them the allocator's pairs.
Result<Exhibit> Fig12(const Settings& settings, Runs& runs) {
  GL_TRY(workload, settings.Text("fig12.workload"));
  GL_TRY(step, settings.Number("fig12.step"));
  GL_TRY(sms, SmsOf(runs));
  const auto by = static_cast<std::uint32_t>(step);
  if (by < 1) return Error{settings.name() + ": fig12.step must be at least 1"};
  Exhibit exhibit{.name = {},
                  .title = "Three kernels of " + workload +
                           " at once, by their SMs, beside the best pairs (instructions per cycle)",
                  .columns = {"device", "SMs of K1, K2, K3", "IPC", "best pairs", "more %"},
                  .drawings = {{.caption = "instructions per cycle", .unit = "", .names = {1}, .values = {2, 3}}}};
  std::vector<Run> wanted = {{.program = workload, .scheme = kDka, .device = runs.device()}};
  wanted[0].sizes = kQuick;
  std::vector<std::string> names;
  for (std::uint32_t first = by; first < sms; first += by) {
    for (std::uint32_t second = by; first + second < sms; second += by) {
      Run run = wanted[0];
      const std::uint32_t third = sms - first - second;
      run.inputs.dka.together = 3;
      run.inputs.dka.fixed = SplitAllPairs(sms / 2, sms);
      run.inputs.dka.fixed[{2, 1, 0}] = {third, second, first};
      names.push_back(std::to_string(first) + "-" + std::to_string(second) + "-" + std::to_string(third));
      wanted.push_back(std::move(run));
    }
  }
  // The best pairs: with each split for all pairs, the best one of each pair.
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  const double pairs = outcomes[0].ipc();
  std::size_t better = 0;
  double most = -100;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double rate = outcomes[i + 1].ipc(), more = 100 * (rate / pairs - 1);
    exhibit.rows.push_back({runs.device(), names[i], rate, pairs, more});
    better += more > 0;
    most = std::max(most, more);
  }
  std::ranges::stable_sort(exhibit.rows, [](const auto& a, const auto& b) {
    return a[4].template get<double>() > b[4].template get<double>();
  });
  GL_TRY_STATUS(AddFinding(settings, "splits among three kernels that are better than pairs", "fig12_better",
                           std::to_string(better) + " of " + std::to_string(names.size()), exhibit));
  GL_TRY_STATUS(AddFinding(settings, "best of them, over pairs", "fig12_most", Number("%.1f %%", most), exhibit));
  return exhibit;
}

/// OPT: every split of every pair is tried, and the best one of each pair is taken.
Result<Exhibit> Best(const Settings& settings, Runs& runs) {
  GL_TRY(sms, SmsOf(runs));
  Exhibit exhibit{
      .name = {},
      .title = "What the allocator converges to beside the best fixed split of each pair (cycles of a step)",
      .columns = {"device", "workload", "pair", "SMs of the best", "best step", "SMs of dka", "step of dka",
                  "behind %"}};
  GL_TRY(workloads, settings.List("best_of"));
  for (const std::string& workload : workloads) {
    std::vector<Run> wanted = {{.program = workload, .scheme = kDka, .device = runs.device()}};
    wanted[0].sizes = kQuick;
    for (std::uint32_t first = 1; first < sms; ++first) {
      wanted.push_back(wanted[0]);
      wanted.back().inputs.dka.fixed = SplitAllPairs(first, sms);
    }
    GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
    const auto found = PairsOf(outcomes[0]);
    for (const auto& [stages, steps] : found) {
      std::uint32_t best = 0;
      double least = 0;
      for (std::uint32_t first = 1; first < sms; ++first) {
        const auto pairs = PairsOf(outcomes[first]);
        const auto tried = pairs.find(stages);
        if (tried == pairs.end()) continue;
        const double time = MedianTime(tried->second, 0);
        if (best != 0 && time >= least) continue;
        best = first;
        least = time;
      }
      const double time = MedianTime(steps, 2 * steps.size() / 3);
      exhibit.rows.push_back(
          {runs.device(), workload, NameOf(stages), best, least, steps.back().sms[0], time, 100 * (time / least - 1)});
    }
  }
  exhibit.notes.push_back(
      "SMs are those of the later stage of a pair. A step of dka is the median of the last third of the pair's steps.");
  return exhibit;
}

}  // namespace gridloom::study::pipeline
