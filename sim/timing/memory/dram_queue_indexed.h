// FR-FCFS with an index: per bank and direction a list in order of arrival, and the first entry of it whose row is open. A decision
// compares one number for each bank and looks at no list.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "rewriter/support/check.h"
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
  void RowOpened(Cycle now, std::uint32_t bank, const DramTiming& timing) override;
  void RowClosed(Cycle now, std::uint32_t bank, const DramTiming& timing) override;
  DramChoice Choose(Cycle from, const DramTiming& timing) override;

 private:
  static constexpr std::uint16_t kNone = 0;  // slot 0 is no entry, and has no order
  /// Times in lanes are relative to base_, which follows before they are that far behind. One command moves them by six of the device's
  /// times at most; twice the time until a command may be given is compared.
  static constexpr Cycle kMaxBehind = 0x3000, kMaxAhead = 6 * Cycle{sim::TimingSpec::Dram::kMaxCommandCycles};
  static_assert(kMaxBehind + kMaxAhead < kNoLane && 2 * kMaxAhead + 1 < kNoLane);

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
  /// Entries of a bank and direction whose rows have one hash: mostly it is known without a walk that no other entry wants a row.
  std::uint16_t& WithHash(std::uint32_t bank, bool writes, std::uint32_t row) {
    return with_hash_[(bank * 2 + (writes ? 1 : 0)) * kRowHashes + (row ^ row >> 5) % kRowHashes];
  }
  /// From `slot` on, the first entry that wants the row.
  std::uint16_t FirstHit(std::uint32_t bank, bool writes, std::uint16_t slot, std::uint32_t row) {
    if (WithHash(bank, writes, row) == 0) return kNone;
    while (slot != kNone && slots_[slot].row != row) slot = slots_[slot].next;
    return slot;
  }
  std::uint16_t NextOrder();
  void UpdateCandidates(std::uint32_t bank);
  std::uint16_t Relative(Cycle at) const { return at > base_ ? static_cast<std::uint16_t>(at - base_) : 0; }
  static std::uint16_t Wait(Cycle at, Cycle from) { return at > from ? static_cast<std::uint16_t>(at - from) : 0; }
  void Follow(Cycle now) {
    if (now - base_ > kMaxBehind) MoveBase(now);
  }
  void MoveBase(Cycle now);
  void UpdateRowTime(std::uint32_t bank, const DramTiming& timing) { SetLane(row_at_, bank, Relative(timing.bank_row_at(bank))); }

  const std::uint32_t steps_;
  std::vector<BankLanes> groups_;  // by bank group: all bits of its banks
  // By bank. Its candidates: a column command for the first read of the open row, else, if no entry wants that row, a row command for the
  // oldest entry; and a column command for the first write of the open row. The orders of their entries:
  BankLanes order_, write_order_;
  std::array<std::uint16_t, kMaxBanks> first_{};  // the entry of the first candidate
  BankLanes reads_;                               // all bits: the first one is a read
  std::uint64_t has_write_ = 0;                   // banks with the second, as a mask
  BankLanes closed_;                              // all bits of those that are
  BankLanes column_at_, row_at_;                  // DramTiming's bank_column_at and bank_row_at
  Cycle base_ = 0;
  std::uint16_t next_order_ = 0;
  std::uint16_t free_ = kNone;
  std::vector<Slot> slots_;
  std::vector<Bank> banks_;
  std::vector<std::uint16_t> with_hash_;
};

inline DramEntry IndexedDramQueue::entry(std::uint32_t index) const {
  const Slot& slot = slots_[index];
  return {.row = slot.row,
          .tag = slot.tag,
          .bank = slot.bank,
          .bursts = static_cast<std::uint8_t>(slot.bursts_and_writes >> 1),
          .writes = slot.writes()};
}

inline void IndexedDramQueue::UpdateCandidates(std::uint32_t number) {
  const Bank& bank = banks_[number];
  const std::uint16_t oldest = bank[slots_[bank[1].head].order < slots_[bank[0].head].order].head;
  const std::uint16_t first = (bank[0].hit | bank[1].hit) == kNone ? oldest : bank[0].hit;
  first_[number] = first;
  SetLane(order_, number, slots_[first].order);
  SetLane(reads_, number, bank[0].hit == kNone ? 0 : 0xffff);
  const std::uint64_t bit = std::uint64_t{1} << number;
  if (bank[1].hit == kNone && (has_write_ & bit) == 0) return;
  SetLane(write_order_, number, slots_[bank[1].hit].order);
  has_write_ = bank[1].hit == kNone ? has_write_ & ~bit : has_write_ | bit;
}

