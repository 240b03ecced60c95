// Miss status holding registers: lines that an SM has asked for, and who waits for them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/timing/aligned.h"

namespace gridloom::timing {

/// Entries are found by key (line and cache), below kAnonymous - 1. Those with key kAnonymous cannot be found again:
/// each access has its own.
class MshrTable {
 public:
  static constexpr unsigned kKeyBits = 56;
  static constexpr std::uint64_t kAnonymous = (std::uint64_t{1} << kKeyBits) - 1;
  static constexpr std::uint16_t kNone = 0xffff;
  static constexpr std::uint32_t kMaxLoads = 0xffff;

  MshrTable() = default;
  /// `plain` searches all entries in place of the hash table: the reference for it.
  MshrTable(std::uint32_t entries, std::uint32_t merges, bool plain);

  bool full() const { return free_ == kNone; }
  std::uint32_t used() const { return used_; }
  std::uint16_t Find(std::uint64_t key) const;
  /// Only when not full().
  std::uint16_t Allocate(std::uint64_t key);
  bool CanMerge(std::uint16_t entry) const { return Waiters(entries_[entry]) < merges_; }

  std::uint64_t key(std::uint16_t entry) const { return entries_[entry].key; }
  /// Sectors that have been asked for and have not come.
  std::uint8_t outstanding(std::uint16_t entry) const { return entries_[entry].outstanding; }
  /// `load` (below kMaxLoads) waits for the sectors, which are outstanding from now on if they were not before.
  void AddWaiter(std::uint16_t entry, std::uint32_t load, std::uint8_t sectors);

  /// Sectors have come. Calls done(load) for each waiter that misses none any more, in the order in which they came,
  /// and frees the entry when nothing is outstanding.
  template <typename Done>
  void Fill(std::uint16_t entry, std::uint8_t sectors, const Done& done) {
    Entry& e = entries_[entry];
    const std::uint8_t others = static_cast<std::uint8_t>(~sectors) & 0xf;
    e.outstanding &= others;
    e.missing &= others;
    if (e.load != kNoLoad && e.missing == 0) {
      done(std::exchange(e.load, kNoLoad));
    }
    if (e.others != kNoWaiter) FillOthers(e, others, done);
    if (e.outstanding == 0) Free(entry);
  }

  /// Calls function(load, missing) for each waiter, in the order in which they came; `missing` are the sectors that it
  /// waits for.
  template <typename Function>
  void ForEachWaiter(std::uint16_t entry, const Function& function) const {
    const Entry& e = entries_[entry];
    if (e.load != kNoLoad) function(e.load, e.missing);
    for (std::uint16_t index = e.others; index != kNoWaiter; index = waiters_[index].next)
      function(waiters_[index].load, waiters_[index].missing);
  }

  /// The host may fetch what Fill needs of an entry; of its key, what finding it needs.
  void Prefetch(std::uint16_t entry) const { __builtin_prefetch(&entries_[entry]); }
  void PrefetchKey(std::uint64_t key) const { __builtin_prefetch(&chains_[Home(key)]); }

 private:
  static constexpr std::uint64_t kFree = kAnonymous - 1;
  static constexpr std::uint16_t kNoWaiter = 0xffff, kNoLoad = kMaxLoads;
  /// Small, as the entries of all SMs do not fit the host's second cache.
  struct Entry {
    std::uint64_t key = kFree;
    std::uint16_t load = kNoLoad;      // the one that has the line fetched; most lines have no other
    std::uint16_t others = kNoWaiter;  // that wait, too, in the order in which they came
    std::uint16_t next = kNone;        // of the chain, or of the free entries
    std::uint8_t outstanding = 0;      // masks of sectors: all,
    std::uint8_t missing = 0;          // those of `load`
  };
  static_assert(sizeof(Entry) == 16);
  struct Waiter {
    std::uint16_t load = 0;
    std::uint16_t next = kNoWaiter;
    std::uint8_t missing = 0;
  };

  template <typename Done>
  void FillOthers(Entry& entry, std::uint8_t others, const Done& done) {
    std::uint16_t previous = kNoWaiter;
    for (std::uint16_t index = entry.others; index != kNoWaiter;) {
      Waiter& waiter = waiters_[index];
      const std::uint16_t next = waiter.next;
      waiter.missing &= others;
      if (waiter.missing != 0) {
        previous = index;
      } else {
        if (previous == kNoWaiter) entry.others = next;
        else waiters_[previous].next = next;
        done(waiter.load);
        waiter.next = free_waiter_;
        free_waiter_ = index;
      }
      index = next;
    }
  }
  std::uint32_t Waiters(const Entry& entry) const;
  void AddOther(Entry& entry, const Waiter& waiter);
  void Free(std::uint16_t entry);
  std::size_t Home(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull) >> shift_; }

  std::uint32_t merges_ = 0, used_ = 0;
  bool plain_ = false;
  AlignedVector<Entry> entries_;
  std::uint16_t free_ = kNone;
  std::vector<Waiter> waiters_;
  std::uint16_t free_waiter_ = kNoWaiter;
  std::vector<std::uint16_t> chains_;  // of entries with one hash, the first; a power of two
  unsigned shift_ = 0;
};

}  // namespace gridloom::timing
