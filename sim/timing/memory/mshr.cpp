#include "sim/timing/memory/mshr.h"

#include <bit>

namespace gridloom::timing {

MshrTable::MshrTable(std::uint32_t entries, std::uint32_t merges, bool plain) : merges_(merges), plain_(plain), entries_(entries) {
  for (std::uint32_t i = entries; i-- > 0;) {
    entries_[i].others = free_;
    free_ = static_cast<std::uint16_t>(i);
  }
  const std::size_t slots = std::bit_ceil(std::size_t{entries} * 2);
  hash_.assign(slots, kNone);
  shift_ = static_cast<unsigned>(64 - std::countr_zero(slots));
}

std::uint16_t MshrTable::Find(std::uint64_t key) const {
  if (plain_) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].key == key) return static_cast<std::uint16_t>(i);
    }
    return kNone;
  }
  for (std::size_t slot = Home(key);; slot = (slot + 1) & (hash_.size() - 1)) {
    const std::uint16_t entry = hash_[slot];
    if (entry == kNone || entries_[entry].key == key) return entry;
  }
}

std::uint16_t MshrTable::Allocate(std::uint64_t key) {
  const std::uint16_t index = free_;
  Entry& entry = entries_[index];
  free_ = static_cast<std::uint16_t>(entry.others);
  entry = Entry{};
  entry.key = key;
  ++used_;
  if (key != kAnonymous && !plain_) {
    std::size_t slot = Home(key);
    while (hash_[slot] != kNone) slot = (slot + 1) & (hash_.size() - 1);
    hash_[slot] = index;
  }
  return index;
}

std::uint32_t MshrTable::Waiters(const Entry& entry) const {
  std::uint32_t count = entry.load == kNoLoad ? 0 : 1;
  for (std::uint32_t index = entry.others; index != kNoWaiter; index = waiters_[index].next) ++count;
  return count;
}

void MshrTable::AddWaiter(std::uint16_t index, std::uint32_t load, std::uint8_t sectors) {
  Entry& entry = entries_[index];
  entry.outstanding |= sectors;
  if (entry.load != kNoLoad || entry.others != kNoWaiter) return AddOther(entry, {.load = load, .next = kNoWaiter, .missing = sectors});
  entry.load = load;
  entry.missing = sectors;
}

void MshrTable::AddOther(Entry& entry, const Waiter& waiter) {
  std::uint32_t index = free_waiter_;
  if (index == kNoWaiter) {
    index = static_cast<std::uint32_t>(waiters_.size());
    waiters_.emplace_back();
  } else {
    free_waiter_ = waiters_[index].next;
  }
  waiters_[index] = waiter;
  std::uint32_t* link = &entry.others;
  while (*link != kNoWaiter) link = &waiters_[*link].next;
  *link = index;
}

void MshrTable::Free(std::uint16_t index) {
  Entry& entry = entries_[index];
  if (entry.key != kAnonymous && !plain_) {
    // Deletes from the open-addressing table by moving later entries of the run back.
    std::size_t hole = Home(entry.key);
    while (hash_[hole] != index) hole = (hole + 1) & (hash_.size() - 1);
    for (std::size_t slot = (hole + 1) & (hash_.size() - 1); hash_[slot] != kNone; slot = (slot + 1) & (hash_.size() - 1)) {
      const std::size_t home = Home(entries_[hash_[slot]].key);
      const bool movable = ((slot - home) & (hash_.size() - 1)) >= ((slot - hole) & (hash_.size() - 1));
      if (!movable) continue;
      hash_[hole] = hash_[slot];
      hole = slot;
    }
    hash_[hole] = kNone;
  }
  entry.key = kFree;
  entry.others = free_;
  free_ = index;
  --used_;
}

}  // namespace gridloom::timing