inline Cycle IndexedDramQueue::Add(const DramEntry& entry, const DramTiming& timing) {
  const std::uint16_t order = NextOrder();
  const std::uint16_t index = free_;
  GL_CHECK(index != kNone, "a request was given to a DRAM channel without room");
  Slot& slot = slots_[index];
  free_ = slot.next;
  Bank& bank = banks_[entry.bank];
  List& list = bank[entry.writes];
  slot.row = entry.row;
  slot.tag = entry.tag;
  slot.order = order;
  slot.previous = list.tail;
  slot.next = kNone;
  slot.bank = static_cast<std::uint8_t>(entry.bank);
  slot.bursts_and_writes = static_cast<std::uint8_t>(entry.bursts << 1 | (entry.writes ? 1 : 0));
  (list.tail == kNone ? list.head : slots_[list.tail].next) = index;
  list.tail = index;
  ++WithHash(entry.bank, entry.writes, entry.row);
  const bool hit = timing.open_row(entry.bank) == entry.row;
  if (hit && list.hit == kNone) list.hit = index;
  UpdateCandidates(entry.bank);
  if (hit) return timing.ColumnAt(entry.bank, entry.writes);
  // Its bank keeps its row while other entries need it.
  return (bank[0].hit | bank[1].hit) != kNone ? kNever : timing.RowAt(entry.bank);
}

inline void IndexedDramQueue::ColumnGiven(Cycle now, std::uint32_t given, const DramTiming& timing) {
  const auto index = static_cast<std::uint16_t>(given);
  Slot& slot = slots_[index];
  const std::uint32_t number = slot.bank;
  List& list = banks_[number][slot.writes()];
  --WithHash(number, slot.writes(), slot.row);
  list.hit = FirstHit(number, slot.writes(), slot.next, slot.row);
  (slot.previous == kNone ? list.head : slots_[slot.previous].next) = slot.next;
  (slot.next == kNone ? list.tail : slots_[slot.next].previous) = slot.previous;
  slot.next = free_;
  free_ = index;
  UpdateCandidates(number);
  Follow(now);
  UpdateRowTime(number, timing);
  const BankLanes& group = groups_[timing.group(number)];
  const __m128i group_at = AllLanes(Relative(timing.group_column_at(number)));
  for (std::uint32_t step = 0; step < steps_; ++step) {
    SetLanes(column_at_, step, _mm_max_epi16(LanesOf(column_at_, step), _mm_and_si128(LanesOf(group, step), group_at)));
  }
}

inline void IndexedDramQueue::RowOpened(Cycle now, std::uint32_t number, const DramTiming& timing) {
  for (const bool writes : {false, true}) {
    List& list = banks_[number][writes];
    list.hit = FirstHit(number, writes, list.head, timing.open_row(number));
  }
  UpdateCandidates(number);
  Follow(now);
  SetLane(closed_, number, 0);
  SetLane(column_at_, number, Relative(timing.bank_column_at(number)));
  UpdateRowTime(number, timing);
}

inline void IndexedDramQueue::RowClosed(Cycle now, std::uint32_t number, const DramTiming& timing) {
  Follow(now);
  SetLane(closed_, number, 0xffff);
  UpdateRowTime(number, timing);
}

/// Keys are twice the cycles until a command may be given, and one more for row commands.
inline DramChoice IndexedDramQueue::Choose(Cycle from, const DramTiming& timing) {
  Follow(from);
  const __m128i begin = AllLanes(Relative(from)), one = AllLanes(1);
  const __m128i read_gate = AllLanes(Wait(timing.all_columns_at(false), from)), activate_gate = AllLanes(Wait(timing.activate_at(), from));
  const BankChoice first = FirstBank(steps_, order_, [=, this](std::uint32_t step) {
    const __m128i reads = LanesOf(reads_, step);
    const __m128i at = _mm_or_si128(_mm_and_si128(reads, LanesOf(column_at_, step)), _mm_andnot_si128(reads, LanesOf(row_at_, step)));
    const __m128i gate = _mm_or_si128(_mm_and_si128(reads, read_gate), _mm_and_si128(LanesOf(closed_, step), activate_gate));
    const __m128i wait = _mm_max_epi16(_mm_subs_epu16(at, begin), gate);
    return _mm_add_epi16(_mm_add_epi16(wait, wait), _mm_add_epi16(one, reads));
  });
  if (has_write_ != 0) {
    const __m128i gate = AllLanes(Wait(timing.all_columns_at(true), from));
    const BankChoice write = FirstBank(steps_, write_order_, [=, this](std::uint32_t step) {
      const __m128i wait = _mm_max_epi16(_mm_subs_epu16(LanesOf(column_at_, step), begin), gate);
      return _mm_add_epi16(wait, wait);
    });
    if (write.key < first.key || (write.key == first.key && write_order_[write.bank] < order_[first.bank])) {
      return {.kind = DramChoice::Kind::kColumn,
              .bank = static_cast<std::uint16_t>(write.bank),
              .slot = banks_[write.bank][1].hit,
              .at = from + write.key / 2};
    }
  }
  if (first.key == kNoLane) return {};
  return {.kind = (first.key & 1) != 0 ? DramChoice::Kind::kRow : DramChoice::Kind::kColumn,
          .bank = static_cast<std::uint16_t>(first.bank),
          .slot = first_[first.bank],
          .at = from + first.key / 2};
}

}  // namespace gridloom::timing
