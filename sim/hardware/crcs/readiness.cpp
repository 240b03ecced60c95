#include "sim/hardware/crcs/readiness.h"

#include <algorithm>

namespace gridloom::hardware::crcs {

void Readiness::Announce(std::uint64_t cta, const std::vector<PageRange>& pages, std::uint8_t flags) {
  for (const PageRange& range : pages) announced_.push_back({cta, range, (flags & trace::kRangeRead) != 0});
}

void Readiness::Build(std::uint64_t ctas) {
  std::erase_if(announced_, [&](const Announced& one) { return one.cta >= ctas; });
  std::vector<std::uint64_t> ends;
  for (const Announced& one : announced_) ends.insert(ends.end(), {one.pages.first, one.pages.end});
  std::ranges::sort(ends);
  ends.erase(std::ranges::unique(ends).begin(), ends.end());
  for (std::size_t i = 1; i < ends.size(); ++i)
    runs_.push_back({.pages = {ends[i - 1], ends[i]}, .missing = ends[i] - ends[i - 1]});
  ctas_.resize(ctas);
  for (const Announced& one : announced_) {
    const auto first = static_cast<std::size_t>(std::ranges::lower_bound(ends, one.pages.first) - ends.begin());
    for (std::size_t run = first; run < runs_.size() && runs_[run].pages.first < one.pages.end; ++run) {
      runs_[run].users.push_back(static_cast<std::uint32_t>(one.cta));
      ++ctas_[one.cta].missing_runs;
      if (!one.reads) continue;
      runs_[run].readers.push_back(static_cast<std::uint32_t>(one.cta));
      ctas_[one.cta].reads += runs_[run].pages.size();
    }
  }
  std::vector<Announced>().swap(announced_);
  for (std::uint32_t cta = 0; cta < ctas; ++cta) {
    left_.insert(cta);
    if (ctas_[cta].missing_runs == 0) ready_.insert(cta);
    BeginIfMay(cta);
  }
}

void Readiness::Own(std::uint64_t page) {
  const auto run =
      std::ranges::lower_bound(runs_, page, std::ranges::less_equal(), [](const Run& one) { return one.pages.end; });
  if (run == runs_.end() || page < run->pages.first || run->missing == 0) return;
  --run->missing;
  const std::uint64_t later = run->pages.size() / 2;  // pages that are told of with the last one
  if (run->missing == later) Came(*run, run->pages.size() - later);
  if (run->missing != 0) return;
  if (later != 0) Came(*run, later);
  for (const std::uint32_t cta : run->users) {
    if (--ctas_[cta].missing_runs != 0 || !left_.contains(cta)) continue;
    ready_.insert(cta);
    begun_.insert(cta);
  }
}

/// So many more pages of a run are there.
void Readiness::Came(const Run& run, std::uint64_t pages) {
  for (const std::uint32_t cta : run.readers) {
    ctas_[cta].here += pages;
    BeginIfMay(cta);
  }
}

void Readiness::BeginIfMay(std::uint32_t cta) {
  if (ctas_[cta].may_begin() && left_.contains(cta)) begun_.insert(cta);
}

void Readiness::Start(std::uint64_t cta) {
  left_.erase(cta);
  ready_.erase(cta);
  begun_.erase(cta);
}

}  // namespace gridloom::hardware::crcs
