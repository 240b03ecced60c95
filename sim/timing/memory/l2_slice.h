// A slice of L2: sectored, write-back, allocating on reads and writes, atomics done in place. One request after the
// other.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/timing/aligned.h"
#include "sim/timing/counters.h"
#include "sim/timing/memory/address_map.h"
#include "sim/timing/memory/dram_channel.h"
#include "sim/timing/memory/inbox.h"
#include "sim/timing/memory/message.h"
#include "sim/timing/parameters.h"

namespace gridloom::timing {

/// Cycles are L2's. A sector that stores have covered in part is dirty and not valid; a read of it fetches the rest
/// from DRAM then. When stores have covered all of its words, it is valid.
class L2Slice {
 public:
  /// What DRAM gives back with the data of a fetch: its number, and in the lowest bits the slice of the partition.
  static constexpr unsigned kTagSliceBits = 8;
  static constexpr std::uint32_t kTagSliceMask = (1u << kTagSliceBits) - 1;

  /// `index` of the partition. The references must outlive the slice.
  L2Slice(const Parameters& parameters, const AddressMap& map, const Ports& ports, std::uint32_t partition,
          std::uint32_t index, DramChannel& dram, MemoryCounters& counters);

  void Add(const Request& request) { inbox_.Add(request); }
  /// After the last Add of a phase, in which requests were added that arrive at `done` or later.
  void SortInbox(Cycle done) {
    // Another request may be the next, unless that has come.
    if (located_ && inbox_.next_arrival() >= done) located_ = found_ = false;
    inbox_.Sort();
  }
  bool empty() const { return inbox_.empty(); }
  /// What is known of the next request before its time: without that much room in DRAM's queue it cannot be taken. May
  /// be less than is needed. Holds until that request is taken, or SortInbox.
  std::uint32_t RoomForNext();
  /// RoomForNext() has been asked since.
  bool looked_ahead() const { return found_; }
  /// Takes the next request, if there is one and nothing stands in its way. False when it has to wait for DRAM.
  bool Tick(Cycle now, Outbox<Response>& out);
  /// Without that much room in DRAM's queue, a request that had to wait cannot go on.
  std::uint32_t room_needed() const { return room_needed_; }
  /// Data that come to the slice change nothing for the request that waits.
  bool waits_for_room_only() const { return waits_for_room_only_; }
  /// Data of DRAM have come; `fetch` is the number that was given to the channel.
  void Fill(Cycle now, std::uint32_t fetch, Outbox<Response>& out);
  /// The host may fetch what a Fill will need.
  void PrefetchFill(std::uint32_t fetch) const {
    __builtin_prefetch(&lines_[fetches_[fetch].line]);
    __builtin_prefetch(&used_[fetches_[fetch].line]);
  }
  /// Refuses while data of DRAM are on their way.
  void Walk(StateWalk& walk);
  /// When the next request can be taken, if nothing stands in its way.
  Cycle next() const { return std::max(inbox_.next_arrival(), busy_until_); }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr unsigned kWaiterBits = 20;
  static constexpr std::uint32_t kNoWaiter = (1u << kWaiterBits) - 1;
  /// A word: with its tag and a byte for its age, a set of 16 ways is two lines and a quarter of the host's caches.
  struct Line {
    std::uint32_t first_waiter : kWaiterBits = kNoWaiter;
    std::uint32_t valid : 4 = 0, dirty : 4 = 0, pending : 4 = 0;  ///< masks of sectors
  };
  static_assert(sizeof(Line) == 4);
  struct Waiter {
    std::uint32_t next = kNoWaiter;
    std::uint32_t last = kNoWaiter;  ///< of the line's, where this is the first one
    std::uint16_t sm = 0, id = 0;
    RequestKind kind = RequestKind::kRead;
    std::uint8_t sectors = 0;
  };
  /// Sectors on their way from DRAM, and the request that wants them, if no other waited for the line before: most
  /// lines have no other.
  struct Fetch {
    std::uint32_t line = 0;  ///< of lines_; of a free one, the next
    std::uint16_t sm = 0, id = 0;
    RequestKind kind = RequestKind::kRead;
    std::uint8_t sectors = 0;
    std::uint8_t wanted = 0;  ///< 0: there is no such request
  };
  struct SetTag {
    std::uint32_t set;
    std::uint32_t tag;
  };

