#include "scheduler/model/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gridloom::model {
namespace {

policy::SmView Without(policy::SmView sm, const policy::CtaNeeds& needs, std::uint32_t ctas) {
  sm.free_ctas -= ctas;
  sm.free_warps -= needs.warps * ctas;
  sm.free_registers -= needs.registers * ctas;
  sm.free_shared_bytes -= needs.shared_bytes * ctas;
  return sm;
}

/// Blocks on each SM that make the smallest slice of a kernel, or a full SM if that is less.
std::uint32_t SmallestQuota(const SmModel& sm, const KernelProfile& kernel) {
  const std::uint64_t sms = std::max(sm.sms, 1u);
  const std::uint64_t quota = (kernel.smallest_slice + sms - 1) / sms;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(quota, ResidentCtas(sm.empty, kernel.needs)));
}

/// Keeps `most` of the elements, the first and the last among them.
template <typename T>
void Thin(std::vector<T>& elements, std::size_t most) {
  if (most == 0 || elements.size() <= most) return;
  std::vector<T> kept;
  for (std::size_t i = 0; i < most; ++i)
    kept.push_back(elements[most == 1 ? 0 : i * (elements.size() - 1) / (most - 1)]);
  elements = std::move(kept);
}

/// The best of at least one.
const PairPlan& Choose(const std::vector<PairPlan>& plans, const PlanOptions& options) {
  double least = -std::numeric_limits<double>::infinity();  // profit that is good enough
  if (options.ratio == PlanOptions::Ratio::kBest)
    least = std::ranges::max(plans, {}, &PairPlan::profit).profit - options.ratio_tolerance;
  const PairPlan* best = nullptr;
  for (const PairPlan& plan : plans) {
    if (plan.profit >= least && (best == nullptr || plan.imbalance < best->imbalance)) best = &plan;
  }
  return *best;
}

}  // namespace

double MarkovModel::Alone(const KernelProfile& kernel) const {
  return PredictIpc(sm_, {&kernel, kernel.max_resident_ctas}, options_);
}

std::optional<std::array<double, 2>> MarkovModel::Together(const KernelProfile& a, std::uint32_t ctas_a,
                                                           const KernelProfile& b, std::uint32_t ctas_b) const {
  const Resident residents[] = {{&a, ctas_a}, {&b, ctas_b}};
  const std::vector<double> ipc = PredictIpc(sm_, residents, options_);
  return std::array{ipc[0], ipc[1]};
}

double CoSchedulingProfit(std::span<const double> alone, std::span<const double> together) {
  double sum = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) sum += alone[i] > 0 ? together[i] / alone[i] : 0;
  return sum > 0 ? 1 - 1 / sum : -std::numeric_limits<double>::infinity();
}

bool Prunes(const KernelProfile& a, const KernelProfile& b, double prune_pur, double prune_mur) {
  return std::fabs(a.pur - b.pur) < prune_pur && std::fabs(a.mur - b.mur) < prune_mur;
}

std::vector<std::array<std::uint32_t, 2>> SliceRatios(const SmModel& sm, const KernelProfile& a,
                                                      const KernelProfile& b) {
  std::vector<std::array<std::uint32_t, 2>> ratios, large;
  const std::uint32_t most_a = ResidentCtas(sm.empty, a.needs);
  const std::uint32_t least_a = SmallestQuota(sm, a), least_b = SmallestQuota(sm, b);
  for (std::uint32_t ctas_a = most_a; ctas_a > 0; --ctas_a) {
    const std::uint32_t ctas_b = ResidentCtas(Without(sm.empty, a.needs, ctas_a), b.needs);
    // With as many of b, more of a has room: that one has been taken.
    if (ctas_b == 0 || (!ratios.empty() && ratios.back()[1] == ctas_b)) continue;
    ratios.push_back({ctas_a, ctas_b});
    if (ctas_a >= least_a && ctas_b >= least_b) large.push_back(ratios.back());
  }
  if (!large.empty()) ratios = std::move(large);
  std::ranges::reverse(ratios);
  return ratios;
}

std::optional<PairPlan> PlanPair(const SmModel& sm, const CoRunModel& model, const KernelProfile& a,
                                 const KernelProfile& b, const PlanOptions& options) {
  auto ratios = SliceRatios(sm, a, b);
  Thin(ratios, options.max_ratios);
  if (ratios.empty()) return std::nullopt;
  const double alone[] = {model.Alone(a), model.Alone(b)};
  std::vector<PairPlan> plans;
  for (const auto& ctas : ratios) {
    const auto together = model.Together(a, ctas[0], b, ctas[1]);
    if (!together) continue;
    const auto time = [&](const KernelProfile& kernel, std::size_t i) {
      return (*together)[i] > 0 ? kernel.instructions_per_cta * ctas[i] / (*together)[i]
                                : std::numeric_limits<double>::max();
    };
    plans.push_back({.ctas_per_sm = ctas,
                     .ipc = *together,
                     .profit = CoSchedulingProfit(alone, *together),
                     .imbalance = std::fabs(time(a, 0) - time(b, 1))});
  }
  if (plans.empty()) return std::nullopt;
  return Choose(plans, options);
}

std::optional<CoSchedulePlan> FindCoSchedule(
    std::span<const KernelProfile* const> kernels,
    const std::function<std::optional<PairPlan>(std::size_t first, std::size_t second)>& plan,
    const PlanOptions& options) {
  constexpr double kLeastThreshold = 1e-3;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  double pur = options.prune_pur, mur = options.prune_mur;
  while (true) {
    for (std::size_t second = 1; second < kernels.size(); ++second) {
      for (std::size_t first = 0; first < second; ++first) {
        if (!Prunes(*kernels[first], *kernels[second], pur, mur)) pairs.emplace_back(first, second);
      }
    }
    if (!pairs.empty() || (pur < kLeastThreshold && mur < kLeastThreshold)) break;
    pur /= 2;
    mur /= 2;
  }
  std::optional<CoSchedulePlan> best;
  double highest = options.least_profit;
  for (const auto& [first, second] : pairs) {
    const auto pair = plan(first, second);
    if (!pair || pair->profit <= highest) continue;
    highest = pair->profit;
    best = CoSchedulePlan{first, second, *pair};
  }
  return best;
}

std::optional<CoSchedulePlan> FindCoSchedule(const SmModel& sm, const CoRunModel& model,
                                             std::span<const KernelProfile* const> kernels,
                                             const PlanOptions& options) {
  return FindCoSchedule(
      kernels,
      [&](std::size_t first, std::size_t second) {
        return PlanPair(sm, model, *kernels[first], *kernels[second], options);
      },
      options);
}

}  // namespace gridloom::model
