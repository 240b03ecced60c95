#include "scheduler/policy/dka_guarded.h"

#include <algorithm>

#include "scheduler/policy/device_part.h"

namespace gridloom::policy {
namespace {

/// Data sets' worth of work of a trial: before it counts, and that count.
constexpr double kWarmUpSets = 1, kTrialSets = 2;
/// More pipelines than that are forgotten, as in Pipelines.
constexpr std::size_t kMostPipelines = 4096;

}  // namespace

std::optional<Slice> GuardedDka::Next(const Snapshot& snapshot) {
  again_.reset();
  if (tries()) CountWork(snapshot);  // of launches that have ended, too: before they are forgotten
  allocator_.Watch(snapshot);
  const bool heavy = HasHeavy(snapshot);
  if (allocator_.between_steps()) ChooseMode(snapshot.cycle);
  const bool splits =
      mode_ == Mode::kSearch || mode_ == Mode::kTrySplit || mode_ == Mode::kSplit || allocator_.several_tenants();
  const bool possible = allocator_.several_tenants() || CanSplit(snapshot);
  if (splits && ((heavy && possible) || !allocator_.between_steps())) {
    const auto slice = allocator_.Next(snapshot);
    again_ = allocator_.Again();
    return slice;
  }
  return NextUnsplit(snapshot, heavy && mode_ != Mode::kTryWide && mode_ != Mode::kWide);
}

/// Whether a data set is on its way of whose pipeline a kernel needs more than the whole device (Eq. 1). What is found
/// about other pipelines says nothing about a new one.
bool GuardedDka::HasHeavy(const Snapshot& snapshot) {
  const auto idle = std::ranges::find(snapshot.sms, 0u, &SmView::resident_ctas);
  if (!empty_ && idle != snapshot.sms.end()) empty_ = *idle;
  if (heavy_.size() >= kMostPipelines) heavy_.clear(), known_.clear();  // those that are known are among the heavy ones
  bool any = false;
  for (const DataSet& set : allocator_.pipelines().sets()) {
    const std::pair key{set.tenant, set.codes.front()};
    const auto kernel = std::ranges::find(snapshot.kernels, set.launch, &KernelView::id);
    if (empty_ && kernel != snapshot.kernels.end() &&
        kernel->ctas > RoomOf(*empty_, kernel->needs) * snapshot.sms.size())
      heavy_.insert(key);
    if (!heavy_.contains(key) || !allocator_.pipelines().InPipeline(set)) continue;
    any = true;
    const auto stages = allocator_.pipelines().StagesOf(set);
    if (stages.size() > stages_.size()) stages_.assign(stages.begin(), stages.end());
    if (!known_.insert(key).second) continue;
    mode_ = Mode::kSearch;
    stages_.assign(stages.begin(), stages.end());
    tried_ = false;
    best_ = {};
    allocator_.SetTogether(best_.together);
  }
  return any;
}

/// What blocks have done that ended since the last snapshot.
void GuardedDka::CountWork(const Snapshot& snapshot) {
  std::unordered_map<std::uint64_t, std::uint64_t> finished;
  for (const KernelView& kernel : snapshot.kernels) finished[kernel.id] = kernel.finished;
  for (const DataSet& set : allocator_.pipelines().sets()) {
    const auto alone = allocator_.alone().find(set.codes.back());
    const auto before = finished_.find(set.launch);
    if (alone == allocator_.alone().end() || !set.here) continue;
    const auto kernel = std::ranges::find(snapshot.kernels, set.launch, &KernelView::id);
    // One that has left the snapshot has done the rest.
    const std::uint64_t counted = before != finished_.end() ? before->second : 0;
    if (kernel != snapshot.kernels.end()) {
      work_ += alone->second * static_cast<double>(kernel->finished - counted) / static_cast<double>(kernel->ctas);
      rest_[set.launch] =
          alone->second * static_cast<double>(kernel->ctas - kernel->finished) / static_cast<double>(kernel->ctas);
    } else if (const auto rest = rest_.find(set.launch); rest != rest_.end()) {
      work_ += rest->second;
      rest_.erase(rest);
    }
  }
  finished_ = std::move(finished);
}

void GuardedDka::BeginTrial(Mode mode, std::uint64_t cycle) {
  mode_ = mode;
  trial_began_ = cycle;
  work_ = 0;
  warm_ = false;
  finished_.clear();
  rest_.clear();
}

/// What the splits should do is known. It is tried where it is more than the best so far does.
void GuardedDka::EndSearch(std::uint64_t cycle) {
  const auto gain = allocator_.Gain(stages_);
  if (!gain) return;
  split_gain_ = *gain;
  if (!tried_) return BeginTrial(Mode::kTryDeep, cycle);
  TrySplit(cycle);
}

void GuardedDka::TrySplit(std::uint64_t cycle) {
  if (split_gain_ > best_.gain) BeginTrial(Mode::kTrySplit, cycle);
  else Settle();
}

void GuardedDka::Settle() {
  mode_ = best_.mode;
  allocator_.SetTogether(best_.together);
}

/// A trial is over. Of splits the next one has one kernel more side by side, as long as that did more than all before
/// it.
void GuardedDka::EndTrial(double gain, std::uint64_t cycle) {
  const Mode tried = mode_;
  const bool better = gain > best_.gain;
  constexpr auto settled = [](Mode mode) {
    return mode == Mode::kTryDeep ? Mode::kDeep : mode == Mode::kTryWide ? Mode::kWide : Mode::kSplit;
  };
  if (better) best_ = {.mode = settled(tried), .gain = gain, .together = allocator_.together()};
  if (tried == Mode::kTryDeep) return BeginTrial(Mode::kTryWide, cycle);
  if (tried == Mode::kTryWide) {
    tried_ = true;
    return TrySplit(cycle);
  }
  if (!better || allocator_.together() >= stages_.size()) return Settle();
  allocator_.SetTogether(allocator_.together() + 1);
  mode_ = Mode::kSearch;
}

void GuardedDka::ChooseMode(std::uint64_t cycle) {
  if (mode_ == Mode::kSearch) return EndSearch(cycle);
  if (!tries() || cycle == trial_began_) return;
  double set = 0;
  for (const std::uint64_t code : stages_) {
    const auto alone = allocator_.alone().find(code);
    if (alone != allocator_.alone().end()) set += alone->second;
  }
  if (work_ < (warm_ ? kTrialSets : kWarmUpSets) * set) return;
  if (warm_) return EndTrial(work_ / static_cast<double>(cycle - trial_began_), cycle);
  warm_ = true;
  work_ = 0;
  trial_began_ = cycle;
}

/// Whether data sets have come to different kernels, so that two of them can run side by side; or there is but one, or
/// one whose kernel has to be measured alone.
bool GuardedDka::CanSplit(const Snapshot& snapshot) const {
  std::optional<std::size_t> stage;
  std::size_t sets = 0;
  for (const DataSet& set : allocator_.pipelines().sets()) {
    if (!allocator_.pipelines().InPipeline(set)) continue;
    if (!set.here && set.followed && !set.late) return true;  // its next kernel is to come
    const auto kernel = std::ranges::find(snapshot.kernels, set.launch, &KernelView::id);
    if (!set.here || kernel == snapshot.kernels.end() || kernel->all_started()) continue;
    if (!allocator_.alone().contains(set.codes.back()) || (stage && *stage != set.stage())) return true;
    stage = set.stage();
    ++sets;
  }
  return sets < 2;
}

/// Launches of no pipeline keep their turn.
std::optional<Slice> GuardedDka::NextUnsplit(const Snapshot& snapshot, bool deep) const {
  const auto& sets = allocator_.pipelines().sets();
  const auto rest = [](const KernelView& kernel) {
    return Slice{.kernel = kernel.id, .ctas = kernel.ctas - kernel.started};
  };
  const auto waiting =
      std::ranges::find_if(snapshot.kernels, [](const KernelView& kernel) { return !kernel.all_started(); });
  if (waiting == snapshot.kernels.end()) return std::nullopt;
  const auto of = std::ranges::find(sets, waiting->id, &DataSet::launch);
  if (!deep || of == sets.end() || !allocator_.pipelines().InPipeline(*of)) return rest(*waiting);
  for (const bool begun : {true, false}) {
    for (const DataSet& set : sets) {
      if (set.begun != begun || !set.here || !allocator_.pipelines().InPipeline(set)) continue;
      const auto kernel = std::ranges::find(snapshot.kernels, set.launch, &KernelView::id);
      if (kernel != snapshot.kernels.end() && !kernel->all_started()) return rest(*kernel);
    }
  }
  return rest(*waiting);
}

}  // namespace gridloom::policy
