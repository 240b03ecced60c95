// Kernelet that tries what it chose. Not in the paper: its scheduler trusts the model, and so keeps a pair that the model overestimates (a
// pointer chase beside a kernel that lives on the caches which the chase empties) for as long as both wait.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "scheduler/model/planner.h"

namespace gridloom::model {

/// What two kernels reach side by side with so many thread blocks of each on every SM, as parts of what each reaches alone. Measured on the
/// device, while slices of the two run as they would anyway: no work is done twice.
using Probe =
    std::function<std::array<double, 2>(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b)>;

/// Rates that were probed, and a model's for the rest.
class ProbedModel final : public CoRunModel {
 public:
  explicit ProbedModel(std::shared_ptr<const CoRunModel> model) : model_(std::move(model)) {}
  /// `parts`: of the rates alone. In either order.
  void Set(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b, std::array<double, 2> parts);
  bool Knows(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b) const;
  double Alone(const KernelProfile& kernel) const override { return model_->Alone(kernel); }
  std::optional<std::array<double, 2>> Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                std::uint32_t ctas_b) const override;

 private:
  std::shared_ptr<const CoRunModel> model_;
  MeasuredRates parts_;
};

/// GreedyPlanner that adopts no pair in a slice ratio that has not been probed: it probes its choice, puts what came out in place of the
/// prediction, and chooses again, until the choice is a probed one. The model says where to look, so that few ratios of few pairs are
/// tried.
class ProbingPlanner final : public policy::CoSchedulePlanner {
 public:
  ProbingPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles, std::shared_ptr<const CoRunModel> model, Probe probe,
                 const PlanOptions& options = {});
  std::optional<policy::CoSchedule> Find(std::span<const std::uint64_t> waiting) override;
  std::uint64_t revision() const override { return greedy_.revision(); }
  std::uint64_t probes() const { return probes_; }  ///< so far

 private:
  std::shared_ptr<const ProfileTable> profiles_;
  std::shared_ptr<ProbedModel> model_;
  GreedyPlanner greedy_;
  Probe probe_;
  std::uint64_t probes_ = 0;
};

}  // namespace gridloom::model
