// The part of a GPU's page table that CRCS adds (section 4.1, Figure 6): for each page of an address space who owns it,
// who comes after, and whether it holds data that kernels may use. Changes between windows; SMs read it while a window
// is simulated.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/work.h"

namespace gridloom::hardware::crcs {

/// The place of a work in the order in which works come to the table. What depends on another work comes later than
/// that.
struct Turn {
  timing::Cycle at = 0;
  timing::WorkId work = timing::kNoWork;
  auto operator<=>(const Turn&) const = default;
};

struct PageUser {
  Turn turn;
  bool fills = false;  ///< a copy to the device: until it has passed, the page is not ready
};

struct PageEntry {
  /// Works that use the page and have not done so, in the order in which they came: kernels with a reference count,
  /// copies and fills. The first one owns it. Works that depend on each other come in their order, so that nobody waits
  /// for a work that waits for him.
  std::vector<PageUser> users;
  timing::Cycle visible = 0;  ///< when SMs know of the owner
  bool available = false;     ///< it holds data: pages like it are what shares are counted in
  /// Copies to the device that have passed, and when SMs know; the last ones.
  struct Filled {
    Turn by;
    timing::Cycle visible = 0;
  };
  std::vector<Filled> filled;

  bool OwnedBy(timing::WorkId work) const { return !users.empty() && users.front().turn.work == work; }
  bool Has(timing::WorkId work) const;
};

class PageTable {
 public:
  /// Null: nobody has ever used the page.
  const PageEntry* Find(std::uint64_t page) const {
    const auto chunk = chunks_.find(page / kChunk);
    return chunk == chunks_.end() ? nullptr : &(*chunk->second)[page % kChunk];
  }
  PageEntry& At(std::uint64_t page);

  /// Behind all that are there. Whether it owns the page now.
  static bool Enter(PageEntry& entry, const PageUser& user);
  /// Whether the page has another owner now, or none.
  static bool Leave(PageEntry& entry, timing::WorkId work);

  /// Pages that there is memory for, used or not.
  std::uint64_t pages() const { return chunks_.size() * kChunk; }

 private:
  static constexpr std::uint64_t kChunk = 256;
  using Chunk = std::array<PageEntry, kChunk>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> chunks_;
};

}  // namespace gridloom::hardware::crcs
