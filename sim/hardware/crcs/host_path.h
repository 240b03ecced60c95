// The way between storage, the host's memory and the device for programs whose parts overlap (CRCS paper, section 3):
// inputs are read from storage piece by piece, pages go to the device as soon as they are full and the device's page is
// theirs, results come back page by page and are written to storage as they come. Memory of the host's that several
// copies use goes from one to the next page by page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/hardware/crcs/dat.h"
#include "sim/hardware/crcs/events.h"
#include "sim/hardware/crcs/host_pages.h"
#include "sim/hardware/crcs/ownership.h"
#include "sim/hardware/crcs/serial_line.h"
#include "sim/hardware/crcs/settings.h"
#include "sim/timing/ports.h"

namespace gridloom::hardware::crcs {

/// What the host path does to the rest of the part and to the device.
class HostPathUser {
 public:
  virtual ~HostPathUser() = default;
  virtual void OnWorkDone(timing::Cycle at, timing::WorkId work) = 0;
  virtual void OnTransferred(timing::Cycle at, timing::WorkId work, std::uint64_t address, std::uint64_t bytes,
                             bool writes) = 0;
};

struct HostPathCounts {
  std::uint64_t pages_in = 0, pages_out = 0, dat_misses = 0;
};

class HostPath {
 public:
  HostPath(const Settings& settings, Agenda& agenda, Ownership& ownership, Shares& shares, HostPathUser& user)
      : settings_(settings),
        agenda_(agenda),
        ownership_(ownership),
        shares_(shares),
        user_(user),
        dat_(settings.dat_entries),
        host_pages_(settings.page_shift),
        from_storage_(settings.storage_mb_s, settings.mhz),
        to_storage_(settings.storage_mb_s, settings.mhz),
        to_device_(settings.to_device_mb_s, settings.mhz),
        to_host_(settings.to_host_mb_s, settings.mhz) {}

  /// A copy, fill or work of storage that was given.
  void Give(const timing::WorkView& work);
  /// A copy starts. `pages`: it moves pages of the table, else memory that is none of the table's business.
  void StartCopy(timing::Cycle now, timing::WorkId copy, bool pages);
  void StartStorage(timing::Cycle now, timing::WorkId storage);
  /// A work that was given has ended without having started: nobody wants it any more.
  void Drop(timing::Cycle now, timing::WorkId work);

  void OnCopyOwns(timing::Cycle at, timing::WorkId copy, std::uint64_t page);
  /// Handles an event of one of the host path's kinds.
  void Handle(const Event& event);
  const HostPathCounts& counts() const { return counts_; }

 private:
  struct Copy {
    timing::WorkKind kind = timing::WorkKind::kCopyToDevice;
    std::uint32_t space = 0;
    Extent extent;
    HostPages::Reuses reuses;                  ///< of memory that nothing is read into
    timing::WorkId partner = timing::kNoWork;  ///< the reading that fills its source, the writing of what it brings
    bool paged = false;
    std::uint64_t first = 0;                    ///< page of the device
    std::uint64_t left = 0;                     ///< pages that have not been moved
    std::vector<bool> here;                     ///< pages of the source that are full
    std::uint64_t source = 0, source_span = 0;  ///< of a copy on the device
    std::vector<std::uint64_t> all;             ///< pages that a copy or fill on the device uses, and
    std::uint64_t unowned = 0;                  ///< how many of them it does not own yet
  };
  struct Reading {
    std::vector<timing::WorkId> copies{};  ///< that it fills
    std::uint64_t bytes = 0, host_span = 0;
    HostPages::Reuses reuses;
    bool begun = false;
    std::shared_ptr<const std::vector<std::uint32_t>> ranks;
    std::vector<std::uint64_t> order;  ///< of pieces; empty where it is their own
    std::uint64_t pieces = 0, read = 0, done = 0;
    /// The piece that comes next, and when the program filled it.
    std::uint64_t Next() const { return order.empty() ? read : order[read]; }
    std::uint64_t RankOf(std::uint64_t piece, std::uint32_t read_bytes) const;
    /// Where the next one comes to lie in the host's memory.
    ByteRange NextOnHost(std::uint32_t read_bytes) const;
  };
  struct Writing {
    std::uint64_t left = 0;  ///< bytes
    bool begun = false;
    Extent of;  ///< the copy that brings them
  };
  static constexpr std::uint32_t kPageBits = 40;

  void Enter(const Event& event);
  void EnterCopy(timing::Cycle at, timing::WorkId id, Copy& copy);
  void EnterMove(timing::Cycle at, timing::WorkId id, Copy& copy);
  void ReadNext(timing::Cycle now);
  timing::WorkId NextReading();
  void SetOrder(timing::WorkId id, Reading& reading) const;
  void OnRead(const Event& event);
  void PutPiece(timing::Cycle at, timing::WorkId id, std::uint64_t piece);
  void FillRest(timing::Cycle at, const Reading& reading);
  void OnFull(const Event& event);
  bool MayWrite(timing::WorkId id, const Copy& copy, std::uint64_t page);
  void Left(timing::Cycle at, const std::vector<HostPages::Page>& waiting);
  void SendIfMayBe(timing::Cycle at, timing::WorkId id, Copy& copy, std::uint64_t page);
  void OnArrived(const Event& event);
  void OnBack(const Event& event);
  void OnWritten(const Event& event);
  void EndIfWritten(timing::Cycle at, timing::WorkId id);
  void OnDropped(const Event& event);
  void OnMoved(const Event& event);
  void BringIfMayBe(timing::Cycle at, timing::WorkId id, const Copy& copy, std::uint64_t page);
  void Move(timing::Cycle at, timing::WorkId id, const Copy& copy);
  void PageDone(timing::Cycle at, timing::WorkId id, Copy& copy, std::uint64_t page);
  std::uint64_t DatPage(timing::WorkId id, std::uint64_t page) const { return std::uint64_t{id} << kPageBits | page; }

  const Settings& settings_;
  Agenda& agenda_;
  Ownership& ownership_;
  Shares& shares_;
  HostPathUser& user_;
  DataAvailabilityTracker dat_;
  HostPages host_pages_;
  SerialLine from_storage_, to_storage_, to_device_, to_host_;
  std::unordered_map<timing::WorkId, Copy> copies_;
  std::map<timing::WorkId, Reading> readings_;            // that are under way, in their order
  std::unordered_map<timing::WorkId, Writing> writings_;  // likewise
  timing::WorkId last_reading_ = timing::kNoWork;         // whose turn it was
  bool reads_ = false;                                    // the drive is busy
  timing::Cycle mover_free_ = 0;                          // what copies and fills on the device
  HostPathCounts counts_;
};

}  // namespace gridloom::hardware::crcs
