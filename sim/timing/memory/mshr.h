// Miss status holding registers: lines that an SM has asked for, and who waits for them.
#pragma once

#include <cstdint>
#include <vector>

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
  /// `load` waits for the sectors, which are outstanding from now on if they were not before.
  void AddWaiter(std::uint16_t entry, std::uint32_t load, std::uint8_t sectors);

  /// Sectors have come. Calls done(load) for each waiter that misses none any more, in the order in which they came, and frees
  /// the entry when nothing is outstanding.
  template <typename Done>
  void Fill(std::uint16_t entry, std::uint8_t sectors, const Done& done) {
    Entry& e = entries_[entry];
    e.outstanding &= static_cast<std::uint8_t>(~sectors);
    std::uint32_t* link = &e.first_waiter;
    while (*link != kNoWaiter) {
      Waiter& waiter = waiters_[*link];
      waiter.missing &= static_cast<std::uint8_t>(~sectors);
      if (waiter.missing != 0) {
        link = &waiter.next;
        continue;
      }
      done(waiter.load);
      const std::uint32_t freed = *link;
      *link = waiter.next;
      waiter.next = free_waiter_;
      free_waiter_ = freed;
      --e.waiters;
    }
    if (e.outstanding == 0) Free(entry);
  }

 private:
  static constexpr std::uint32_t kNoWaiter = ~std::uint32_t{0};
  struct Entry {
    std::uint64_t key = kAnonymous;
    std::uint32_t first_waiter = kNoWaiter;
    std::uint16_t next_free = kNone;
    std::uint8_t outstanding = 0;
    std::uint32_t waiters = 0;
    bool live = false;
  };
  struct Waiter {
    std::uint32_t load = 0;
    std::uint32_t next = kNoWaiter;
    std::uint8_t missing = 0;
  };

  void Free(std::uint16_t entry);
  std::size_t Home(std::uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull) >> shift_; }

  std::uint32_t merges_ = 0, used_ = 0;
  bool plain_ = false;
  std::vector<Entry> entries_;
  std::uint16_t free_ = kNone;
  std::vector<Waiter> waiters_;
  std::uint32_t free_waiter_ = kNoWaiter;
  std::vector<std::uint16_t> hash_;  // open addressing, a power of two at least twice the entries
  unsigned shift_ = 0;
};

}  // namespace gridloom::timing
