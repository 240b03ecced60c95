#include "sim/exec/page_set.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace gridloom::exec {

void PageSet::Add(const Range& range) {
  if (!ranges_.empty() && ranges_.back().flags == range.flags && ranges_.back().last + 1 == range.first) ranges_.back().last = range.last;
  else ranges_.push_back(range);
}

// A sweep over the ends of all ranges; how many are open is kept for each flag.
void PageSet::Sort() {
  struct End {
    std::uint64_t page;  ///< a range begins here, or ended on the page before
    std::uint32_t flags;
    int step;
  };
  std::vector<End> ends;
  for (const Range& range : ranges_) {
    ends.push_back({range.first, range.flags, 1});
    ends.push_back({range.last + 1, range.flags, -1});
  }
  std::ranges::sort(ends, {}, &End::page);
  std::array<int, 32> open{};
  std::vector<Range> sorted;
  for (std::size_t i = 0; i < ends.size();) {
    const std::uint64_t page = ends[i].page;
    for (; i < ends.size() && ends[i].page == page; ++i) {
      for (std::uint32_t left = ends[i].flags; left != 0; left &= left - 1)
        open[static_cast<std::size_t>(std::countr_zero(left))] += ends[i].step;
    }
    std::uint32_t flags = 0;
    for (std::uint32_t bit = 0; bit < open.size(); ++bit) flags |= open[bit] > 0 ? 1u << bit : 0;
    if (flags == 0) continue;
    const std::uint64_t last = ends[i].page - 1;  // what is open ends somewhere
    if (!sorted.empty() && sorted.back().flags == flags && sorted.back().last + 1 == page) sorted.back().last = last;
    else sorted.push_back({page, last, flags});
  }
  ranges_ = std::move(sorted);
}

std::uint64_t PageSet::size() const {
  std::uint64_t pages = 0;
  for (const Range& range : ranges_) pages += range.last - range.first + 1;
  return pages;
}

std::uint32_t PageSet::FlagsOf(std::uint64_t page) const {
  const auto it = std::ranges::lower_bound(ranges_, page, {}, &Range::last);
  return it != ranges_.end() && it->first <= page ? it->flags : 0;
}

}  // namespace gridloom::exec
