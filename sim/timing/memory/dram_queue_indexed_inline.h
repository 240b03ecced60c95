// What the channel calls for each command, to be compiled into it. Only for files of this library, which is compiled
// for SSE4.1.
#pragma once

#include <algorithm>

#include "rewriter/support/check.h"
#include "sim/timing/memory/dram_queue_indexed.h"

namespace gridloom::timing {

inline DramEntry IndexedDramQueue::entry(std::uint32_t index) const {
  const Slot& slot = slots_[index];
  return {.row = slot.row,
          .tag = slot.tag,
          .bank = slot.bank,
          .bursts = static_cast<std::uint8_t>(slot.bursts_and_writes >> 1),
          .writes = slot.writes()};
}

inline void IndexedDramQueue::UpdateCandidates(std::uint32_t number, const DramTiming& timing) {
  const Bank& bank = banks_[number];
  const std::uint16_t oldest = bank[slots_[bank[1].head].order < slots_[bank[0].head].order].head;
  const std::uint16_t first = (bank[0].hit | bank[1].hit) == kNone ? oldest : bank[0].hit;
  first_[number] = first;
  SetLane(order_, number, slots_[first].order);
  const std::uint16_t row_gate = timing.open_row(number) == DramTiming::kClosed ? kActivateGate : kPrechargeGate;
  const auto row_at = static_cast<std::uint16_t>(first == kNone ? kNoLane : Doubled(timing.bank_row_at(number)) + 1);
  // Without a branch: all bits, if it is a read of the open row.
  const auto reads = static_cast<std::uint16_t>(-static_cast<int>(bank[0].hit != kNone));
  SetLane(gate_, number, static_cast<std::uint16_t>((kReadGate & reads) | (row_gate & ~reads)));
  SetLane(at_, number,
          static_cast<std::uint16_t>((Doubled(timing.bank_column_at(number)) & reads) | (row_at & ~reads)));
  const std::uint64_t bit = std::uint64_t{1} << number;
  if (bank[1].hit == kNone && (has_write_ & bit) == 0) return;
  SetLane(write_order_, number, slots_[bank[1].hit].order);
  has_write_ = bank[1].hit == kNone ? has_write_ & ~bit : has_write_ | bit;
}

inline Cycle IndexedDramQueue::Add(const DramEntry& entry, const DramTiming& timing) {
  const std::uint16_t order = NextOrder(entry.bank, timing);
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
  UpdateCandidates(entry.bank, timing);
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
  Follow(now);
  UpdateCandidates(number, timing);
  const BankLanes& group = groups_[timing.group(number)];
  const __m128i group_at = AllLanes(Doubled(timing.group_column_at(number))), reads = AllLanes(kReadGate);
  for (std::uint32_t step = 0; step < 2 * blocks_; ++step) {
    const __m128i own = _mm_and_si128(LanesOf(group, step), group_at);
    SetLanes(column_at_, step, _mm_max_epu16(LanesOf(column_at_, step), own));
    SetLanes(at_, step,
             _mm_max_epu16(LanesOf(at_, step), _mm_and_si128(own, _mm_cmpeq_epi16(LanesOf(gate_, step), reads))));
  }
}

inline void IndexedDramQueue::RowOpened(Cycle now, std::uint32_t opener, const DramTiming& timing) {
  const Slot& slot = slots_[opener];
  const std::uint32_t number = slot.bank;
  const bool writes = slot.writes();
  // The bank's oldest entry; nobody in its list is before it.
  banks_[number][writes].hit = static_cast<std::uint16_t>(opener);
  List& others = banks_[number][!writes];
  others.hit = FirstHit(number, !writes, others.head, slot.row);
  Follow(now);
  UpdateCandidates(number, timing);
  SetLane(column_at_, number, Doubled(timing.bank_column_at(number)));
}

inline void IndexedDramQueue::RowClosed(Cycle now, std::uint32_t number, const DramTiming& timing) {
  Follow(now);
  UpdateCandidates(number, timing);
}

/// Keys are twice the cycle in which a command may be given, relative to base_, and one more for row commands.
[[gnu::always_inline]] inline DramChoice IndexedDramQueue::Choose(Cycle from, const DramTiming& timing) {
  Follow(from);
  const auto gate = [&](Cycle at) { return Doubled(std::max(at, from)); };
  const __m128i gates = _mm_setr_epi16(static_cast<short>(gate(timing.all_columns_at(false))),
                                       static_cast<short>(gate(timing.activate_at()) + 1),
                                       static_cast<short>(gate(0) + 1), 0, 0, 0, 0, 0);
  const BankChoice first = FirstBank(blocks_, order_, [=, this](std::uint32_t step) {
    return _mm_max_epu16(LanesOf(at_, step), _mm_shuffle_epi8(gates, LanesOf(gate_, step)));
  });
  if (has_write_ != 0) {
    const __m128i write_gate = AllLanes(gate(timing.all_columns_at(true))), none = AllLanes(kNoLane);
    const BankChoice write = FirstBank(blocks_, write_order_, [=, this](std::uint32_t step) {
      const __m128i absent = _mm_cmpeq_epi16(LanesOf(write_order_, step), none);
      return _mm_or_si128(_mm_max_epu16(LanesOf(column_at_, step), write_gate), absent);
    });
    if (write.key < first.key || (write.key == first.key && write.order < first.order)) {
      return {.kind = DramChoice::Kind::kColumn,
              .bank = static_cast<std::uint8_t>(write.bank),
              .slot = banks_[write.bank][1].hit,
              .at = base_ + write.key / 2};
    }
  }
  if (first.key == kNoLane) return {};
  return {.kind = (first.key & 1) != 0 ? DramChoice::Kind::kRow : DramChoice::Kind::kColumn,
          .bank = static_cast<std::uint8_t>(first.bank),
          .slot = first_[first.bank],
          .at = base_ + first.key / 2};
}

}  // namespace gridloom::timing
