// Who of the works that came too early for anything has touched each sector of 32 bytes. An access of a work after one of a work behind it
// is a hazard, unless both read.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/hardware/hazards/work_clocks.h"

namespace gridloom::hardware::hazards {

/// What happened in the wrong order, by what the program says: read after write and so on.
enum class Kind : std::uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite };

struct Hazard {
  Kind kind = Kind::kReadAfterWrite;
  timing::WorkId later = 0;  ///< the work that was too early
};

/// Accesses come in the order of time. Of a work, only those are kept that happened while something before it had not ended: no other can
/// be the first half of a hazard. Of works behind each other the last one is enough.
class SectorOrder {
 public:
  explicit SectorOrder(const WorkClocks& clocks) : clocks_(clocks) {}

  /// Sectors [first, first + count), all of one kind of access; `found` is told of each sector of each hazard.
  template <typename Found>
  void Access(timing::WorkId work, std::uint64_t first, std::uint64_t count, bool writes, const Found& found) {
    const bool early = clocks_.IsEarly(work);
    for (std::uint64_t sector = first; sector < first + count;) {
      const std::uint64_t end = std::min(first + count, (sector / kSectors + 1) * kSectors);
      Page* const page = PageOf(sector / kSectors, early);
      for (; page != nullptr && sector < end; ++sector) {
        const std::size_t place = sector % kSectors;
        if (const auto later = Behind(work, page->written, place)) {
          found(sector, Hazard{writes ? Kind::kWriteAfterWrite : Kind::kWriteAfterRead, *later});
        }
        if (writes) {
          if (const auto later = Behind(work, page->read, place)) found(sector, Hazard{Kind::kReadAfterWrite, *later});
        }
        if (early) Keep(work, writes ? page->written : page->read, place);
      }
      sector = end;
    }
  }
  /// When nothing is open.
  void Clear();
  std::size_t pages() const { return pages_.size(); }

 private:
  static constexpr std::size_t kSectors = 128;  ///< of a page of 4 KiB
  /// Works that have read sectors of a page, or written them.
  struct Works {
    std::array<timing::WorkId, kSectors> last;
    std::bitset<kSectors> more;  ///< sectors for which there are others, of which none comes before the other
    std::unordered_map<std::size_t, std::vector<timing::WorkId>> others;  ///< by place
    Works() { last.fill(timing::kNoWork); }
  };
  struct Page {
    Works read, written;
  };

  Page* PageOf(std::uint64_t page, bool make);
  /// One of the works that is behind `work`.
  std::optional<timing::WorkId> Behind(timing::WorkId work, const Works& works, std::size_t place) const;
  void Keep(timing::WorkId work, Works& works, std::size_t place) const;

  const WorkClocks& clocks_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_page_ = nullptr;
};

}  // namespace gridloom::hardware::hazards
