// How many CTAs of one kernel may still read or write each page: its rows of the reference count table (CRCS paper,
// section 4.1, Figure 6). Pages that the same CTAs use are counted together, so that a range of many pages costs no
// more than one of few.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/trace/cta_event.h"

namespace gridloom::hardware::crcs {

/// Pages [first, end).
struct PageRange {
  std::uint64_t first = 0, end = 0;
  bool operator==(const PageRange&) const = default;
  std::uint64_t size() const { return end - first; }
};

/// The pages of a range that a CTA said it will touch or has touched (EventKind::kSetRange, kReleaseRange), rising and
/// disjoint: each page once, however many pieces of the range lie in it.
std::vector<PageRange> PagesOf(const trace::CtaEvent& event, unsigned page_shift);

/// Not less than the pages of PagesOf, which may be more than there is memory for.
std::uint64_t MostPagesOf(const trace::CtaEvent& event, unsigned page_shift);

class ReferenceCounts {
 public:
  using OnPages = std::function<void(const PageRange& pages, bool writes)>;

  /// One more CTA uses the pages, as trace::RangeFlag says. Before Build.
  void Set(const std::vector<PageRange>& pages, std::uint8_t flags);
  void Build();
  /// One CTA less does; `none` is told of pages that nobody is left for. What was not set before is left alone; false
  /// then.
  bool Release(const std::vector<PageRange>& pages, std::uint8_t flags, const OnPages& none);
  /// Takes back all that is left.
  void ReleaseAll(const OnPages& none);

  void ForEach(const OnPages& pages) const;  ///< that have counts
  bool empty() const { return left_ == 0; }
  std::uint64_t most() const { return most_; }  ///< CTAs that one page was ever counted for, reading or writing
  std::uint64_t pages() const;                  ///< that have counts

 private:
  struct Change {
    std::uint64_t page = 0;
    std::int64_t read = 0, write = 0;
  };
  struct Run {
    PageRange pages;
    std::int64_t read = 0, write = 0;
    bool writes = false;  ///< somebody has, or had, it for writing
  };
  std::vector<Run>::iterator RunAt(std::uint64_t page);

  std::vector<Change> changes_;  ///< from that page on; until Build
  std::vector<Run> runs_;        ///< by page
  std::uint64_t left_ = 0;       ///< runs with counts
  std::uint64_t most_ = 0;
};

}  // namespace gridloom::hardware::crcs
