// Kernelet that tries what it chose. Not in the paper: its scheduler trusts the model, and so keeps a pair that the
// model overestimates (a pointer chase beside a kernel that lives on the caches which the chase empties) for as long as
// both wait.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "scheduler/model/planner.h"

namespace gridloom::model {

/// What two kernels reach side by side with so many thread blocks of each on every SM, as parts of what each reaches
/// alone. Measured on the device, while slices of the two run as they would anyway: no work is done twice.
using Probe = std::function<std::array<double, 2>(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                  std::uint32_t ctas_b)>;

/// Rates that were probed, and a model's for the rest.
class ProbedModel final : public CoRunModel {
 public:
  explicit ProbedModel(std::shared_ptr<const CoRunModel> model) : model_(std::move(model)) {}
  /// `parts`: of the rates alone. In either order.
  void Set(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b,
           std::array<double, 2> parts);
  bool Knows(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b) const;
  double Alone(const KernelProfile& kernel) const override { return model_->Alone(kernel); }
  std::optional<std::array<double, 2>> Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                std::uint32_t ctas_b) const override;

 private:
  std::shared_ptr<const CoRunModel> model_;
  MeasuredRates parts_;
};

/// GreedyPlanner that learns how fast pairs really go: it wants each pair that it chooses measured in the slice ratio
/// chosen, puts what comes out in place of the prediction, and chooses again. The model says where to look, so that few
/// ratios of few pairs are tried.
class LearningPlanner final : public policy::CoSchedulePlanner {
 public:
  LearningPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles,
                  std::shared_ptr<const CoRunModel> model, const PlanOptions& options = {});
  std::optional<policy::CoSchedule> Find(std::span<const std::uint64_t> waiting) override {
    return greedy_.Find(waiting);
  }
  std::uint64_t revision() const override { return greedy_.revision(); }
  bool Wants(const policy::CoSchedule& schedule) const override;
  /// In cycles of the profiles' device.
  void Observe(const policy::CoSchedule& schedule, std::array<double, 2> ctas_per_cycle) override;
  /// The same in parts of the rates alone.
  void Learn(const policy::CoSchedule& schedule, std::array<double, 2> parts);
  std::uint64_t learned() const { return learned_; }  ///< slice ratios of pairs, so far
  const KernelProfile& ProfileOf(const policy::CoSchedule::Part& part) const { return *profiles_->Get(part.profile); }

 private:
  std::uint32_t sms_;
  std::shared_ptr<const ProfileTable> profiles_;
  std::shared_ptr<ProbedModel> model_;
  GreedyPlanner greedy_;
  std::uint64_t learned_ = 0;
};

/// LearningPlanner for who can measure at once: it adopts no pair in a slice ratio that has not been probed.
class ProbingPlanner final : public policy::CoSchedulePlanner {
 public:
  ProbingPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles,
                 std::shared_ptr<const CoRunModel> model, Probe probe, const PlanOptions& options = {})
      : learning_(sm, std::move(profiles), std::move(model), options), probe_(std::move(probe)) {}
  std::optional<policy::CoSchedule> Find(std::span<const std::uint64_t> waiting) override;
  std::uint64_t revision() const override { return learning_.revision(); }
  std::uint64_t probes() const { return learning_.learned(); }  ///< so far

 private:
  LearningPlanner learning_;
  Probe probe_;
};

}  // namespace gridloom::model
