#include "scheduler/model/planner.h"

#include <algorithm>

namespace gridloom::model {
namespace {

policy::CoSchedule::Part PartOf(std::uint64_t id, const KernelProfile& profile, std::uint32_t ctas_per_sm) {
  return {.profile = id, .ctas_per_sm = ctas_per_sm, .smallest_slice = profile.smallest_slice};
}

std::string RateKey(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b) {
  const auto part = [](const KernelProfile& kernel, std::uint32_t ctas) {
    return kernel.kernel + '\0' + std::to_string(kernel.needs.warps) + '\0' + std::to_string(ctas);
  };
  return part(a, ctas_a) + '\0' + part(b, ctas_b);
}

}  // namespace

Result<std::uint64_t> ProfileTable::Add(KernelProfile profile) {
  GL_TRY_STATUS(Validate(profile));
  const std::uint64_t id = profiles_.size() + 1;
  if (Find(profile.kernel, profile.needs.warps) != 0)
    return Error{"two profiles of kernel " + profile.kernel + " with blocks of one size"};
  by_name_[profile.kernel].push_back(id);
  profiles_.push_back(std::make_unique<const KernelProfile>(std::move(profile)));
  return id;
}

std::uint64_t ProfileTable::Find(std::string_view kernel, std::uint32_t warps) const {
  const auto found = by_name_.find(std::string(kernel));
  if (found == by_name_.end()) return 0;
  const auto with =
      std::ranges::find_if(found->second, [&](std::uint64_t id) { return Get(id)->needs.warps == warps; });
  return with == found->second.end() ? 0 : *with;
}

GreedyPlanner::GreedyPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles,
                             std::shared_ptr<const CoRunModel> model, const PlanOptions& options, bool deferred)
    : sm_(sm), profiles_(std::move(profiles)), model_(std::move(model)), options_(options), deferred_(deferred) {}

const std::optional<PairPlan>& GreedyPlanner::Solve(Pair pair) {
  const KernelProfile &first = *profiles_->Get(pair & 0xffffffffu), &second = *profiles_->Get(pair >> 32);
  const auto& plan = plans_.emplace(pair, PlanPair(sm_, *model_, first, second, options_)).first->second;
  if (plan && plan->profit > options_.least_profit && !Prunes(first, second, options_.prune_pur, options_.prune_mur)) {
    const auto before = [](const Ranked& a, const Ranked& b) {
      return a.plan.profit != b.plan.profit ? a.plan.profit > b.plan.profit : a.pair < b.pair;
    };
    const Ranked ranked{pair, *plan};
    ranked_.insert(std::ranges::upper_bound(ranked_, ranked, before), ranked);
  }
  return plan;
}

const std::optional<PairPlan>& GreedyPlanner::PlanOf(std::uint64_t first, std::uint64_t second) {
  static const std::optional<PairPlan> kUnknown;
  const Pair pair = PairOf(first, second);
  if (const auto known = plans_.find(pair); known != plans_.end()) return known->second;
  if (!deferred_) return Solve(pair);
  asked_.insert(pair);
  return kUnknown;
}

bool GreedyPlanner::Advance() {
  if (asked_.empty()) return false;
  const Pair pair = *asked_.begin();
  asked_.erase(asked_.begin());
  Solve(pair);
  ++revision_;
  return true;
}

void GreedyPlanner::Replan(std::uint64_t first, std::uint64_t second) {
  const Pair pair = PairOf(std::min(first, second), std::max(first, second));
  plans_.erase(pair);
  std::erase_if(ranked_, [&](const Ranked& ranked) { return ranked.pair == pair; });
  Solve(pair);
  ++revision_;
}

/// A kind waits for the first time.
void GreedyPlanner::See(std::uint64_t id) {
  for (const std::uint64_t other : seen_) {
    const std::uint64_t first = std::min(id, other), second = std::max(id, other);
    if (!Prunes(*profiles_->Get(first), *profiles_->Get(second), options_.prune_pur, options_.prune_mur))
      PlanOf(first, second);
  }
  seen_.push_back(id);
  is_seen_[id] = true;
}

