// FR-FCFS with an index: per bank and direction a list in order of arrival, and the first entry of it whose row is
// open. A decision compares one number for each bank and looks at no list.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "sim/timing/memory/bank_lanes.h"
#include "sim/timing/memory/dram_queue.h"

namespace gridloom::timing {

/// Looks at all banks at once. Commands are given in the order of time, and Choose is asked for times that never fall.
class IndexedDramQueue final : public DramQueue {
 public:
  IndexedDramQueue(std::uint32_t capacity, std::uint32_t banks, std::uint32_t bank_groups);

  DramEntry entry(std::uint32_t slot) const override;
  Cycle Add(const DramEntry& entry, const DramTiming& timing) override;
  void ColumnGiven(Cycle now, std::uint32_t slot, const DramTiming& timing) override;
  void RowOpened(Cycle now, std::uint32_t slot, const DramTiming& timing) override;
  void RowClosed(Cycle now, std::uint32_t bank, const DramTiming& timing) override;
  DramChoice Choose(Cycle from, const DramTiming& timing) override;

 private:
  static constexpr std::uint16_t kNone = 0;  // slot 0 is no entry, and has no order
  /// Times in lanes are relative to base_, which follows before they are that far behind, and doubled. One command
  /// moves them by six of the device's times at most.
  static constexpr Cycle kMaxBehind = 0x3000, kMaxAhead = 6 * Cycle{sim::TimingSpec::Dram::kMaxCommandCycles};
  static_assert(2 * (kMaxBehind + kMaxAhead) + 1 < kNoLane);
  /// What a bank's first candidate waits for besides its bank, as the bytes of Choose's table that say until when.
  static constexpr std::uint16_t kReadGate = 0x0100, kActivateGate = 0x0302, kPrechargeGate = 0x0504;

  struct Slot {
    std::uint32_t row = 0, tag = 0;
    std::uint16_t order = kNoLane;  ///< of arrival, among the entries that are there
    std::uint16_t previous = kNone, next = kNone;
    std::uint8_t bank = 0;
    std::uint8_t bursts_and_writes = 0;  ///< times two, and one more for a write
    bool writes() const { return (bursts_and_writes & 1) != 0; }
  };
  static_assert(sizeof(Slot) == 16);
  struct List {
    std::uint16_t head = kNone, tail = kNone;
    std::uint16_t hit = kNone;  // first entry of the open row
  };
  using Bank = std::array<List, 2>;  // reads, writes

  static constexpr std::uint32_t kRowHashes = 32;
  /// Entries of a bank and direction whose rows have one hash: mostly it is known without a walk that no other entry
  /// wants a row.
  std::uint16_t& WithHash(std::uint32_t bank, bool writes, std::uint32_t row) {
    return with_hash_[(bank * 2 + (writes ? 1 : 0)) * kRowHashes + (row ^ row >> 5) % kRowHashes];
  }
  /// From `slot` on, the first entry that wants the row.
  std::uint16_t FirstHit(std::uint32_t bank, bool writes, std::uint16_t slot, std::uint32_t row) {
    if (WithHash(bank, writes, row) == 0) return kNone;
    while (slot != kNone && slots_[slot].row != row) slot = slots_[slot].next;
    return slot;
  }
  std::uint16_t NextOrder(std::uint32_t bank, const DramTiming& timing);
  void UpdateCandidates(std::uint32_t bank, const DramTiming& timing);
  std::uint16_t Doubled(Cycle at) const { return static_cast<std::uint16_t>(2 * (std::max(at, base_) - base_)); }
  void Follow(Cycle now) {
    if (now - base_ > kMaxBehind) MoveBase(now);
  }
  void MoveBase(Cycle now);

  const std::uint32_t blocks_;
  std::vector<BankLanes> groups_;  // by bank group: all bits of its banks
  // By bank. Its candidates: a column command for the first read of the open row, else, if no entry wants that row, a
  // row command for the oldest entry; and a column command for the first write of the open row. The orders of their
  // entries:
  BankLanes order_, write_order_;
  std::array<std::uint16_t, kMaxBanks> first_{};  // the entry of the first candidate
  BankLanes at_;  // when the bank would let it go, and one more if it is a row command; kNoLane: there is no candidate
  BankLanes gate_;               // and until when others would not: kReadGate, ...
  BankLanes column_at_;          // DramTiming's bank_column_at
  std::uint64_t has_write_ = 0;  // banks with the second, as a mask
  Cycle base_ = 0;
  std::uint16_t next_order_ = 0;
  std::uint16_t free_ = kNone;
  std::vector<Slot> slots_;
  std::vector<Bank> banks_;
  std::vector<std::uint16_t> with_hash_;
};

}  // namespace gridloom::timing
