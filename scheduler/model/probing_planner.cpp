#include "scheduler/model/probing_planner.h"

namespace gridloom::model {

void ProbedModel::Set(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b,
                      std::array<double, 2> parts) {
  parts_.Set(a, ctas_a, b, ctas_b, parts);
}

bool ProbedModel::Knows(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b) const {
  return parts_.Together(a, ctas_a, b, ctas_b).has_value();
}

/// In the model's unit, so that its bias cancels in CP as it does for predictions.
std::optional<std::array<double, 2>> ProbedModel::Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                           std::uint32_t ctas_b) const {
  const auto parts = parts_.Together(a, ctas_a, b, ctas_b);
  if (!parts) return model_->Together(a, ctas_a, b, ctas_b);
  return std::array{(*parts)[0] * Alone(a), (*parts)[1] * Alone(b)};
}

ProbingPlanner::ProbingPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles, std::shared_ptr<const CoRunModel> model,
                               Probe probe, const PlanOptions& options)
    : profiles_(std::move(profiles)),
      model_(std::make_shared<ProbedModel>(std::move(model))),
      greedy_(sm, profiles_, model_, options),
      probe_(std::move(probe)) {}

std::optional<policy::CoSchedule> ProbingPlanner::Find(std::span<const std::uint64_t> waiting) {
  // Ends: each round probes a ratio for the first time, and there are not many.
  while (true) {
    const auto schedule = greedy_.Find(waiting);
    if (!schedule) return schedule;
    const auto& [first, second] = schedule->parts;
    const KernelProfile &a = *profiles_->Get(first.profile), &b = *profiles_->Get(second.profile);
    if (model_->Knows(a, first.ctas_per_sm, b, second.ctas_per_sm)) return schedule;
    model_->Set(a, first.ctas_per_sm, b, second.ctas_per_sm, probe_(a, first.ctas_per_sm, b, second.ctas_per_sm));
    ++probes_;
    greedy_.Replan(first.profile, second.profile);
  }
}

}  // namespace gridloom::model
