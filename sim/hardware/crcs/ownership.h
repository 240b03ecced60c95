// Who owns which page (CRCS paper, section 4.1): the first work with uses left. Passes pages on, and tells the next
// owner.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "sim/hardware/crcs/page_table.h"
#include "sim/hardware/crcs/settings.h"
#include "sim/hardware/crcs/shares.h"

namespace gridloom::hardware::crcs {

enum class Role : std::uint8_t { kKernel, kCopyToDevice, kOtherCopy };

/// What owners are told.
class OwnerEvents {
 public:
  virtual ~OwnerEvents() = default;
  virtual void OnKernelOwns(timing::Cycle at, timing::WorkId kernel, std::uint64_t page, const PageEntry& entry) = 0;
  virtual void OnCopyOwns(timing::Cycle at, timing::WorkId copy, std::uint64_t page) = 0;
  /// A copy to the device has passed a page on.
  virtual void OnReady(timing::Cycle visible) = 0;
};

class Ownership {
 public:
  Ownership(const Settings& settings, Shares& shares, OwnerEvents& events)
      : settings_(settings), shares_(shares), events_(events) {}

  /// A work that will use pages. `space`: its address space.
  void Add(timing::WorkId work, Role role, std::uint32_t space) { works_[work] = {role, &tables_[space]}; }
  void Forget(timing::WorkId work) { works_.erase(work); }
  /// The work uses the page, behind all that use it now. Once for each page; cycles never go back.
  void Enter(timing::Cycle at, timing::WorkId work, std::uint64_t page);
  /// The work has done with the page. `data`: it has brought data to the page.
  void Leave(timing::Cycle at, timing::WorkId work, std::uint64_t page, bool data);
  bool Owns(timing::WorkId work, std::uint64_t page) const;

  /// The table of an address space. It stays where it is.
  const PageTable& TableOf(std::uint32_t space) { return tables_[space]; }
  /// Pages that the tables take memory for.
  std::uint64_t pages() const {
    std::uint64_t sum = 0;
    for (const auto& [space, table] : tables_) sum += table.pages();
    return sum;
  }
  std::uint64_t passed() const { return passed_; }
  std::uint64_t uses() const { return uses_; }
  std::uint64_t ended() const { return ended_; }

 private:
  struct Known {
    Role role = Role::kKernel;
    PageTable* table = nullptr;
  };
  struct Counted {
    timing::WorkId owner = timing::kNoWork;  ///< a kernel, of an available page
    bool available = false;
  };
  Counted CountedOf(const PageEntry& entry) const;
  void Count(timing::Cycle at, const Counted& before, const Counted& after);
  void Own(timing::Cycle at, PageEntry& entry);
  void Tell(timing::Cycle at, std::uint64_t page, const PageEntry& entry);

  const Settings& settings_;
  Shares& shares_;
  OwnerEvents& events_;
  std::map<std::uint32_t, PageTable> tables_;
  std::unordered_map<timing::WorkId, Known> works_;
  std::uint64_t passed_ = 0;  ///< pages that went from one work to another
  std::uint64_t uses_ = 0;    ///< of pages by works, and
  std::uint64_t ended_ = 0;   ///< how many of them have ended
};

}  // namespace gridloom::hardware::crcs