policy::CoSchedule GreedyPlanner::ScheduleOf(Pair pair, const PairPlan& plan) const {
  const std::uint64_t first = pair & 0xffffffffu, second = pair >> 32;
  policy::CoSchedule schedule;
  schedule.parts = {PartOf(first, *profiles_->Get(first), plan.ctas_per_sm[0]),
                    PartOf(second, *profiles_->Get(second), plan.ctas_per_sm[1])};
  schedule.profit = plan.profit;
  return schedule;
}

std::optional<policy::CoSchedule> GreedyPlanner::Find(std::span<const std::uint64_t> waiting) {
  is_seen_.resize(profiles_->size() + 1);
  is_waiting_.assign(profiles_->size() + 1, false);
  for (const std::uint64_t id : waiting) {
    if (profiles_->Get(id) == nullptr) continue;
    if (!is_seen_[id]) See(id);
    is_waiting_[id] = true;
  }
  for (const Ranked& ranked : ranked_) {
    if (is_waiting_[ranked.pair & 0xffffffffu] && is_waiting_[ranked.pair >> 32])
      return ScheduleOf(ranked.pair, ranked.plan);
  }
  return FindAmongAlike(waiting);
}

/// No pair that is left by pruning pays: if that is because none is left, the thresholds are loosened.
std::optional<policy::CoSchedule> GreedyPlanner::FindAmongAlike(std::span<const std::uint64_t> waiting) {
  std::vector<std::uint64_t> ids;
  std::ranges::copy_if(waiting, std::back_inserter(ids),
                       [&](std::uint64_t id) { return profiles_->Get(id) != nullptr; });
  std::ranges::sort(ids);  // a pair has one plan, whoever came first
  std::vector<const KernelProfile*> kernels;
  for (const std::uint64_t id : ids) kernels.push_back(profiles_->Get(id));
  const auto found = FindCoSchedule(
      kernels, [&](std::size_t first, std::size_t second) { return PlanOf(ids[first], ids[second]); }, options_);
  if (!found) return std::nullopt;
  return ScheduleOf(PairOf(ids[found->first], ids[found->second]), found->pair);
}

std::optional<policy::CoSchedule> RandomPlanner::Find(std::span<const std::uint64_t> waiting) {
  std::vector<std::uint64_t> ids;
  std::ranges::copy_if(waiting, std::back_inserter(ids),
                       [&](std::uint64_t id) { return profiles_->Get(id) != nullptr; });
  if (ids.size() < 2) return std::nullopt;
  const std::size_t first = Below(ids.size());
  std::size_t second = Below(ids.size() - 1);
  second += second >= first;
  const KernelProfile &a = *profiles_->Get(ids[first]), &b = *profiles_->Get(ids[second]);
  const auto [known, is_new] = ratios_.try_emplace({ids[first], ids[second]});
  if (is_new) known->second = SliceRatios(sm_, a, b);
  const auto& ratios = known->second;
  if (ratios.empty()) return std::nullopt;
  const auto& ctas = ratios[Below(ratios.size())];
  return policy::CoSchedule{.parts = {PartOf(ids[first], a, ctas[0]), PartOf(ids[second], b, ctas[1])}};
}

void MeasuredRates::Set(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b, std::uint32_t ctas_b,
                        std::array<double, 2> ipc) {
  rates_[RateKey(a, ctas_a, b, ctas_b)] = ipc;
  rates_[RateKey(b, ctas_b, a, ctas_a)] = {ipc[1], ipc[0]};
}

std::optional<std::array<double, 2>> MeasuredRates::Together(const KernelProfile& a, std::uint32_t ctas_a,
                                                             const KernelProfile& b, std::uint32_t ctas_b) const {
  const auto found = rates_.find(RateKey(a, ctas_a, b, ctas_b));
  return found == rates_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace gridloom::model
