// Who of the works that came too early for anything has touched each sector of 32 bytes. An access of a work after one
// of a work behind it is a hazard, unless both read.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
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

/// Accesses come in the order of time. Of a work, only those are kept that happened while something before it had not
/// ended: no other can be the first half of a hazard. Of works behind each other the last one is enough.
///
/// Sectors are kept one by one in pages of which kernels have touched some. Pages that were touched as a whole, as
/// copies do it, are kept as spans: a copy takes no more memory and time the more bytes it moves.
class SectorOrder {
 public:
  static constexpr std::uint64_t kSectors = 128;  ///< of a page of 4 KiB

  explicit SectorOrder(const WorkClocks& clocks) : clocks_(clocks) {}

  /// Sectors that follow each other and have the same hazard.
  using Found = std::function<void(std::uint64_t first, std::uint64_t count, const Hazard& hazard)>;
  /// Sectors [first, first + count), all of one kind of access; `found` is told of each sector of each hazard. The sum
  /// does not wrap.
  void Access(timing::WorkId work, std::uint64_t first, std::uint64_t count, bool writes, const Found& found);
  /// When nothing is open.
  void Clear();
  std::size_t pages() const { return pages_.size(); }  ///< that are kept sector by sector
  std::size_t spans() const { return spans_.size(); }

 private:
  /// Works that have read something, or written it.
  struct Works {
    timing::WorkId last = timing::kNoWork;
    /// Works of which none comes before another, nor before `last`; mostly null.
    std::unique_ptr<std::vector<timing::WorkId>> others;
    Works() = default;
    Works(const Works& from) { *this = from; }
    Works& operator=(const Works& from);
  };
  struct Users {
    Works read, written;
  };
  using Page = std::array<Users, kSectors>;
  /// Pages up to `end` whose sectors have the same users.
  struct Span {
    std::uint64_t end = 0;
    Users users;
  };
  struct One {
    timing::WorkId work = 0;
    bool writes = false, early = false;
    const Found& found;
  };

  void AccessPart(const One& one, std::uint64_t page, std::uint64_t first, std::uint64_t end);
  void AccessPages(const One& one, std::uint64_t first, std::uint64_t end);
  void AccessSpans(const One& one, std::uint64_t first, std::uint64_t end);
  void Touch(const One& one, Users& users, std::uint64_t first, std::uint64_t count) const;
  Page* PageOf(std::uint64_t page, bool make);
  std::vector<std::uint64_t> PagesIn(std::uint64_t first, std::uint64_t end) const;
  std::map<std::uint64_t, Span>::iterator SpanAt(std::uint64_t page);
  void SplitAt(std::uint64_t page);
  /// One of the works that is behind `work`.
  std::optional<timing::WorkId> Behind(timing::WorkId work, const Works& works) const;
  void Keep(timing::WorkId work, Works& works) const;

  const WorkClocks& clocks_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::map<std::uint64_t, Span> spans_;  ///< by their first pages, none of which is in pages_; they do not overlap
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_page_ = nullptr;
};

}  // namespace gridloom::hardware::hazards
