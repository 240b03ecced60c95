#include "scheduler/model/probing_planner.h"

namespace gridloom::model {

void ProbedModel::Set(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b,
                      std::array<double, 2> parts) {
  parts_.Set(a, ctas_a, b, ctas_b, parts);
}

bool ProbedModel::Knows(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                        std::uint32_t ctas_b) const {
  return parts_.Together(a, ctas_a, b, ctas_b).has_value();
}

/// In the model's unit, so that its bias cancels in CP as it does for predictions.
std::optional<std::array<double, 2>> ProbedModel::Together(const KernelProfile& a, std::uint32_t ctas_a,
                                                           const KernelProfile& b, std::uint32_t ctas_b) const {
  const auto parts = parts_.Together(a, ctas_a, b, ctas_b);
  if (!parts) return model_->Together(a, ctas_a, b, ctas_b);
  return std::array{(*parts)[0] * Alone(a), (*parts)[1] * Alone(b)};
}

LearningPlanner::LearningPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles,
                                 std::shared_ptr<const CoRunModel> model, const PlanOptions& options)
    : sms_(sm.sms),
      profiles_(std::move(profiles)),
      model_(std::make_shared<ProbedModel>(std::move(model))),
      greedy_(sm, profiles_, model_, options) {}

bool LearningPlanner::Wants(const policy::CoSchedule& schedule) const {
  const auto& [first, second] = schedule.parts;
  return !model_->Knows(ProfileOf(first), first.ctas_per_sm, ProfileOf(second), second.ctas_per_sm);
}

void LearningPlanner::Observe(const policy::CoSchedule& schedule, std::array<double, 2> ctas_per_cycle) {
  std::array<double, 2> parts{};
  for (std::size_t i = 0; i < 2; ++i) {
    const KernelProfile& kernel = ProfileOf(schedule.parts[i]);
    const double alone = kernel.ipc * sms_ / kernel.instructions_per_cta;
    if (!(alone > 0)) return;  // nothing to compare with
    parts[i] = ctas_per_cycle[i] / alone;
  }
  Learn(schedule, parts);
}

void LearningPlanner::Learn(const policy::CoSchedule& schedule, std::array<double, 2> parts) {
  const auto& [first, second] = schedule.parts;
  model_->Set(ProfileOf(first), first.ctas_per_sm, ProfileOf(second), second.ctas_per_sm, parts);
  ++learned_;
  greedy_.Replan(first.profile, second.profile);
}

std::optional<policy::CoSchedule> ProbingPlanner::Find(std::span<const std::uint64_t> waiting) {
  // Ends: each round probes a ratio for the first time, and there are not many.
  while (true) {
    const auto schedule = learning_.Find(waiting);
    if (!schedule || !learning_.Wants(*schedule)) return schedule;
    const auto& [first, second] = schedule->parts;
    learning_.Learn(*schedule, probe_(learning_.ProfileOf(first), first.ctas_per_sm, learning_.ProfileOf(second),
                                      second.ctas_per_sm));
  }
}

}  // namespace gridloom::model
