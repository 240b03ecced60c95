// How long a program's works take on the shared device and on one of its tenant's own, as far as both are known.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "sim/timing/cycle.h"

namespace gridloom::tenants {

/// The times of a tenant's programs together: each one's time from its begin to the end of the last of its works that
/// have ended on both devices, without the times for which it had nothing to do and did not hold the device back. From
/// any thread.
class SharingTotals {
 public:
  struct Cycles {
    timing::Cycle shared = 0, alone = 0;
  };
  void Add(const Cycles& more) {
    const std::lock_guard lock(mutex_);
    sum_.shared += more.shared;
    sum_.alone += more.alone;
  }
  Cycles sum() const {
    const std::lock_guard lock(mutex_);
    return sum_;
  }

 private:
  mutable std::mutex mutex_;
  Cycles sum_;
};

/// The times of one program. Its works are numbered from 1 in the order in which it gave them. Counted is a beginning
/// of that order: works up to the first one that has not ended on both devices, so that both times are for the same
/// works. Both devices' locks may be held by who calls.
class SharingRecord {
 public:
  SharingRecord(std::shared_ptr<SharingTotals> totals, timing::Cycle shared_begin, timing::Cycle alone_begin)
      : totals_(std::move(totals)), shared_{shared_begin}, alone_{alone_begin} {}

  void SharedEnded(std::uint64_t work, timing::Cycle end) { Ended(work, &Work::shared, end); }
  void AloneEnded(std::uint64_t work, timing::Cycle end) { Ended(work, &Work::alone, end); }
  /// The program was away after so many works, and is back. The number is for AloneResumed, which says when that is
  /// alone.
  std::uint64_t Resumed(std::uint64_t after, timing::Cycle shared);
  void AloneResumed(std::uint64_t number, timing::Cycle alone);
  /// Nothing is counted any more: what follows is no end of a work.
  void Freeze();
  /// Works that are counted.
  std::uint64_t counted() const;

 private:
  struct Work {
    timing::Cycle shared = timing::kNever, alone = timing::kNever;
    bool ended() const { return shared != timing::kNever && alone != timing::kNever; }
  };
  struct Resume {
    std::uint64_t number = 0, after = 0;
    timing::Cycle shared = 0, alone = timing::kNever;
  };
  void Ended(std::uint64_t work, timing::Cycle Work::*device, timing::Cycle end);
  void Count();

  const std::shared_ptr<SharingTotals> totals_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::deque<Work> works_;    ///< from the first one that has not ended on both devices
  std::deque<Resume> resumes_;
  std::uint64_t counted_ = 0, resumed_ = 0;
  timing::Cycle shared_, alone_;  ///< until when the program's time is counted
  bool frozen_ = false;
};

}  // namespace gridloom::tenants
