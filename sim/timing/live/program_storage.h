// What a program reads from storage before it copies it to the device, and writes there of what it has copied back: the
// time of the host's own part (timing.host.storage_mb_s). Every byte that is copied counts.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/timing/live/live_timeline.h"

namespace gridloom::timing {

/// A copy that is about to be given to the device.
struct CopyToCome {
  CopyDirection direction = CopyDirection::kToDevice;
  std::uint64_t bytes = 0;
  NodeId like = 0;  ///< an earlier copy of the same bytes to the device, for which they were read; 0: none
  std::shared_ptr<const std::vector<std::uint32_t>> ranks{};
  std::uint64_t host_span = 0;      ///< as MemoryUse
  std::vector<NodeReuse> reuses{};  ///< of its memory of the host's
};

/// The program reads, copies, runs its kernels, copies back and writes, one after the other; or, overlapped, all of it
/// page by page as far as the device lets it. Any thread may call it.
class ProgramStorage {
 public:
  ProgramStorage(LiveTimeline& timeline, HostId host, bool overlapped);

  // Those that answer a bool may wait for simulated time; false: they had to give up (LiveAnswers::WaitFor).

  /// Before a copy is given to the device, alone: what it stands for in storage. What is read is put into the host's
  /// memory where earlier copies are done with that.
  bool BeforeCopy(Place& place, CopyToCome copy);
  /// Before works are given in which there are copies of so many bytes that nobody can tell apart (graphs).
  bool BeforeGroup(std::uint64_t to_device, std::uint64_t to_host);
  /// The copy has been given, with that partner.
  void Copied(NodeId copy, NodeId partner, CopyDirection direction);
  /// The last work that uses the copy's memory of the host's: the copy, or the writing of what it brings.
  NodeId LastUserOf(NodeId copy);
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
  std::unordered_map<NodeId, NodeId> writing_of_;  ///< of copies to the host, overlapped
};

}  // namespace gridloom::timing
