#include "sim/exec/ranges/page_set.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

namespace gridloom::exec {
namespace {

using Range = PageSet::Range;

void Append(std::vector<Range>& sorted, const Range& range) {
  if (!sorted.empty() && sorted.back().flags == range.flags && sorted.back().last + 1 == range.first)
    sorted.back().last = range.last;
  else sorted.push_back(range);
}

/// Ranges in order that overlap only where they are equal or have the same flags, as almost all do, made disjoint in
/// place. False: some overlap in another way; the pages are what they were.
bool MergeSimple(std::vector<Range>& ranges) {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    Range& before = ranges[kept];
    const Range next = ranges[i];
    if (next.first > before.last && (next.first != before.last + 1 || next.flags != before.flags)) {
      ranges[++kept] = next;
    } else if (next.flags == before.flags) {
      before.last = std::max(before.last, next.last);
    } else if (next.first == before.first && next.last == before.last) {
      before.flags |= next.flags;
    } else {
      ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(kept) + 1,
                   ranges.begin() + static_cast<std::ptrdiff_t>(i));
      return false;
    }
  }
  if (!ranges.empty()) ranges.resize(kept + 1);
  return true;
}

/// A sweep over the ends of all ranges; how many are open is kept for each flag.
std::vector<Range> Sweep(const std::vector<Range>& ranges) {
  struct End {
    std::uint64_t page;  ///< a range begins here, or ended on the page before
    std::uint32_t flags;
    int step;
  };
  std::vector<End> ends;
  std::uint32_t used = 0;
  for (const Range& range : ranges) {
    ends.push_back({range.first, range.flags, 1});
    ends.push_back({range.last + 1, range.flags, -1});
    used |= range.flags;
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
    for (std::uint32_t left = used; left != 0; left &= left - 1)
      flags |= open[static_cast<std::size_t>(std::countr_zero(left))] > 0 ? left & -left : 0;
    if (flags != 0) Append(sorted, {page, ends[i].page - 1, flags});  // what is open ends somewhere
  }
  return sorted;
}

}  // namespace

void PageSet::Add(const Range& range) { Append(ranges_, range); }

void PageSet::Sort() {
  std::ranges::sort(ranges_, {}, &Range::first);
  if (!MergeSimple(ranges_)) ranges_ = Sweep(ranges_);
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

CtaSample CtaSample::Of(const Dim3& grid, std::uint64_t most) {
  CtaSample sample{.every = (grid.count() + most - 1) / most, .last = grid.count() - 1};
  if (sample.every <= 1) return {};
  while (std::gcd(sample.every, std::uint64_t{grid.x}) != 1) ++sample.every;
  return sample;
}

void CtaPageLog::Add(std::uint64_t cta, const Range& range) {
  if (!entries_.empty() && entries_.back().cta == cta) {
    Range& before = entries_.back().range;
    if (before.flags == range.flags && range.first >= before.first && range.first <= before.last + 1) {
      before.last = std::max(before.last, range.last);
      return;
    }
  }
  entries_.push_back({cta, range});
  if (entries_.size() < compact_at_) return;
  Compact(entries_);
  compact_at_ = std::max(compact_at_, 2 * entries_.size());
}

void CtaPageLog::Compact(std::vector<Entry>& entries) {
  std::ranges::sort(entries, {}, &Entry::cta);
  std::vector<Entry> kept;
  for (std::size_t i = 0; i < entries.size();) {
    const std::uint64_t cta = entries[i].cta;
    PageSet pages;
    for (; i < entries.size() && entries[i].cta == cta; ++i) pages.Add(entries[i].range);
    pages.Sort();
    for (const Range& range : pages.ranges()) kept.push_back({cta, range});
  }
  entries = std::move(kept);
}

std::vector<CtaPages> CtaPageLog::Sorted() const {
  std::vector<Entry> entries = entries_;
  std::ranges::stable_sort(entries, {}, &Entry::cta);
  std::vector<CtaPages> sorted;
  for (const Entry& entry : entries) {
    if (sorted.empty() || sorted.back().cta != entry.cta) sorted.push_back({entry.cta, {}});
    sorted.back().pages.Add(entry.range);
  }
  for (CtaPages& cta : sorted) cta.pages.Sort();
  return sorted;
}

std::vector<CtaPages> MergeByCta(std::vector<std::vector<CtaPages>> logs) {
  std::vector<CtaPages> all;
  for (auto& log : logs) std::ranges::move(log, std::back_inserter(all));
  std::ranges::sort(all, {}, &CtaPages::cta);
  return all;
}

}  // namespace gridloom::exec
