#include "sim/timing/memory/mshr.h"

#include <bit>

#include "rewriter/support/check.h"

namespace gridloom::timing {

MshrTable::MshrTable(std::uint32_t entries, std::uint32_t merges, bool plain)
    : merges_(merges), plain_(plain), entries_(entries) {
  for (std::uint32_t i = entries; i-- > 0;) {
    entries_[i].next = free_;
    free_ = static_cast<std::uint16_t>(i);
  }
  // Four times the entries: a line that nobody has asked for mostly finds no chain.
  const std::size_t slots = std::bit_ceil(std::size_t{entries} * 4);
  chains_.assign(slots, kNone);
  shift_ = static_cast<unsigned>(64 - std::countr_zero(slots));
}

std::uint16_t MshrTable::Find(std::uint64_t key) const {
  if (plain_) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].key == key) return static_cast<std::uint16_t>(i);
    }
    return kNone;
  }
  std::uint16_t entry = chains_[Home(key)];
  while (entry != kNone && entries_[entry].key != key) entry = entries_[entry].next;
  return entry;
}

std::uint16_t MshrTable::Allocate(std::uint64_t key) {
  const std::uint16_t index = free_;
  Entry& entry = entries_[index];
  free_ = entry.next;
  entry.key = key;
  entry.load = kNoLoad;
  entry.others = kNoWaiter;
  entry.outstanding = entry.missing = 0;
  ++used_;
  if (key != kAnonymous && !plain_) entry.next = std::exchange(chains_[Home(key)], index);
  return index;
}

std::uint32_t MshrTable::Waiters(const Entry& entry) const {
  std::uint32_t count = entry.load == kNoLoad ? 0 : 1;
  for (std::uint16_t index = entry.others; index != kNoWaiter; index = waiters_[index].next) ++count;
  return count;
}

void MshrTable::AddWaiter(std::uint16_t index, std::uint32_t load, std::uint8_t sectors) {
  Entry& entry = entries_[index];
  entry.outstanding |= sectors;
  if (entry.load != kNoLoad || entry.others != kNoWaiter)
    return AddOther(entry, {.load = static_cast<std::uint16_t>(load), .next = kNoWaiter, .missing = sectors});
  entry.load = static_cast<std::uint16_t>(load);
  entry.missing = sectors;
}

void MshrTable::AddOther(Entry& entry, const Waiter& waiter) {
  std::uint16_t index = free_waiter_;
  if (index == kNoWaiter) {
    GL_CHECK(waiters_.size() < kNoWaiter, "65535 loads wait for the lines of an SM");
    index = static_cast<std::uint16_t>(waiters_.size());
    waiters_.emplace_back();
  } else {
    free_waiter_ = waiters_[index].next;
  }
  waiters_[index] = waiter;
  if (entry.others == kNoWaiter) {
    entry.others = index;
    return;
  }
  std::uint16_t last = entry.others;
  while (waiters_[last].next != kNoWaiter) last = waiters_[last].next;
  waiters_[last].next = index;
}

void MshrTable::Free(std::uint16_t index) {
  Entry& entry = entries_[index];
  if (entry.key != kAnonymous && !plain_) {
    std::uint16_t& first = chains_[Home(entry.key)];
    if (first == index) {
      first = entry.next;
    } else {
      std::uint16_t before = first;
      while (entries_[before].next != index) before = entries_[before].next;
      entries_[before].next = entry.next;
    }
  }
  entry.key = kFree;
  entry.next = free_;
  free_ = index;
  --used_;
}

}  // namespace gridloom::timing
