// A policy under which each launch has a profile from the moment at which it may run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "scheduler/policy/policy.h"
#include "sim/timing/work.h"

namespace gridloom::timing {

/// policy::KernelView::profile of a launch of the tenant's, asked for once, when it may run. It may take CTAs from the
/// source; then it puts another in its place that gives all of them.
using Profiler = std::function<std::uint64_t(std::uint32_t tenant, std::shared_ptr<trace::CtaSource>& source)>;

/// Used by the simulation's thread alone, but for what the policy within allows.
class ProfilingPolicy final : public policy::Policy {
 public:
  ProfilingPolicy(std::unique_ptr<policy::Policy> policy, Profiler profiler)
      : policy_(std::move(policy)), profiler_(std::move(profiler)) {}

  /// What the engine gets as the source of a launch; Expect says which launch it is. What is behind it may change
  /// before a CTA is loaded.
  class Source final : public trace::CtaSource {
   public:
    explicit Source(std::shared_ptr<trace::CtaSource> source) : source_(std::move(source)) {}
    const trace::KernelCode& code() const override { return source_->code(); }
    const trace::LaunchShape& shape() const override { return source_->shape(); }
    Result<trace::LoadedCta> Load(std::uint64_t index) override { return source_->Load(index); }

   private:
    friend class ProfilingPolicy;
    std::shared_ptr<trace::CtaSource> source_;
  };
  void Expect(WorkId launch, std::shared_ptr<Source> source) { expected_[launch] = std::move(source); }
  /// The launch has ended.
  void Forget(WorkId launch);

  std::string_view name() const override { return policy_->name(); }
  std::optional<policy::Slice> Next(const policy::Snapshot& snapshot) override;
  std::optional<std::uint64_t> Again() const override { return policy_->Again(); }

 private:
  std::uint64_t ProfileOf(const policy::KernelView& kernel);

  const std::unique_ptr<policy::Policy> policy_;
  const Profiler profiler_;
  std::unordered_map<WorkId, std::shared_ptr<Source>> expected_;  ///< launches that no decision has seen
  std::unordered_map<WorkId, std::uint64_t> profiles_;            ///< of those that one has
  std::vector<policy::KernelView> kernels_;                       ///< of a decision
};

}  // namespace gridloom::timing
