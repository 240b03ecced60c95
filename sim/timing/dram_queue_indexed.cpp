// FR-FCFS with an index: per bank and direction a list in order of arrival, and the first entry of it whose row is open. A decision
// looks at the banks that have entries, not at the entries.
#include <algorithm>
#include <array>
#include <bit>

#include "sim/timing/dram_queue.h"

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
    for (const bool writes : {false, true}) {
      List& list = ListOf(bank, writes);
      list.hit = FirstHit(list.head, timing.open_row(bank));
    }
    Mark(bank);
  }

  DramChoice Choose(Cycle now, const DramTiming& timing) const override {
    DramChoice choice;
    std::uint64_t best = ~std::uint64_t{0};
    for (const bool writes : {false, true}) {
      for (std::uint64_t rest = hits_[writes]; rest != 0; rest &= rest - 1) {
        const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
        const std::uint32_t slot = ListOf(bank, writes).hit;
        if (slots_[slot].entry.order >= best || timing.ColumnAt(bank, writes) > now) continue;
        best = slots_[slot].entry.order;
        choice = {DramChoice::Kind::kColumn, slot};
      }
    }
    if (choice.kind == DramChoice::Kind::kColumn) return choice;
    // No closed bank can be opened before activate_at().
    std::uint64_t rest = timing.activate_at() > now ? misses_ & ~timing.closed() : misses_;
    std::uint32_t picked = kNone;
    for (; rest != 0; rest &= rest - 1) {
      const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
      const bool better = timing.bank_row_at(bank) <= now && oldest_[bank].order < best;
      best = better ? oldest_[bank].order : best;
      picked = better ? oldest_[bank].slot : picked;
    }
    if (picked != kNone) choice = {DramChoice::Kind::kRow, picked};
    return choice;
  }

  Cycle Next(Cycle now, const DramTiming& timing) const override {
    Cycle next = kNever;
    const auto look = [&](std::uint64_t banks, const auto& when) {
      for (; banks != 0 && next > now; banks &= banks - 1) next = std::min(next, when(static_cast<std::uint32_t>(std::countr_zero(banks))));
    };
    look(misses_ & ~timing.closed(), [&](std::uint32_t bank) { return timing.bank_row_at(bank); });
    // What holds for all columns and for all activations mostly spares a look at the banks.
    if (timing.column_at() < next) {
      for (const bool writes : {false, true}) look(hits_[writes], [&](std::uint32_t bank) { return timing.ColumnAt(bank, writes); });
    }
    if (timing.activate_at() < next) look(misses_ & timing.closed(), [&](std::uint32_t bank) { return timing.RowAt(bank); });
    return std::max(next, now);
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
    Oldest& oldest = oldest_[bank];
    oldest = {};
    for (const std::uint32_t head : {reads.head, writes.head}) {
      if (head != kNone && slots_[head].entry.order < oldest.order) oldest = {slots_[head].entry.order, head};
    }
    set(misses_, oldest.slot != kNone && reads.hit == kNone && writes.hit == kNone);
  }
  void Grow() {
    free_ = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }

  std::vector<Slot> slots_;
  std::vector<List> lists_;
  std::uint32_t free_ = kNone;
  std::vector<Oldest> oldest_;           // by bank
  std::array<std::uint64_t, 2> hits_{};  // banks with a read, a write of the open row
  std::uint64_t misses_ = 0;             // banks with entries, none of the open row
};

}  // namespace

std::unique_ptr<DramQueue> MakeIndexedDramQueue(std::uint32_t capacity, std::uint32_t banks) {
  return std::make_unique<IndexedDramQueue>(capacity, banks);
}

}  // namespace gridloom::timing
