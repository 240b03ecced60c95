#include "interpose/launcher/experiment/bounded_model.h"

#include <algorithm>

namespace gridloom::experiment {

std::array<double, 2> WithinBounds(std::array<double, 2> ipc, const Demands& a, const Demands& b) {
  for (std::size_t resource = 0; resource < a.size(); ++resource) {
    const double loads[] = {ipc[0] * a[resource], ipc[1] * b[resource]};
    const double total = loads[0] + loads[1];
    if (total <= 1) continue;
    // Kernel i keeps 1 - cut * loads[i] of its IPC; the cut makes the rest of the loads 1 together.
    const double cut = (total - 1) / (loads[0] * loads[0] + loads[1] * loads[1]);
    for (std::size_t i = 0; i < 2; ++i) ipc[i] *= std::max(0.0, 1 - cut * loads[i]);
  }
  return ipc;
}

BoundedModel::BoundedModel(const model::SmModel& sm, std::map<std::string, Demands> demands, double usable)
    : markov_(sm), demands_(std::move(demands)) {
  for (auto& [name, of_kernel] : demands_) {
    for (double& demand : of_kernel) demand /= usable;
  }
}

double BoundedModel::Alone(const model::KernelProfile& kernel) const {
  const double most = std::ranges::max(demands_.at(kernel.kernel));
  const double ipc = markov_.Alone(kernel);
  return most > 0 ? std::min(ipc, 1 / most) : ipc;
}

std::optional<std::array<double, 2>> BoundedModel::Together(const model::KernelProfile& a, std::uint32_t ctas_a,
                                                            const model::KernelProfile& b, std::uint32_t ctas_b) const {
  const auto ipc = markov_.Together(a, ctas_a, b, ctas_b);
  if (!ipc) return std::nullopt;
  return WithinBounds(*ipc, demands_.at(a.kernel), demands_.at(b.kernel));
}

}  // namespace gridloom::experiment
