#include "scheduler/model/bounded_model.h"

#include <algorithm>

namespace gridloom::model {

std::array<double, 2> WithinBounds(std::array<double, 2> ipc, const std::vector<double>& a,
                                   const std::vector<double>& b, double usable) {
  const auto demand = [](const std::vector<double>& demands, std::size_t resource) {
    return resource < demands.size() ? demands[resource] : 0.0;
  };
  for (std::size_t resource = 0; resource < std::max(a.size(), b.size()); ++resource) {
    const double loads[] = {ipc[0] * demand(a, resource) / usable, ipc[1] * demand(b, resource) / usable};
    const double total = loads[0] + loads[1];
    if (total <= 1) continue;
    // Kernel i keeps 1 - cut * loads[i] of its IPC; the cut makes the rest of the loads 1 together.
    const double cut = (total - 1) / (loads[0] * loads[0] + loads[1] * loads[1]);
    for (std::size_t i = 0; i < 2; ++i) ipc[i] *= std::max(0.0, 1 - cut * loads[i]);
  }
  return ipc;
}

double BoundedModel::Alone(const KernelProfile& kernel) const {
  const double ipc = markov_.Alone(kernel);
  if (kernel.demands.empty()) return ipc;
  const double most = std::ranges::max(kernel.demands);
  return most > 0 ? std::min(ipc, usable_ / most) : ipc;
}

std::optional<std::array<double, 2>> BoundedModel::Together(const KernelProfile& a, std::uint32_t ctas_a,
                                                            const KernelProfile& b, std::uint32_t ctas_b) const {
  const auto ipc = markov_.Together(a, ctas_a, b, ctas_b);
  if (!ipc) return std::nullopt;
  return WithinBounds(*ipc, a.demands, b.demands, usable_);
}

std::shared_ptr<const CoRunModel> MakeCoRunModel(const SmModel& sm, const ModelOptions& options, double bounds) {
  if (bounds > 0) return std::make_shared<BoundedModel>(sm, options, bounds);
  return std::make_shared<MarkovModel>(sm, options);
}

}  // namespace gridloom::model
