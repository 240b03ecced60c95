#include "sim/timing/live/program_storage.h"

#include <utility>

namespace gridloom::timing {
namespace {

/// Streams of programs have small numbers.
constexpr std::uint64_t kFirstStream = std::uint64_t{1} << 62;

}  // namespace

ProgramStorage::ProgramStorage(LiveTimeline& timeline, HostId host, bool overlapped)
    : timeline_(timeline), host_(host), overlapped_(overlapped), there_(timeline.parameters().timing().host.storage_mb_s != 0) {}

/// Storage does nothing that works of the device's streams wait for. With the lock held.
Place ProgramStorage::OwnStream() {
  return {.host = host_, .stream = kFirstStream + streams_++, .after = {}, .group = 0, .rank = 0, .profile = 0};
}

bool ProgramStorage::BeforeCopy(Place& place, CopyDirection direction, std::uint64_t bytes, NodeId like,
                                std::shared_ptr<const std::vector<std::uint32_t>> ranks) {
  const bool in = direction == CopyDirection::kToDevice, out = direction == CopyDirection::kToHost;
  if (!there_ || bytes == 0 || (!in && !out)) return true;
  Place storage;
  {
    const std::lock_guard lock(mutex_);
    if (like != 0 && in) {
      if (const auto reading = reading_of_.find(like); reading != reading_of_.end()) place.partner = reading->second;
      return true;
    }
    if (!overlapped_ && out) {
      unwritten_ += bytes;
      return true;
    }
    storage = OwnStream();
  }
  if (!overlapped_) return timeline_.WaitFor(host_, timeline_.AddCopy(std::move(storage), CopyDirection::kFromStorage, bytes));
  storage.is_partner = true;
  storage.use.ranks = std::move(ranks);
  place.partner = timeline_.AddCopy(std::move(storage), in ? CopyDirection::kFromStorage : CopyDirection::kToStorage, bytes);
  return true;
}

void ProgramStorage::Copied(NodeId copy, NodeId partner, CopyDirection direction) {
  if (!there_) return;
  const std::lock_guard lock(mutex_);
  if (direction == CopyDirection::kToDevice && partner != 0) reading_of_[copy] = partner;
  if (direction == CopyDirection::kToHost && !overlapped_) copied_.push_back(copy);
}

/// What nobody can tell apart is read, or written, as a whole; the host waits.
bool ProgramStorage::Move(CopyDirection direction, std::uint64_t bytes) {
  Place storage;
  {
    const std::lock_guard lock(mutex_);
    storage = OwnStream();
  }
  storage.use.special = true;
  return timeline_.WaitFor(host_, timeline_.AddCopy(std::move(storage), direction, bytes));
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
  return bytes == 0 || (timeline_.WaitFor(host_, copied) && Move(CopyDirection::kToStorage, bytes));
}

}  // namespace gridloom::timing
