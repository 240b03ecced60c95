// FR-FCFS with an index: per bank and direction a list in order of arrival, and the first entry of it whose row is open; the banks in
// the order of their oldest entries. A decision looks at few banks and at no list.
#include <algorithm>
#include <array>
#include <bit>

#include "sim/timing/memory/dram_queue.h"

namespace gridloom::timing {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

class IndexedDramQueue final : public DramQueue {
 public:
  IndexedDramQueue(std::uint32_t capacity, std::uint32_t banks) : slots_(capacity), banks_(banks) {
    for (std::uint32_t i = capacity; i-- > 0;) {
      slots_[i].next = free_;
      free_ = i;
    }
  }

  const DramEntry& entry(std::uint32_t slot) const override { return slots_[slot].entry; }

  Cycle Add(const DramEntry& entry, const DramTiming& timing) override {
    if (free_ == kNone) Grow();
    const std::uint32_t index = free_;
    Slot& slot = slots_[index];
    free_ = slot.next;
    Bank& bank = banks_[entry.bank];
    const std::uint64_t bit = std::uint64_t{1} << entry.bank;
    List& list = bank.lists[entry.writes];
    slot = {.entry = entry, .previous = list.tail, .next = kNone};
    (list.tail == kNone ? list.head : slots_[list.tail].next) = index;
    list.tail = index;
    if (bank.oldest == kNone) {
      bank.oldest = index;
      bank.order = entry.order;
      by_age_[used_++] = static_cast<std::uint8_t>(entry.bank);
    }
    if (timing.open_row(entry.bank) == entry.row) {
      if (list.hit == kNone) SetHit(list, index, entry.writes, bit);
      misses_ &= ~bit;
      LeavesPrecharge(entry.bank);
      return timing.ColumnAt(entry.bank, entry.writes);
    }
    // Its bank keeps its row while other entries need it.
    if (((hits_[0] | hits_[1]) & bit) != 0) return kNever;
    if ((misses_ & bit) == 0) {
      misses_ |= bit;
      EntersPrecharge(entry.bank, timing);
    }
    return timing.RowAt(entry.bank);
  }

  void Remove(std::uint32_t index, const DramTiming& timing) override {
    Slot& slot = slots_[index];
    const std::uint32_t number = slot.entry.bank;
    const std::uint64_t bit = std::uint64_t{1} << number;
    Bank& bank = banks_[number];
    List& list = bank.lists[slot.entry.writes];
    SetHit(list, FirstHit(slot.next, timing.open_row(number)), slot.entry.writes, bit);
    (slot.previous == kNone ? list.head : slots_[slot.previous].next) = slot.next;
    (slot.next == kNone ? list.tail : slots_[slot.next].previous) = slot.previous;
    slot.next = free_;
    free_ = index;
    if (bank.oldest == index) NextOldest(bank, number);
    if (bank.oldest == kNone || ((hits_[0] | hits_[1]) & bit) != 0) return;
    misses_ |= bit;
    EntersPrecharge(number, timing);
  }

  void RowOpened(std::uint32_t number, std::uint32_t row) override {
    const std::uint64_t bit = std::uint64_t{1} << number;
    for (const bool writes : {false, true}) {
      List& list = banks_[number].lists[writes];
      SetHit(list, FirstHit(list.head, row), writes, bit);
    }
    if (((hits_[0] | hits_[1]) & bit) != 0) misses_ &= ~bit;
  }

  void RowClosed(std::uint32_t number) override { LeavesPrecharge(number); }

  DramChoice Choose(Cycle from, const DramTiming& timing) override {
    const Best column = BestColumn(from, timing);
    if (column.at == from) return Choice(DramChoice::Kind::kColumn, column);
    Best row = BestPrecharge(from, timing);
    const Cycle activations = std::max(from, timing.activate_at());
    if (activations < column.at && activations <= row.at) row.Offer(BestActivation(activations, timing));
    if (row.at < column.at) return Choice(DramChoice::Kind::kRow, row);
    return column.at == kNever ? DramChoice{} : Choice(DramChoice::Kind::kColumn, column);
  }

 private:
  struct Slot {
    DramEntry entry;
    std::uint32_t previous = kNone, next = kNone;
  };
  struct List {
    std::uint32_t head = kNone, tail = kNone;
    std::uint32_t hit = kNone;  // first entry of the open row
    std::uint64_t hit_order = 0;
  };
  struct Bank {
    std::array<List, 2> lists;     // reads, writes
    std::uint32_t oldest = kNone;  // entry
    std::uint64_t order = 0;       // of the oldest
  };

