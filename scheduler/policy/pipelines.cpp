#include "scheduler/policy/pipelines.h"

#include <algorithm>

namespace gridloom::policy {
namespace {

/// More groups than that are forgotten: programs have a few pipelines, and whoever sends kernels without end pays with
/// theirs.
constexpr std::size_t kMostGroups = 4096;
/// No pipeline is longer; a stream that runs kernel after kernel is none.
constexpr std::size_t kMostStages = 64;
/// Of more data sets whose next launches are to come, the oldest are forgotten: their programs may be gone.
constexpr std::size_t kMostAbsent = 4096;

}  // namespace

bool Pipelines::See(const Snapshot& snapshot) {
  ended_.clear();
  const bool same = std::ranges::equal(snapshot.kernels, launches_, {}, &KernelView::id);
  if (!same) {
    for (const std::uint64_t launch : launches_) {
      if (std::ranges::find(snapshot.kernels, launch, &KernelView::id) == snapshot.kernels.end()) End(launch);
    }
    for (const KernelView& kernel : snapshot.kernels) {
      if (std::ranges::find(launches_, kernel.id) == launches_.end()) Arrive(kernel);
    }
    ForgetAbsent();
    launches_.clear();
    for (const KernelView& kernel : snapshot.kernels) launches_.push_back(kernel.id);
  }
  for (DataSet& set : sets_) {
    const auto kernel = std::ranges::find(snapshot.kernels, set.launch, &KernelView::id);
    if (!set.here || kernel == snapshot.kernels.end()) continue;
    set.begun |= kernel->started != 0;
    if (kernel->followed == set.followed) continue;
    set.followed = kernel->followed;
    Note(set);
  }
  return !same;
}

/// The next launch of a stream goes on with its data set, unless that has come to the first kernel again: then it is
/// another one.
void Pipelines::Arrive(const KernelView& kernel) {
  auto set = std::ranges::find_if(
      sets_, [&](const DataSet& known) { return known.tenant == kernel.tenant && known.stream == kernel.stream; });
  if (set != sets_.end() && (set->codes.front() == kernel.code || set->codes.size() == kMostStages)) {
    sets_.erase(set);
    set = sets_.end();
  }
  if (set == sets_.end()) {
    sets_.push_back({.tenant = kernel.tenant, .stream = kernel.stream, .codes = {}});
    set = std::prev(sets_.end());
  }
  set->codes.push_back(kernel.code);
  set->launch = kernel.id;
  set->here = true;
  set->late = false;
  set->followed = kernel.followed;
  Note(*set);
  if (set->codes.size() != 1) return;
  Group& group = groups_.at(KeyOf(*set));
  group.again |= std::exchange(group.begun, true);
}

void Pipelines::End(std::uint64_t launch) {
  ended_.push_back(launch);
  const auto set = std::ranges::find(sets_, launch, &DataSet::launch);
  if (set == sets_.end()) return;
  set->here = false;
  if (set->over()) sets_.erase(set);
}

void Pipelines::ForgetAbsent() {
  if (sets_.size() <= kMostAbsent) return;
  auto absent = static_cast<std::size_t>(std::ranges::count(sets_, false, &DataSet::here));
  std::erase_if(sets_, [&](const DataSet& set) { return !set.here && absent-- > kMostAbsent; });
}

/// Holds the data set against those that began as it did.
void Pipelines::Note(DataSet& set) {
  if (!groups_.contains(KeyOf(set)) && groups_.size() >= kMostGroups) groups_.clear();
  Group& group = groups_[KeyOf(set)];
  if (group.streams.size() < 2) group.streams.insert(set.stream);
  group.followed |= set.codes.size() > 1 || set.followed;
  const std::size_t stage = set.stage();
  if (stage == group.stages.size()) group.stages.push_back(set.codes.back());
  set.odd |= stage > group.stages.size() || group.stages[stage] != set.codes.back();
}

bool Pipelines::Repeats(const DataSet& set) const {
  const auto group = groups_.find(KeyOf(set));
  return set.codes.front() != 0 && group != groups_.end() && group->second.again;
}

std::span<const std::uint64_t> Pipelines::StagesOf(const DataSet& set) const {
  const auto group = groups_.find(KeyOf(set));
  return group != groups_.end() ? std::span<const std::uint64_t>(group->second.stages)
                                : std::span<const std::uint64_t>();
}

void Pipelines::GiveUpWaiting() {
  for (DataSet& set : sets_) set.late |= !set.here;
}

bool Pipelines::InPipeline(const DataSet& set) const {
  if (set.odd || set.codes.front() == 0) return false;
  const auto group = groups_.find(KeyOf(set));
  return group != groups_.end() && group->second.streams.size() > 1 && group->second.followed;
}

}  // namespace gridloom::policy
