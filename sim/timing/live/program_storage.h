// What a program reads from storage before it copies it to the device, and writes there of what it has copied back: the time of the host's
// own part (timing.host.storage_mb_s). Every byte that is copied counts.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/timing/live/live_timeline.h"

namespace gridloom::timing {

/// The program reads, copies, runs its kernels, copies back and writes, one after the other; or, overlapped, all of it page by page as far
/// as the device lets it. Any thread may call it.
class ProgramStorage {
 public:
  ProgramStorage(LiveTimeline& timeline, HostId host, bool overlapped);

  // Those that answer a bool may wait for simulated time; false: they had to give up (LiveTimeline::WaitFor).

  /// Before a copy is given to the device, alone: what it stands for in storage. `like`: an earlier copy of the same bytes to the device,
  /// for which they were read; 0: none.
  bool BeforeCopy(Place& place, CopyDirection direction, std::uint64_t bytes, NodeId like = 0,
                  std::shared_ptr<const std::vector<std::uint32_t>> ranks = {});
  /// Before works are given in which there are copies of so many bytes that nobody can tell apart (graphs).
  bool BeforeGroup(std::uint64_t to_device, std::uint64_t to_host);
  /// It has been given, with that partner.
  void Copied(NodeId copy, NodeId partner, CopyDirection direction);
  /// The host has waited for results, which it writes.
  bool AfterWait();
  /// The program has made its last call.
  bool Finish() { return AfterWait(); }

 private:
  Place OwnStream();
  bool Move(CopyDirection direction, std::uint64_t bytes);

  LiveTimeline& timeline_;
  const HostId host_;
  const bool overlapped_, there_;
  std::mutex mutex_;  ///< guards what follows; nobody waits with it
  std::uint64_t streams_ = 0;
  std::uint64_t unwritten_ = 0;                    ///< bytes that the host has got, or will have
  std::vector<NodeId> copied_;                     ///< the copies that bring them
  std::unordered_map<NodeId, NodeId> reading_of_;  ///< of copies to the device
};

}  // namespace gridloom::timing
