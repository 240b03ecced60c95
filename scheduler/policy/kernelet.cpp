#include "scheduler/policy/kernelet.h"

#include <algorithm>
#include <limits>

namespace gridloom::policy {
namespace {

const KernelView* OldestWaiting(const Snapshot& snapshot) {
  const auto kernel =
      std::ranges::find_if(snapshot.kernels, [](const KernelView& view) { return !view.all_started(); });
  return kernel == snapshot.kernels.end() ? nullptr : &*kernel;
}

bool HasRoom(const Snapshot& snapshot, const KernelView& kernel, std::uint32_t ctas_per_sm) {
  for (std::size_t i = 0; i < snapshot.sms.size(); ++i) {
    if (snapshot.sms[i].Fits(kernel.needs) && (kernel.resident.empty() || kernel.resident[i] < ctas_per_sm))
      return true;
  }
  return false;
}

bool Alike(const CoSchedule& a, const CoSchedule& b) {
  const auto alike = [](const CoSchedule::Part& one, const CoSchedule::Part& other) {
    return one.profile == other.profile && one.ctas_per_sm == other.ctas_per_sm;
  };
  return std::ranges::equal(a.parts, b.parts, alike);
}

}  // namespace

/// What could be started of one of the two kinds.
struct Kernelet::Candidate {
  std::optional<Slice> slice{};
  double filled = 0;  ///< blocks that run, of those that should
};

Kernelet::Candidate Kernelet::Examine(const Snapshot& snapshot, const CoSchedule::Part& part) {
  std::uint64_t running = 0;
  const KernelView* first = nullptr;
  for (const KernelView& kernel : snapshot.kernels) {
    if (kernel.profile != part.profile) continue;
    running += kernel.started - kernel.finished;
    if (first == nullptr && !kernel.all_started()) first = &kernel;
  }
  const std::uint64_t wave = std::uint64_t{part.ctas_per_sm} * std::max<std::size_t>(snapshot.sms.size(), 1);
  Candidate candidate{.filled = static_cast<double>(running) / static_cast<double>(std::max<std::uint64_t>(wave, 1))};
  if (first == nullptr || !HasRoom(snapshot, *first, part.ctas_per_sm)) return candidate;
  const std::uint64_t left = first->ctas - first->started;
  if (!first->divisible) {
    if (running == 0) candidate.slice = Slice{.kernel = first->id, .ctas = left, .max_per_sm = part.ctas_per_sm};
    return candidate;
  }
  // A slice smaller than the smallest costs more than the overhead limit (section 4.1); the last one cannot be helped.
  const std::uint64_t most = std::max(wave, part.smallest_slice);
  const std::uint64_t room = most > running ? most - running : 0;
  if (room >= std::min(part.smallest_slice, left) && room > 0)
    candidate.slice = Slice{.kernel = first->id, .ctas = std::min(left, room), .max_per_sm = part.ctas_per_sm};
  return candidate;
}

std::optional<Slice> Kernelet::NextOfCoSchedule(const Snapshot& snapshot) const {
  // The one that is further from its share goes first: blocks that end are replaced by blocks of the same kind, and
  // whichever kernel ran alone before makes room bit by bit.
  const Candidate a = Examine(snapshot, co_schedule_->parts[0]), b = Examine(snapshot, co_schedule_->parts[1]);
  if (!a.slice || !b.slice) return a.slice ? a.slice : b.slice;
  return a.filled <= b.filled ? a.slice : b.slice;
}

void Kernelet::Plan(const Snapshot& snapshot) {
  scratch_.clear();
  for (const KernelView& kernel : snapshot.kernels) {
    if (!kernel.all_started() && kernel.profile != 0) scratch_.push_back(kernel.profile);
  }
  std::ranges::sort(scratch_);
  scratch_.erase(std::ranges::unique(scratch_).begin(), scratch_.end());
  const std::uint64_t revision = planner_ == nullptr ? 0 : planner_->revision();
  if (scratch_ == waiting_ && revision == revision_) return;
  const bool goes_on =
      co_schedule_ && !options_.replan_on_arrival && std::ranges::all_of(co_schedule_->parts, [&](const auto& part) {
        return std::ranges::binary_search(scratch_, part.profile);
      });
  if (goes_on) return;
  waiting_ = scratch_;
  revision_ = revision;
  co_schedule_ = planner_ == nullptr || waiting_.size() < 2 ? std::nullopt : planner_->Find(waiting_);
  if (!co_schedule_ || !planner_->Wants(*co_schedule_)) meter_.Stop();
  else if (!meter_.running() || !Alike(meter_.schedule(), *co_schedule_)) meter_.Start(*co_schedule_);
}

/// A co-schedule that is being tried: what comes of it may change the plan.
void Kernelet::Measure(const Snapshot& snapshot) {
  if (!meter_.running()) return;
  const CoSchedule tried = meter_.schedule();
  if (const auto rates = meter_.See(snapshot)) planner_->Observe(tried, *rates);
}

void Kernelet::CountOvertaking(const KernelView& oldest, const Slice& slice) {
  if (oldest.id != oldest_) {
    oldest_ = oldest.id;
    overtaken_ = 0;
    began_ = oldest.id;
  }
  const auto is_oldest = [&](const CoSchedule::Part& part) { return part.profile == oldest.profile; };
  if (std::ranges::none_of(co_schedule_->parts, is_oldest) && slice.kernel != began_) {
    began_ = slice.kernel;
    ++overtaken_;
  }
}

std::optional<Slice> Kernelet::Next(const Snapshot& snapshot) {
  Measure(snapshot);
  const KernelView* oldest = OldestWaiting(snapshot);
  if (oldest == nullptr) return std::nullopt;
  // Nothing is known of a kernel without a profile, so nothing can overtake it because it would pay.
  if (oldest->profile == 0) return Rest(*oldest);
  if (options_.patience != 0 && oldest->id == oldest_ && overtaken_ >= options_.patience) return Rest(*oldest);
  Plan(snapshot);
  if (!co_schedule_) return Rest(*oldest);
  const std::optional<Slice> slice = NextOfCoSchedule(snapshot);
  if (slice) CountOvertaking(*oldest, *slice);
  return slice;
}

}  // namespace gridloom::policy
