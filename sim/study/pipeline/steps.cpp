#include "sim/study/pipeline/steps.h"

#include <algorithm>

namespace gridloom::study::pipeline {
namespace {

/// The paper's limit (section 3.3).
constexpr std::size_t kMostStages = 8;

}  // namespace

std::string NameOf(const Stages& stages) {
  std::string name;
  // Earlier stages first, but the last stage beside the first one of the next data set but one: K3-K1.
  const bool wraps = stages.size() == 2 && stages[0] > stages[1] + 1;
  const auto add = [&](std::size_t stage) { name += (name.empty() ? "K" : "-K") + std::to_string(stage + 1); };
  if (wraps) {
    for (const std::size_t stage : stages) add(stage);
  } else {
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) add(*stage);
  }
  return name;
}

double PairStep::longest() const { return *std::ranges::max_element(took); }

std::map<Stages, std::vector<PairStep>> PairsOf(const Outcome& outcome) {
  std::map<Stages, std::vector<PairStep>> pairs;
  for (const policy::DkaStep& step : outcome.steps) {
    if (step.kernels.size() < 2) continue;
    Stages stages;
    PairStep pair;
    for (const policy::DkaStep::Kernel& kernel : step.kernels) {
      stages.push_back(kernel.stage);
      pair.sms.push_back(kernel.sms);
      pair.took.push_back(static_cast<double>(kernel.took));
    }
    pairs[stages].push_back(std::move(pair));
  }
  return pairs;
}

std::size_t StepsToConverge(const std::vector<PairStep>& steps) {
  std::size_t stable = steps.size();
  while (stable > 1 && steps[stable - 2].sms == steps.back().sms) --stable;
  return stable == steps.size() && steps.size() > 1 ? 0 : stable;
}

double MedianTime(const std::vector<PairStep>& steps, std::size_t from) {
  std::vector<double> times;
  for (std::size_t i = std::min(from, steps.size() - 1); i < steps.size(); ++i) times.push_back(steps[i].longest());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

std::map<std::size_t, double> AloneTimes(const Outcome& outcome) {
  std::map<std::size_t, double> times;
  for (const policy::DkaStep& step : outcome.steps) {
    if (step.kernels.size() == 1) times.try_emplace(step.kernels[0].stage, static_cast<double>(step.kernels[0].took));
  }
  return times;
}

std::map<Stages, std::vector<std::uint32_t>> SplitAllPairs(std::uint32_t first, std::uint32_t sms) {
  std::map<Stages, std::vector<std::uint32_t>> fixed;
  for (std::size_t ahead = 1; ahead < kMostStages; ++ahead) {
    for (std::size_t behind = 0; behind < ahead; ++behind) fixed[{ahead, behind}] = {first, sms - first};
  }
  return fixed;
}

}  // namespace gridloom::study::pipeline
