#include "scheduler/model/planner.h"

#include <algorithm>

namespace gridloom::model {
namespace {

policy::CoSchedule::Part PartOf(std::uint64_t id, const KernelProfile& profile, std::uint32_t ctas_per_sm) {
  return {.profile = id, .ctas_per_sm = ctas_per_sm, .smallest_slice = profile.smallest_slice};
}

std::string RateKey(const std::string& a, std::uint32_t ctas_a, const std::string& b, std::uint32_t ctas_b) {
  return a + '\0' + std::to_string(ctas_a) + '\0' + b + '\0' + std::to_string(ctas_b);
}

}  // namespace

Result<std::uint64_t> ProfileTable::Add(KernelProfile profile) {
  GL_TRY_STATUS(Validate(profile));
  const std::uint64_t id = profiles_.size() + 1;
  if (!by_name_.try_emplace(profile.kernel, id).second) return Error{"two profiles of kernel " + profile.kernel};
  profiles_.push_back(std::make_unique<const KernelProfile>(std::move(profile)));
  return id;
}

std::uint64_t ProfileTable::Find(std::string_view kernel) const {
  const auto found = by_name_.find(std::string(kernel));
  return found == by_name_.end() ? 0 : found->second;
}

GreedyPlanner::GreedyPlanner(const SmModel& sm, std::shared_ptr<const ProfileTable> profiles, std::shared_ptr<const CoRunModel> model,
                             const PlanOptions& options, bool deferred)
    : sm_(sm), profiles_(std::move(profiles)), model_(std::move(model)), options_(options), deferred_(deferred) {}

const std::optional<PairPlan>& GreedyPlanner::PlanOf(std::uint64_t first, std::uint64_t second) {
  static const std::optional<PairPlan> kUnknown;
  const Pair pair = first << 32 | second;
  if (const auto known = plans_.find(pair); known != plans_.end()) return known->second;
  if (deferred_) {
    asked_.insert(pair);
    return kUnknown;
  }
  return plans_.emplace(pair, PlanPair(sm_, *model_, *profiles_->Get(first), *profiles_->Get(second), options_)).first->second;
}

bool GreedyPlanner::Advance() {
  if (asked_.empty()) return false;
  const Pair pair = *asked_.begin();
  asked_.erase(asked_.begin());
  plans_.emplace(pair, PlanPair(sm_, *model_, *profiles_->Get(pair >> 32), *profiles_->Get(pair & 0xffffffffu), options_));
  ++revision_;
  return true;
}

std::optional<policy::CoSchedule> GreedyPlanner::Find(std::span<const std::uint64_t> waiting) {
  std::vector<const KernelProfile*> kernels;
  std::vector<std::uint64_t> ids;
  for (const std::uint64_t id : waiting) {
    if (const KernelProfile* profile = profiles_->Get(id)) {
      kernels.push_back(profile);
      ids.push_back(id);
    }
  }
  const auto found = FindCoSchedule(
      kernels, [&](std::size_t first, std::size_t second) { return PlanOf(ids[first], ids[second]); }, options_);
  if (!found) return std::nullopt;
  policy::CoSchedule schedule;
  schedule.parts[0] = PartOf(ids[found->first], *kernels[found->first], found->pair.ctas_per_sm[0]);
  schedule.parts[1] = PartOf(ids[found->second], *kernels[found->second], found->pair.ctas_per_sm[1]);
  schedule.profit = found->pair.profit;
  return schedule;
}

std::optional<policy::CoSchedule> RandomPlanner::Find(std::span<const std::uint64_t> waiting) {
  std::vector<std::uint64_t> ids;
  std::ranges::copy_if(waiting, std::back_inserter(ids), [&](std::uint64_t id) { return profiles_->Get(id) != nullptr; });
  if (ids.size() < 2) return std::nullopt;
  const std::size_t first = Below(ids.size());
  std::size_t second = Below(ids.size() - 1);
  second += second >= first;
  const KernelProfile &a = *profiles_->Get(ids[first]), &b = *profiles_->Get(ids[second]);
  const auto ratios = SliceRatios(sm_, a, b);
  if (ratios.empty()) return std::nullopt;
  const auto& ctas = ratios[Below(ratios.size())];
  return policy::CoSchedule{.parts = {PartOf(ids[first], a, ctas[0]), PartOf(ids[second], b, ctas[1])}};
}

void MeasuredRates::Set(const std::string& a, std::uint32_t ctas_a, const std::string& b, std::uint32_t ctas_b, std::array<double, 2> ipc) {
  rates_[RateKey(a, ctas_a, b, ctas_b)] = ipc;
  rates_[RateKey(b, ctas_b, a, ctas_a)] = {ipc[1], ipc[0]};
}

std::optional<std::array<double, 2>> MeasuredRates::Together(const KernelProfile& a, std::uint32_t ctas_a, const KernelProfile& b,
                                                             std::uint32_t ctas_b) const {
  const auto found = rates_.find(RateKey(a.kernel, ctas_a, b.kernel, ctas_b));
  return found == rates_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace gridloom::model
