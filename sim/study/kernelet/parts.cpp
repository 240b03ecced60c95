#include "sim/study/kernelet/parts.h"

#include <algorithm>
#include <numeric>

namespace gridloom::study {

Spread SpreadOf(const std::vector<double>& numbers) {
  const auto [least, most] = std::ranges::minmax(numbers);
  return {.mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size()),
          .least = least,
          .most = most};
}

std::string PairName(const KernelStudy& study, std::size_t a, std::size_t b) {
  return study.kernels()[a].traced->name + "+" + study.kernels()[b].traced->name;
}

std::string RatioText(const PairLoad& load) { return std::to_string(load.ctas_a) + ":" + std::to_string(load.ctas_b); }

/// The ratio that the model chooses (balanced, Eq. 8).
std::optional<PairLoad> ModelsChoice(const KernelStudy& study, std::size_t a, std::size_t b) {
  const auto plan =
      model::PlanPair(study.sm(), *study.model(), study.profile(a), study.profile(b), study.plan_options());
  if (!plan) return std::nullopt;
  return PairLoad{a, b, plan->ctas_per_sm[0], plan->ctas_per_sm[1]};
}

Result<double> MeasuredProfit(KernelStudy& study, const PairLoad& load) {
  GL_TRY(ipc, study.PairIpc(load));
  const double alone[] = {study.profile(load.a).ipc, study.profile(load.b).ipc};
  return model::CoSchedulingProfit(alone, ipc);
}

}  // namespace gridloom::study
