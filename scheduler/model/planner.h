// Planners of co-schedules for policy::Kernelet: by a model or by measurements, and at random.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/model/plan.h"
#include "scheduler/policy/co_schedule.h"

namespace gridloom::model {

/// The kinds of kernels that are known, numbered from 1 on: policy::KernelView::profile.
class ProfileTable {
 public:
  /// Fails when the profile makes no sense, or there is one of this kernel with as many warps in a block.
  Result<std::uint64_t> Add(KernelProfile profile);
  std::uint64_t Find(std::string_view kernel,
                     std::uint32_t warps) const;  ///< with so many warps in a block; 0: not known
  /// Null: not known.
  const KernelProfile* Get(std::uint64_t id) const {
    return id == 0 || id > profiles_.size() ? nullptr : profiles_[id - 1].get();
  }
  std::size_t size() const { return profiles_.size(); }

 private:
  std::vector<std::unique_ptr<const KernelProfile>> profiles_;           // do not move
  std::unordered_map<std::string, std::vector<std::uint64_t>> by_name_;  // one for each size of blocks
};

/// Solves a pair once. With the Markov model this is Kernelet, with measured rates and PlanOptions::Ratio::kBest it is
/// OPT (section 5.1). Find() answers as FindCoSchedule does. A kind that waits for the first time costs the plans of
/// its pairs with all kinds that have waited before; after that a look through the pairs in the order of their profit
/// is enough.
class GreedyPlanner final : public policy::CoSchedulePlanner {
 public:
  /// `deferred`: Find() solves nothing and takes no longer than looking up what is known; Advance() solves.
  GreedyPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles,
                std::shared_ptr<const CoRunModel> model, const PlanOptions& options = {}, bool deferred = false);
  std::optional<policy::CoSchedule> Find(std::span<const std::uint64_t> waiting) override;
  std::uint64_t revision() const override { return revision_; }

  /// Solves one pair that Find() wanted and did not have; false if there is none.
  bool Advance();
  std::uint64_t solved() const { return plans_.size(); }  ///< pairs
  /// The model has another answer for this pair: solves it again.
  void Replan(std::uint64_t first, std::uint64_t second);

 private:
  using Pair = std::uint64_t;  // the ids, 32 bits each, the larger one first: the order in which FindCoSchedule goes
  struct Ranked {
    Pair pair = 0;
    PairPlan plan;
  };
  static Pair PairOf(std::uint64_t first, std::uint64_t second) { return second << 32 | first; }
  void See(std::uint64_t id);
  const std::optional<PairPlan>& PlanOf(std::uint64_t first, std::uint64_t second);
  const std::optional<PairPlan>& Solve(Pair pair);
  std::optional<policy::CoSchedule> FindAmongAlike(std::span<const std::uint64_t> waiting);
  policy::CoSchedule ScheduleOf(Pair pair, const PairPlan& plan) const;

  SmModel sm_;
  std::shared_ptr<const ProfileTable> profiles_;
  std::shared_ptr<const CoRunModel> model_;
  PlanOptions options_;
  bool deferred_;
  std::uint64_t revision_ = 0;
  std::unordered_map<Pair, std::optional<PairPlan>> plans_;
  std::set<Pair> asked_;             ///< not solved yet
  std::vector<std::uint64_t> seen_;  ///< kinds that have waited
  std::vector<bool> is_seen_, is_waiting_;
  std::vector<Ranked> ranked_;  ///< pairs of them that are not pruned and pay, the best first
};

/// MC (section 5.1): a random pair of those waiting, in a random slice ratio; pays or not. The same seed draws the
/// same.
class RandomPlanner final : public policy::CoSchedulePlanner {
 public:
  RandomPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles, std::uint64_t seed)
      : sm_(sm), profiles_(std::move(profiles)), random_(seed) {}
  std::optional<policy::CoSchedule> Find(std::span<const std::uint64_t> waiting) override;

 private:
  std::size_t Below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  SmModel sm_;
  std::shared_ptr<const ProfileTable> profiles_;
  std::mt19937_64 random_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::array<std::uint32_t, 2>>>
      ratios_;  // of pairs drawn before
};

/// Rates that were measured, by kernels (and the size of their blocks) and thread blocks per SM, in either order.
class MeasuredRates final : public CoRunModel {
 public:
  void Set(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b,
           std::array<double, 2> ipc);
  double Alone(const KernelProfile& kernel) const override { return kernel.ipc; }
  std::optional<std::array<double, 2>> Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                std::uint32_t ctas_b) const override;

 private:
  std::unordered_map<std::string, std::array<double, 2>> rates_;
};

}  // namespace gridloom::model
