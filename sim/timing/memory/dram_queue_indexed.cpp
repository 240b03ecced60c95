#include "sim/timing/memory/dram_queue_indexed_inline.h"

namespace gridloom::timing {

IndexedDramQueue::IndexedDramQueue(std::uint32_t capacity, std::uint32_t banks, std::uint32_t bank_groups)
    : blocks_((banks + kBanksPerBlock - 1) / kBanksPerBlock),
      slots_(capacity + 1),
      banks_(banks),
      with_hash_(banks * 2 * kRowHashes) {
  for (std::uint32_t group = 0; group < bank_groups; ++group) groups_.push_back(EveryBank(group, bank_groups, banks));
  order_.lanes.fill(kNoLane);
  write_order_.lanes.fill(kNoLane);
  at_.lanes.fill(kNoLane);
  gate_.lanes.fill(kActivateGate);
  for (std::uint32_t i = capacity; i > 0; --i) {
    slots_[i].next = free_;
    free_ = static_cast<std::uint16_t>(i);
  }
}

/// Numbers run out after some four thousand arrivals: then the entries that are there get new ones, in the same order.
std::uint16_t IndexedDramQueue::NextOrder(std::uint32_t bank_of_next, const DramTiming& timing) {
  if (next_order_ < kOrders) return OrderOf(next_order_++, bank_of_next);
  std::vector<std::uint16_t> entries;
  for (const Bank& bank : banks_) {
    for (const List& list : bank) {
      for (std::uint16_t index = list.head; index != kNone; index = slots_[index].next) entries.push_back(index);
    }
  }
  std::ranges::sort(entries, {}, [&](std::uint16_t index) { return slots_[index].order; });
  next_order_ = 0;
  for (const std::uint16_t index : entries) slots_[index].order = OrderOf(next_order_++, slots_[index].bank);
  for (std::uint32_t bank = 0; bank < banks_.size(); ++bank) UpdateCandidates(bank, timing);
  return OrderOf(next_order_++, bank_of_next);
}

void IndexedDramQueue::MoveBase(Cycle now) {
  const auto by = static_cast<std::uint16_t>(2 * std::min<Cycle>(now - base_, kNoLane / 2));
  for (BankLanes* lanes : {&column_at_, &at_}) {
    // What is in the past stays there; row commands keep their bit.
    for (std::uint16_t& at : lanes->lanes)
      at = at == kNoLane ? kNoLane : static_cast<std::uint16_t>(at > by ? at - by : at & 1);
  }
  base_ = now;
}

}  // namespace gridloom::timing
