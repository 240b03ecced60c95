// Miss status holding registers: lines that an SM has asked for, and who waits for them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/timing/aligned.h"

namespace gridloom::timing {

/// Entries are found by key (line and cache). Those with key kAnonymous cannot be found again: each access has its own.
class MshrTable {
 public:
  static constexpr std::uint64_t kAnonymous = ~std::uint64_t{0};
  static constexpr std::uint16_t kNone = 0xffff;

  MshrTable() = default;
  /// `plain` searches all entries in place of the hash table: the reference for it.
  MshrTable(std::uint32_t entries, std::uint32_t merges, bool plain);

  bool full() const { return free_ == kNone; }
  std::uint32_t used() const { return used_; }
  std::uint16_t Find(std::uint64_t key) const;
  /// Only when not full().
  std::uint16_t Allocate(std::uint64_t key);
  bool CanMerge(std::uint16_t entry) const { return entries_[entry].waiters < merges_; }

  std::uint64_t key(std::uint16_t entry) const { return entries_[entry].key; }
  /// Sectors that have been asked for and have not come.
  std::uint8_t outstanding(std::uint16_t entry) const { return entries_[entry].outstanding; }
  /// `load` (below 2^32 - 1) waits for the sectors, which are outstanding from now on if they were not before.
  void AddWaiter(std::uint16_t entry, std::uint32_t load, std::uint8_t sectors);

  /// Sectors have come. Calls done(load) for each waiter that misses none any more, in the order in which they came, and frees
  /// the entry when nothing is outstanding.
  template <typename Done>
  void Fill(std::uint16_t entry, std::uint8_t sectors, const Done& done) {
    Entry& e = entries_[entry];
    e.outstanding &= static_cast<std::uint8_t>(~sectors);
    if (e.first.load != kNoLoad && (e.first.missing &= static_cast<std::uint8_t>(~sectors)) == 0) {
      done(std::exchange(e.first.load, kNoLoad));
      --e.waiters;
    }
    if (e.others != kNoWaiter) FillOthers(e, sectors, done);
    if (e.outstanding == 0) Free(entry);
  }

  /// The host may fetch what Fill needs of an entry.
  void Prefetch(std::uint16_t entry) const { __builtin_prefetch(&entries_[entry]); }

 private:
  static constexpr std::uint32_t kNoWaiter = ~std::uint32_t{0};
  static constexpr std::uint32_t kNoLoad = ~std::uint32_t{0};
  struct Waiter {
    std::uint32_t load = kNoLoad;
    std::uint8_t missing = 0;
  };
  struct Entry {
    std::uint64_t key = kAnonymous;
    Waiter first;                      // the one that has the line fetched; most lines have no other
    std::uint32_t others = kNoWaiter;  // behind it, in the order in which they came
    std::uint16_t next_free = kNone;
    std::uint16_t waiters = 0;
    std::uint8_t outstanding = 0;
    bool live = false;
  };
  static_assert(sizeof(Entry) == 32);
  struct OtherWaiter {
    Waiter waiter;
    std::uint32_t next = kNoWaiter;
  };

  template <typename Done>
  void FillOthers(Entry& entry, std::uint8_t sectors, const Done& done) {
    std::uint32_t* link = &entry.others;
    while (*link != kNoWaiter) {
      OtherWaiter& other = others_[*link];
      other.waiter.missing &= static_cast<std::uint8_t>(~sectors);
      if (other.waiter.missing != 0) {
        link = &other.next;
        continue;
      }
      done(other.waiter.load);
      const std::uint32_t freed = *link;
      *link = other.next;
      other.next = free_other_;
      free_other_ = freed;
      --entry.waiters;
    }
  }
  void AddOther(Entry& entry, const Waiter& waiter);
  void Free(std::uint16_t entry);
  std::size_t Home(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull) >> shift_; }

  std::uint32_t merges_ = 0, used_ = 0;
  bool plain_ = false;
  AlignedVector<Entry> entries_;
  std::uint16_t free_ = kNone;
  std::vector<OtherWaiter> others_;
  std::uint32_t free_other_ = kNoWaiter;
  std::vector<std::uint16_t> hash_;  // open addressing, a power of two at least twice the entries
  unsigned shift_ = 0;
};

}  // namespace gridloom::timing
