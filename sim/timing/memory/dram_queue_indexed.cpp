// FR-FCFS with an index: per bank and direction a list in order of arrival, and the first entry of it whose row is open. A decision
// looks at the banks that have entries and at no list.
#include <algorithm>
#include <array>
#include <bit>

#include "sim/timing/memory/dram_queue.h"

namespace gridloom::timing {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Candidates for a command as one number, so that the best is found without branches, which would be mispredicted: from the top the cycles
/// until the command may be given, the order of the entry's arrival, its bank. The orders of a channel suffice for 10^12 requests,
/// the cycles for the times that device files may have (below 2^14 each).
using Key = std::uint64_t;
constexpr unsigned kBankBits = 6, kOrderBits = 40;
constexpr Key kNoKey = ~Key{0};

constexpr Key KeyOf(const DramEntry& entry) { return entry.order << kBankBits | entry.bank; }
constexpr Key Later(Key key, Cycle wait) { return key | wait << (kBankBits + kOrderBits); }
constexpr Cycle WaitOf(Key key) { return key >> (kBankBits + kOrderBits); }
constexpr std::uint32_t BankOf(Key key) { return key & ((1u << kBankBits) - 1); }

class IndexedDramQueue final : public DramQueue {
 public:
  /// With a place for the bank of kNoKey, which is looked up, too.
  IndexedDramQueue(std::uint32_t capacity, std::uint32_t banks) : slots_(capacity), banks_(std::max(banks, BankOf(kNoKey) + 1)) {
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
    if (bank.oldest == kNone) SetOldest(bank, entry.bank, index);
    if (timing.open_row(entry.bank) == entry.row) {
      if (list.hit == kNone) SetHit(list, index, entry.bank, entry.writes);
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
    Bank& bank = banks_[number];
    List& list = bank.lists[slot.entry.writes];
    SetHit(list, FirstHit(slot.next, timing.open_row(number)), number, slot.entry.writes);
    (slot.previous == kNone ? list.head : slots_[slot.previous].next) = slot.next;
    (slot.next == kNone ? list.tail : slots_[slot.next].previous) = slot.previous;
    slot.next = free_;
    free_ = index;
    if (bank.oldest == index) SetOldest(bank, number, Older(bank.lists[0].head, bank.lists[1].head));
    if (bank.oldest == kNone || ((hits_[0] | hits_[1]) >> number & 1) != 0) return;
    misses_ |= std::uint64_t{1} << number;
    EntersPrecharge(number, timing);
  }

  void RowOpened(std::uint32_t number, std::uint32_t row) override {
    for (const bool writes : {false, true}) {
      List& list = banks_[number].lists[writes];
      SetHit(list, FirstHit(list.head, row), number, writes);
    }
    misses_ &= ~((hits_[0] | hits_[1]) & std::uint64_t{1} << number);
  }

  void RowClosed(std::uint32_t number) override { LeavesPrecharge(number); }

  DramChoice Choose(Cycle from, const DramTiming& timing) override {
    const Key read = BestColumn(false, from, timing), write = BestColumn(true, from, timing);
    const Key column = std::min(read, write);
    const Cycle column_at = column == kNoKey ? kNever : from + WaitOf(column);
    if (column_at > from) {
      const DramChoice row = BestRow(from, column_at, timing);
      if (row.at < column_at) return row;
    }
    if (column == kNoKey) return {};
    return {.kind = DramChoice::Kind::kColumn,
            .bank = static_cast<std::uint16_t>(BankOf(column)),
            .slot = banks_[BankOf(column)].lists[write < read].hit,
            .at = column_at};
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
  struct Bank {
    std::array<List, 2> lists;     // reads, writes
    std::uint32_t oldest = kNone;  // entry
  };

  Key BestColumn(bool writes, Cycle from, const DramTiming& timing) const {
    Key best = kNoKey;
    if (hits_[writes] == 0) return best;
    const Cycle gate = std::max(from, timing.all_columns_at(writes));
    for (std::uint64_t rest = hits_[writes]; rest != 0; rest &= rest - 1) {
      const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
      best = std::min(best, Later(hit_key_[writes][bank], std::max(gate, timing.bank_column_at(bank)) - from));
    }
    return best;
  }

  /// Activations are looked at when they may come before a column command given at `column_at`.
  DramChoice BestRow(Cycle from, Cycle column_at, const DramTiming& timing) {
    Key key = oldest_key_[precharge_bank_];
    Cycle at = precharge_at_;
    if (!precharge_known_ || at < from) {
      key = BestOf(misses_ & ~timing.closed(), from, timing);
      at = key == kNoKey ? kNever : from + WaitOf(key);
      precharge_bank_ = BankOf(key);
      precharge_at_ = at;
      precharge_known_ = at > from;  // else it depends on `from`
    }
    const Cycle activations = std::max(from, timing.activate_at());
    if (activations < column_at && activations <= at) {
      const Key activation = BestOf(misses_ & timing.closed(), activations, timing);
      const Cycle activation_at = activation == kNoKey ? kNever : activations + WaitOf(activation);
      // The key of the cached precharge has no wait in it.
      const bool older = activation << kWaitBits < key << kWaitBits;
      if (activation_at < at || (activation_at == at && activation != kNoKey && older)) {
        key = activation;
        at = activation_at;
      }
    }
    const std::uint32_t bank = BankOf(key);
    return {.kind = DramChoice::Kind::kRow, .bank = static_cast<std::uint16_t>(bank), .slot = banks_[bank].oldest, .at = at};
  }

  /// The first row command among `banks`.
  Key BestOf(std::uint64_t banks, Cycle from, const DramTiming& timing) const {
    Key best = kNoKey;
    for (std::uint64_t rest = banks; rest != 0; rest &= rest - 1) {
      const auto bank = static_cast<std::uint32_t>(std::countr_zero(rest));
      best = std::min(best, Later(oldest_key_[bank], std::max(from, timing.bank_row_at(bank)) - from));
    }
    return best;
  }

  /// The best precharge, as long as it is still to come, is the same for every `from`: it is kept until its bank, or an earlier one,
  /// changes.
  void EntersPrecharge(std::uint32_t bank, const DramTiming& timing) {
    if ((timing.closed() >> bank & 1) != 0) return;
    const Cycle at = timing.bank_row_at(bank);
    if (at > precharge_at_ || (at == precharge_at_ && oldest_key_[bank] > oldest_key_[precharge_bank_])) return;
    precharge_at_ = at;
    precharge_bank_ = bank;
  }
  void LeavesPrecharge(std::uint32_t bank) { precharge_known_ = precharge_known_ && precharge_bank_ != bank; }

  std::uint32_t FirstHit(std::uint32_t slot, std::uint32_t row) const {
    while (slot != kNone && slots_[slot].entry.row != row) slot = slots_[slot].next;
    return slot;
  }
  void SetHit(List& list, std::uint32_t slot, std::uint32_t bank, bool writes) {
    const std::uint64_t bit = std::uint64_t{1} << bank;
    list.hit = slot;
    hits_[writes] = slot == kNone ? hits_[writes] & ~bit : hits_[writes] | bit;
    if (slot != kNone) hit_key_[writes][bank] = KeyOf(slots_[slot].entry);
  }
  std::uint32_t Older(std::uint32_t a, std::uint32_t b) const {
    if (a == kNone || b == kNone) return std::min(a, b);
    return slots_[a].entry.order < slots_[b].entry.order ? a : b;
  }
  void SetOldest(Bank& bank, std::uint32_t number, std::uint32_t slot) {
    bank.oldest = slot;
    if (slot != kNone) oldest_key_[number] = KeyOf(slots_[slot].entry);
    else misses_ &= ~(std::uint64_t{1} << number);
  }
  void Grow() {
    free_ = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }

  static constexpr unsigned kWaitBits = 64 - kBankBits - kOrderBits;
  using ByBank = std::array<Key, 1u << kBankBits>;
  std::vector<Slot> slots_;
  std::vector<Bank> banks_;
  std::array<ByBank, 2> hit_key_{};      // of the entries List::hit of reads, of writes
  ByBank oldest_key_{};                  // of the entries Bank::oldest
  std::array<std::uint64_t, 2> hits_{};  // banks with a read, a write of the open row
  std::uint64_t misses_ = 0;             // banks with entries, none of the open row
  std::uint32_t free_ = kNone;
  std::uint32_t precharge_bank_ = 0;  // if known: of the open ones among `misses_`, the first that may be closed, of several the oldest
  Cycle precharge_at_ = kNever;       // then
  bool precharge_known_ = false;
};

}  // namespace

std::unique_ptr<DramQueue> MakeIndexedDramQueue(std::uint32_t capacity, std::uint32_t banks) {
  return std::make_unique<IndexedDramQueue>(capacity, banks);
}

}  // namespace gridloom::timing
