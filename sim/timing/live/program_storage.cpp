#include "sim/timing/live/program_storage.h"

#include <utility>

namespace gridloom::timing {
namespace {

/// Streams of programs have small numbers.
constexpr std::uint64_t kFirstStream = std::uint64_t{1} << 62;

}  // namespace

ProgramStorage::ProgramStorage(LiveTimeline& timeline, HostId host, bool overlapped)
    : timeline_(timeline),
      host_(host),
      overlapped_(overlapped),
      there_(timeline.parameters().timing().host.storage_mb_s != 0) {}

/// Storage does nothing that works of the device's streams wait for. With the lock held.
Place ProgramStorage::OwnStream() {
  return {.host = host_, .stream = kFirstStream + streams_++, .after = {}, .group = 0, .rank = 0, .profile = 0};
}

bool ProgramStorage::BeforeCopy(Place& place, CopyToCome copy) {
  const bool in = copy.direction == CopyDirection::kToDevice, out = copy.direction == CopyDirection::kToHost;
  if (!there_ || copy.bytes == 0 || (!in && !out)) return true;
  Place storage;
  {
    const std::lock_guard lock(mutex_);
    if (copy.like != 0 && in) {
      if (const auto reading = reading_of_.find(copy.like); reading != reading_of_.end())
        place.partner = reading->second;
      return true;
    }
    if (!overlapped_ && out) {
      unwritten_ += copy.bytes;
      return true;
    }
    storage = OwnStream();
  }
  if (!overlapped_)
    return timeline_.answers().WaitFor(host_,
                                       timeline_.AddCopy(std::move(storage), CopyDirection::kFromStorage, copy.bytes));
  storage.is_partner = true;
  if (in) {
    storage.use.ranks = std::move(copy.ranks);
    storage.use.host_span = copy.host_span;
    storage.reuses = std::move(copy.reuses);
  }
  place.partner =
      timeline_.AddCopy(std::move(storage), in ? CopyDirection::kFromStorage : CopyDirection::kToStorage, copy.bytes);
  return true;
}

void ProgramStorage::Copied(NodeId copy, NodeId partner, CopyDirection direction) {
  if (!there_) return;
  const std::lock_guard lock(mutex_);
  if (direction == CopyDirection::kToDevice && partner != 0) reading_of_[copy] = partner;
  if (direction != CopyDirection::kToHost) return;
  if (!overlapped_) copied_.push_back(copy);
  else if (partner != 0) writing_of_[copy] = partner;
}

NodeId ProgramStorage::LastUserOf(NodeId copy) {
  const std::lock_guard lock(mutex_);
  const auto writing = writing_of_.find(copy);
  return writing == writing_of_.end() ? copy : writing->second;
}

/// What nobody can tell apart is read, or written, as a whole; the host waits.
bool ProgramStorage::Move(CopyDirection direction, std::uint64_t bytes) {
  Place storage;
  {
    const std::lock_guard lock(mutex_);
    storage = OwnStream();
  }
  storage.use.special = true;
  return timeline_.answers().WaitFor(host_, timeline_.AddCopy(std::move(storage), direction, bytes));
}

bool ProgramStorage::BeforeGroup(std::uint64_t to_device, std::uint64_t to_host) {
  if (!there_) return true;
  {
    const std::lock_guard lock(mutex_);
    unwritten_ += to_host;
  }
  return to_device == 0 || Move(CopyDirection::kFromStorage, to_device);
}

bool ProgramStorage::AfterWait() {
  std::vector<NodeId> copied;
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    bytes = std::exchange(unwritten_, 0);
    if (bytes != 0) copied = std::exchange(copied_, {});
  }
  return bytes == 0 || (timeline_.answers().WaitFor(host_, copied) && Move(CopyDirection::kToStorage, bytes));
}

}  // namespace gridloom::timing