  /// The first command; of several at one time, the oldest entry's.
  struct Best {
    Cycle at = kNever;
    std::uint64_t order = ~std::uint64_t{0};
    std::uint32_t slot = kNone;
    std::uint32_t bank = 0;
    /// Written without a branch, which would be mispredicted half of the time.
    void Offer(const Best& other) {
      const bool better = (other.at < at) | ((other.at == at) & (other.order < order));
      at = better ? other.at : at;
      order = better ? other.order : order;
      slot = better ? other.slot : slot;
      bank = better ? other.bank : bank;
    }
  };
  static DramChoice Choice(DramChoice::Kind kind, const Best& best) {
    return {.kind = kind, .bank = static_cast<std::uint16_t>(best.bank), .slot = best.slot, .at = best.at};
  }

  Best BestColumn(Cycle from, const DramTiming& timing) const {
    Best best;
    for (const bool writes : {false, true}) {
      for (std::uint64_t rest = hits_[writes]; rest != 0; rest &= rest - 1) {
        const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
        const List& list = banks_[bank].lists[writes];
        best.Offer({std::max(from, timing.ColumnAt(bank, writes)), list.hit_order, list.hit, bank});
      }
    }
    return best;
  }

  /// Few open banks have entries of other rows only, since these are closed as soon as they may be. As long as the first of them is
  /// still to come, it is the same for every `from`.
  Best BestPrecharge(Cycle from, const DramTiming& timing) {
    if (precharge_known_ && precharge_.at >= from) return precharge_;
    Best best;
    precharge_ = {};
    for (std::uint64_t rest = misses_ & ~timing.closed(); rest != 0; rest &= rest - 1) {
      const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
      precharge_.Offer(Precharge(bank, timing.bank_row_at(bank)));
      best.Offer(Precharge(bank, std::max(from, timing.bank_row_at(bank))));
    }
    precharge_known_ = true;
    return best;
  }
  Best Precharge(std::uint32_t bank, Cycle at) const { return {at, banks_[bank].order, banks_[bank].oldest, bank}; }
  void EntersPrecharge(std::uint32_t bank, const DramTiming& timing) {
    if ((timing.closed() >> bank & 1) == 0) precharge_.Offer(Precharge(bank, timing.bank_row_at(bank)));
  }
  void LeavesPrecharge(std::uint32_t bank) { precharge_known_ = precharge_known_ && precharge_.bank != bank; }

  /// Most closed banks wait for what holds for all activations: the first of them by age that waits for nothing else.
  Best BestActivation(Cycle from, const DramTiming& timing) const {
    Best best;
    const std::uint64_t closed = misses_ & timing.closed();
    if (closed == 0) return best;
    for (std::uint32_t i = 0; i < used_; ++i) {
      const std::uint32_t bank = by_age_[i];
      if ((closed >> bank & 1) == 0) continue;
      const Cycle at = std::max(from, timing.bank_row_at(bank));
      if (at < best.at) best = {at, banks_[bank].order, banks_[bank].oldest, bank};
      if (at == from) break;
    }
    return best;
  }

  std::uint32_t FirstHit(std::uint32_t slot, std::uint32_t row) const {
    while (slot != kNone && slots_[slot].entry.row != row) slot = slots_[slot].next;
    return slot;
  }
  void SetHit(List& list, std::uint32_t slot, bool writes, std::uint64_t bit) {
    list.hit = slot;
    if (slot == kNone) {
      hits_[writes] &= ~bit;
    } else {
      hits_[writes] |= bit;
      list.hit_order = slots_[slot].entry.order;
    }
  }
  /// The bank's oldest entry has gone: the bank takes its place among the others anew, which is never before its old one.
  void NextOldest(Bank& bank, std::uint32_t number) {
    bank.oldest = kNone;
    bank.order = ~std::uint64_t{0};
    for (const List& list : bank.lists) {
      if (list.head != kNone && slots_[list.head].entry.order < bank.order) {
        bank.oldest = list.head;
        bank.order = slots_[list.head].entry.order;
      }
    }
    std::uint32_t place = 0;
    while (by_age_[place] != number) ++place;
    for (; place + 1 < used_ && banks_[by_age_[place + 1]].order < bank.order; ++place) by_age_[place] = by_age_[place + 1];
    by_age_[place] = static_cast<std::uint8_t>(number);
    if (bank.oldest == kNone) --used_;
  }
  void Grow() {
    free_ = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }

  std::vector<Slot> slots_;
  std::vector<Bank> banks_;
  std::uint32_t free_ = kNone;
  std::uint32_t used_ = 0;                 // of by_age_
  std::array<std::uint8_t, 64> by_age_{};  // banks with entries, the one with the oldest entry first
  std::array<std::uint64_t, 2> hits_{};    // banks with a read, a write of the open row
  std::uint64_t misses_ = 0;               // banks with entries, none of the open row
  Best precharge_;                         // if known: the first and oldest of them that are open
  bool precharge_known_ = false;
};

}  // namespace

std::unique_ptr<DramQueue> MakeIndexedDramQueue(std::uint32_t capacity, std::uint32_t banks) {
  return std::make_unique<IndexedDramQueue>(capacity, banks);
}

}  // namespace gridloom::timing
