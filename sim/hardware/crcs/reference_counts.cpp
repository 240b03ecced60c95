#include "sim/hardware/crcs/reference_counts.h"

#include <algorithm>

namespace gridloom::hardware::crcs {

std::vector<PageRange> PagesOf(const trace::CtaEvent& event, unsigned page_shift) {
  const auto [first_byte, bytes, distance, pieces] = event.data;
  std::vector<PageRange> pages;
  if (bytes == 0) return pages;
  const std::uint64_t page_bytes = std::uint64_t{1} << page_shift;
  const auto add = [&](std::uint64_t low, std::uint64_t last) {
    const PageRange range{low >> page_shift, (last >> page_shift) + 1};
    if (!pages.empty() && range.first <= pages.back().end) pages.back().end = std::max(pages.back().end, range.end);
    else pages.push_back(range);
  };
  // Pieces without a page between them are one range. Sums do not wrap (trace::ValidateEvents).
  if (pieces <= 1 || distance <= page_bytes) {
    add(first_byte, first_byte + (pieces <= 1 ? 0 : (pieces - 1) * distance) + bytes - 1);
    return pages;
  }
  for (std::uint64_t piece = 0; piece < pieces; ++piece)
    add(first_byte + piece * distance, first_byte + piece * distance + bytes - 1);
  return pages;
}

std::uint64_t MostPagesOf(const trace::CtaEvent& event, unsigned page_shift) {
  const auto [first_byte, bytes, distance, pieces] = event.data;
  const std::uint64_t of_piece = (bytes >> page_shift) + 2;
  const std::uint64_t in_all = (((pieces <= 1 ? 0 : (pieces - 1) * distance) + bytes) >> page_shift) + 2;
  return pieces <= 1 || of_piece > in_all / pieces ? in_all : of_piece * pieces;
}

void ReferenceCounts::Set(const std::vector<PageRange>& pages, std::uint8_t flags) {
  const std::int64_t read = (flags & trace::kRangeRead) != 0, write = (flags & trace::kRangeWrite) != 0;
  for (const PageRange& range : pages) {
    changes_.push_back({range.first, read, write});
    changes_.push_back({range.end, -read, -write});
  }
}

void ReferenceCounts::Build() {
  std::ranges::sort(changes_, {}, &Change::page);
  std::int64_t read = 0, write = 0;
  for (std::size_t i = 0; i < changes_.size();) {
    const std::uint64_t page = changes_[i].page;
    for (; i < changes_.size() && changes_[i].page == page; ++i) {
      read += changes_[i].read;
      write += changes_[i].write;
    }
    if (i == changes_.size() || (read == 0 && write == 0)) continue;
    runs_.push_back({.pages = {page, changes_[i].page}, .read = read, .write = write, .writes = write != 0});
    most_ = std::max<std::uint64_t>(most_, static_cast<std::uint64_t>(std::max(read, write)));
  }
  left_ = runs_.size();
  std::vector<Change>().swap(changes_);
}

std::vector<ReferenceCounts::Run>::iterator ReferenceCounts::RunAt(std::uint64_t page) {
  return std::ranges::lower_bound(runs_, page, std::ranges::less_equal(), [](const Run& run) { return run.pages.end; });
}

bool ReferenceCounts::Release(const std::vector<PageRange>& pages, std::uint8_t flags, const OnPages& none) {
  const std::int64_t read = (flags & trace::kRangeRead) != 0, write = (flags & trace::kRangeWrite) != 0;
  bool known = true;
  for (const PageRange& range : pages) {
    std::uint64_t next = range.first;
    for (auto run = RunAt(next); run != runs_.end() && run->pages.first < range.end; ++run) {
      // Every range that is released was set, so that runs begin and end with it.
      const bool whole = run->pages.first == next && run->pages.end <= range.end;
      if (!whole || run->read < read || run->write < write) {
        known = false;
        if (!whole) break;
        next = run->pages.end;
        continue;
      }
      next = run->pages.end;
      run->read -= read;
      run->write -= write;
      if (run->read != 0 || run->write != 0) continue;
      --left_;
      none(run->pages, run->writes);
    }
    known = known && next == range.end;
  }
  return known;
}

void ReferenceCounts::ReleaseAll(const OnPages& none) {
  for (Run& run : runs_) {
    if (run.read == 0 && run.write == 0) continue;
    run.read = run.write = 0;
    --left_;
    none(run.pages, run.writes);
  }
}

void ReferenceCounts::ForEach(const OnPages& pages) const {
  for (const Run& run : runs_) {
    if (run.read != 0 || run.write != 0) pages(run.pages, run.writes);
  }
}

std::uint64_t ReferenceCounts::pages() const {
  std::uint64_t sum = 0;
  ForEach([&](const PageRange& range, bool) { sum += range.size(); });
  return sum;
}

}  // namespace gridloom::hardware::crcs
