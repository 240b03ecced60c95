// Which pages, and how: ranges of page numbers with flags (range_sink.h), since a CTA may report an array of many
// pages.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/exec/dim3.h"

namespace gridloom::exec {

class PageSet {
 public:
  struct Range {
    std::uint64_t first = 0, last = 0;  ///< both belong to it
    std::uint32_t flags = 0;
    bool operator==(const Range&) const = default;
  };

  /// Pages that are in the set already get these flags, too. Before Sort.
  void Add(const Range& range);
  /// Makes the ranges disjoint; before the following are asked.
  void Sort();
  const std::vector<Range>& ranges() const { return ranges_; }
  /// How many pages.
  std::uint64_t size() const;
  /// 0: not in the set.
  std::uint32_t FlagsOf(std::uint64_t page) const;

 private:
  std::vector<Range> ranges_;
};

/// Some CTAs of a grid, evenly spread, and its last one.
struct CtaSample {
  std::uint64_t every = 1;  ///< 1: all
  std::uint64_t last = 0;
  /// At most about `most` CTAs of a grid. Their distance shares no factor with the grid's rows, so that all columns are
  /// among them.
  static CtaSample Of(const Dim3& grid, std::uint64_t most);
  bool Has(std::uint64_t cta) const { return every == 1 || cta % every == 0 || cta == last; }
};

/// The pages of one CTA.
struct CtaPages {
  std::uint64_t cta = 0;  ///< linear, x fastest
  PageSet pages;          ///< sorted
};

/// Pages of many CTAs as they come, in any order and more than once, in not much more memory than the different ones
/// need.
class CtaPageLog {
 public:
  void Add(std::uint64_t cta, const PageSet::Range& range);
  /// By CTA; those without a page are not in it.
  std::vector<CtaPages> Sorted() const;

 private:
  struct Entry {
    std::uint64_t cta = 0;
    PageSet::Range range;
  };
  static void Compact(std::vector<Entry>& entries);

  std::vector<Entry> entries_;
  std::size_t compact_at_ = 1u << 16;
};

/// The logs' CTAs, which no two of them share, in order.
std::vector<CtaPages> MergeByCta(std::vector<std::vector<CtaPages>> logs);

}  // namespace gridloom::exec
