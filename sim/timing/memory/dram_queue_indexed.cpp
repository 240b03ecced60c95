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
  IndexedDramQueue(std::uint32_t capacity, std::uint32_t banks) : slots_(capacity), lists_(std::size_t{banks} * 2), oldest_(banks) {
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
    List& list = ListOf(entry.bank, entry.writes);
    slot = {.entry = entry, .previous = list.tail, .next = kNone};
    (list.tail == kNone ? list.head : slots_[list.tail].next) = index;
    list.tail = index;
    const bool hit = timing.open_row(entry.bank) == entry.row;
    if (hit && list.hit == kNone) list.hit = index;
    Mark(entry.bank);
    if (hit) return timing.ColumnAt(entry.bank, entry.writes);
    // Its bank keeps its row while other entries need it.
    return (misses_ >> entry.bank & 1) != 0 ? timing.RowAt(entry.bank) : kNever;
  }

  void Remove(std::uint32_t index, const DramTiming& timing) override {
    Slot& slot = slots_[index];
    List& list = ListOf(slot.entry.bank, slot.entry.writes);
    if (list.hit == index) list.hit = FirstHit(slot.next, timing.open_row(slot.entry.bank));
    (slot.previous == kNone ? list.head : slots_[slot.previous].next) = slot.next;
    (slot.next == kNone ? list.tail : slots_[slot.next].previous) = slot.previous;
    slot.next = free_;
    free_ = index;
    Mark(slot.entry.bank);
  }

  void RowChanged(std::uint32_t bank, const DramTiming& timing) override {
    const std::uint32_t row = timing.open_row(bank);
    for (const bool writes : {false, true}) {
      List& list = ListOf(bank, writes);
      list.hit = row == DramTiming::kClosed ? kNone : FirstHit(list.head, row);
    }
    Mark(bank);
  }

  DramChoice Choose(Cycle from, const DramTiming& timing) const override {
    const Best column = BestColumn(from, timing);
    if (column.at == from) return {.kind = DramChoice::Kind::kColumn, .slot = column.slot, .at = from};
    Best row = BestPrecharge(from, timing);
    const Cycle activations = std::max(from, timing.activate_at());
    if (activations < column.at && activations <= row.at) row.Offer(BestActivation(activations, timing));
    if (column.at <= row.at) return column.at == kNever ? DramChoice{} : DramChoice{DramChoice::Kind::kColumn, column.slot, column.at};
    return {.kind = DramChoice::Kind::kRow, .slot = row.slot, .at = row.at};
  }

 private:
  struct Slot {
    DramEntry entry;
    std::uint32_t previous = kNone, next = kNone;
  };
  struct List {
    std::uint32_t head = kNone, tail = kNone;
    std::uint32_t hit = kNone;  // first entry of the open row
  };

  /// The first command; of several at one time, the oldest entry's.
  struct Best {
    Cycle at = kNever;
    std::uint64_t order = ~std::uint64_t{0};
    std::uint32_t slot = kNone;
    void Offer(const Best& other) {
      if (other.at < at || (other.at == at && other.order < order)) *this = other;
    }
  };

  Best BestColumn(Cycle from, const DramTiming& timing) const {
    Best best;
    for (const bool writes : {false, true}) {
      for (std::uint64_t rest = hits_[writes]; rest != 0; rest &= rest - 1) {
        const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
        const std::uint32_t slot = ListOf(bank, writes).hit;
        best.Offer({std::max(from, timing.ColumnAt(bank, writes)), slots_[slot].entry.order, slot});
      }
    }
    return best;
  }

  /// Few open banks have entries of other rows only, since these are closed as soon as they may be.
  Best BestPrecharge(Cycle from, const DramTiming& timing) const {
    Best best;
    for (std::uint64_t rest = misses_ & ~timing.closed(); rest != 0; rest &= rest - 1) {
      const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
      best.Offer({std::max(from, timing.bank_row_at(bank)), oldest_[bank].order, oldest_[bank].slot});
    }
    return best;
  }

  /// Most closed banks wait for what holds for all activations: the first of them by age that waits for nothing else.
  Best BestActivation(Cycle from, const DramTiming& timing) const {
    Best best;
    const std::uint64_t banks = misses_ & timing.closed();
    if (banks == 0) return best;
    for (const std::uint8_t bank : by_age_) {
      if ((banks >> bank & 1) == 0) continue;
      const Cycle at = std::max(from, timing.bank_row_at(bank));
      if (at < best.at) best = {at, oldest_[bank].order, oldest_[bank].slot};
      if (at == from) break;
    }
    return best;
  }

  struct Oldest {
    std::uint64_t order = ~std::uint64_t{0};
    std::uint32_t slot = kNone;
  };

  List& ListOf(std::uint32_t bank, bool writes) { return lists_[bank * 2 + (writes ? 1 : 0)]; }
  const List& ListOf(std::uint32_t bank, bool writes) const { return lists_[bank * 2 + (writes ? 1 : 0)]; }

  std::uint32_t FirstHit(std::uint32_t slot, std::uint32_t row) const {
    while (slot != kNone && slots_[slot].entry.row != row) slot = slots_[slot].next;
    return slot;
  }
  /// Brings up to date what is kept about a bank.
  void Mark(std::uint32_t bank) {
    const List &reads = ListOf(bank, false), &writes = ListOf(bank, true);
    const std::uint64_t bit = std::uint64_t{1} << bank;
    const auto set = [&](std::uint64_t& mask, bool value) { mask = value ? mask | bit : mask & ~bit; };
    set(hits_[false], reads.hit != kNone);
    set(hits_[true], writes.hit != kNone);
    Oldest oldest;
    for (const std::uint32_t head : {reads.head, writes.head}) {
      if (head != kNone && slots_[head].entry.order < oldest.order) oldest = {slots_[head].entry.order, head};
    }
    if (oldest.slot != oldest_[bank].slot || oldest.order != oldest_[bank].order) SetOldest(bank, oldest);
    set(misses_, oldest.slot != kNone && reads.hit == kNone && writes.hit == kNone);
  }
  void SetOldest(std::uint32_t bank, Oldest oldest) {
    if (oldest_[bank].slot != kNone) by_age_.erase(std::ranges::find(by_age_, bank));
    oldest_[bank] = oldest;
    if (oldest.slot == kNone) return;
    auto place = by_age_.end();
    while (place != by_age_.begin() && oldest_[*(place - 1)].order > oldest.order) --place;
    by_age_.insert(place, static_cast<std::uint8_t>(bank));
  }
  void Grow() {
    free_ = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }

  std::vector<Slot> slots_;
  std::vector<List> lists_;
  std::uint32_t free_ = kNone;
  std::vector<Oldest> oldest_;           // by bank
  std::vector<std::uint8_t> by_age_;     // banks with entries, the one with the oldest entry first
  std::array<std::uint64_t, 2> hits_{};  // banks with a read, a write of the open row
  std::uint64_t misses_ = 0;             // banks with entries, none of the open row
};

}  // namespace

std::unique_ptr<DramQueue> MakeIndexedDramQueue(std::uint32_t capacity, std::uint32_t banks) {
  return std::make_unique<IndexedDramQueue>(capacity, banks);
}

}  // namespace gridloom::timing
