#include "sim/tenants/sharing_record.h"

#include <algorithm>
#include <utility>

namespace gridloom::tenants {

void SharingRecord::Ended(std::uint64_t work, timing::Cycle Work::*device, timing::Cycle end) {
  const std::lock_guard lock(mutex_);
  if (frozen_ || work <= counted_) return;
  const std::uint64_t at = work - counted_ - 1;
  if (at >= works_.size()) works_.resize(at + 1);
  works_[at].*device = end;
  if (at == 0) Count();
}

std::uint64_t SharingRecord::Resumed(std::uint64_t after, timing::Cycle shared) {
  const std::lock_guard lock(mutex_);
  resumes_.push_back({.number = ++resumed_, .after = after, .shared = shared});
  return resumed_;
}

void SharingRecord::AloneResumed(std::uint64_t number, timing::Cycle alone) {
  const std::lock_guard lock(mutex_);
  const auto resume = std::ranges::find(resumes_, number, &Resume::number);
  if (resume == resumes_.end()) return;
  resume->alone = alone;
  Count();
}

/// Holding the lock.
void SharingRecord::Count() {
  if (frozen_) return;
  SharingTotals::Cycles more;
  while (true) {
    if (!resumes_.empty() && resumes_.front().after == counted_) {
      const Resume& resume = resumes_.front();
      if (resume.alone == timing::kNever) break;
      shared_ = std::max(shared_, resume.shared);
      alone_ = std::max(alone_, resume.alone);
      resumes_.pop_front();
      continue;
    }
    if (works_.empty() || !works_.front().ended()) break;
    const Work& work = works_.front();
    more.shared += std::max(shared_, work.shared) - shared_;
    more.alone += std::max(alone_, work.alone) - alone_;
    shared_ = std::max(shared_, work.shared);
    alone_ = std::max(alone_, work.alone);
    works_.pop_front();
    ++counted_;
  }
  if (more.shared != 0 || more.alone != 0) totals_->Add(more);
}

void SharingRecord::Freeze() {
  const std::lock_guard lock(mutex_);
  frozen_ = true;
  works_.clear();
  resumes_.clear();
}

std::uint64_t SharingRecord::counted() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

}  // namespace gridloom::tenants