  SetTag Locate(std::uint64_t local) const;
  std::uint64_t LocalOf(std::uint32_t line) const;
  std::uint32_t FindLine(SetTag place) const;
  void FindNext();
  struct Missing {
    std::uint8_t sectors = 0;  ///< of a read, those that are not there
    std::uint8_t pending = 0;  ///< of the line
    std::uint8_t fetch = 0;    ///< to be read from DRAM
  };
  Missing MissingOf(const Request& request) const;
  static constexpr std::uint8_t kPinned = 0x80, kBehind = 0xff;
  void Prefetch(SetTag place) const;
  bool Take(Cycle now, const Request& request, Outbox<Response>& out);
  bool Flush(Cycle now);
  bool Sweep(Cycle now, std::uint64_t tag);
  void Drop(Cycle now, std::uint32_t index);
  void Bring(Cycle now, std::uint64_t local, std::uint32_t count);
  std::uint32_t GiveWay(Cycle now);
  L2Access AccessOf(const Request& request) const;
  L2Place PlaceOf(std::uint32_t line) const { return {.set = line / stride_, .way = line % stride_}; }
  void Count(const Request& request, Cycle occupied);
  void Use(std::uint32_t line);
  void Forget(std::uint32_t index);
  std::uint8_t Complete(std::uint32_t index, std::uint32_t words);
  std::uint32_t Replace(Cycle now, const Request& request, bool also_reads);
  std::uint32_t Oldest(std::uint32_t first, std::uint64_t ways) const;
  void Read(Cycle now, std::uint32_t line, const Request& request, std::uint8_t sectors, bool waits_alone);
  void WriteBack(Cycle now, std::uint32_t line);
  /// A slice has so many waiters at once, far more than any device's SMs send it in the time of a fetch: then it takes
  /// nothing that waits.
  bool has_room_for_waiter() const { return free_waiter_ != kNoWaiter || waiters_.size() < kNoWaiter; }
  void AddWaiter(Line& line, const Request& request);
  void Answer(Cycle now, std::uint16_t sm, std::uint16_t id, RequestKind kind, std::uint8_t sectors, Cycle later,
              Outbox<Response>& out);
  bool IsFar(std::uint16_t sm) const;
  Cycle HalfCycles(std::uint32_t index, const Request& request, bool hits);
  Cycle Occupancy(const Request& request) const;

  const Parameters& parameters_;
  const AddressMap& map_;
  const Ports& ports_;
  const std::uint32_t partition_, index_;
  const std::uint16_t source_;  ///< of the device
  DramChannel& dram_;
  MemoryCounters& counters_;

  Inbox<Request> inbox_;
  Port out_port_;
  Cycle busy_until_ = 0;
  SetTag place_{};  // of the next request, if it is located
  bool located_ = false;
  std::uint32_t line_ = kNone;  // its line, if that was looked for; nobody else brings it or replaces it meanwhile
  bool found_ = false;
  std::uint32_t room_needed_ = 0;     // in DRAM's queue, by the request that waits
  bool waits_for_room_only_ = false;  // and for nothing that data which come may change
  bool sweeping_ = false;             // the next request is a sweep that has begun;
  std::vector<L2Place> swept_;        // what it has still to write back, the next one last
  Divisor sets_;
  std::uint32_t ways_, stride_;  // of a set: its ways, and those that its place in the arrays holds
  // By set and way. Places behind the ways are pinned, and no request has their tags.
  AlignedVector<std::uint32_t> tags_;  // kNone: free
  AlignedVector<Line> lines_;
  /// Sectors that the other half has copies of, as a mask; empty where there is one half.
  AlignedVector<std::uint8_t> copied_;
  bool looked_up_twice_ = false;         // the request that was taken, in this half and the one beside the SM
  AlignedVector<std::uint32_t> stored_;  // words that stores of a part of a sector have covered, as a mask
  AlignedVector<std::uint8_t> used_;     // when last, by the set's clock; kPinned is added while sectors are pending
  std::vector<std::uint8_t> clock_;      // by set: uses since its ways were numbered anew
  std::uint64_t changes_ = 0;            // of what lines hold
  std::uint32_t outstanding_ = 0;        // lines with pending sectors
  std::vector<Waiter> waiters_;
  std::vector<Fetch> fetches_;
  std::uint32_t free_waiter_ = kNoWaiter, free_fetch_ = kNone;
  std::vector<Cycle> occupancy_;  // by packet sectors * 5 + data sectors
  /// By mask of sectors: the sectors of the DRAM bursts that hold them, and how many bursts.
  std::array<std::uint8_t, 16> granules_{}, bursts_{};
};

}  // namespace gridloom::timing
