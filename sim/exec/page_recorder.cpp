#include "sim/exec/page_recorder.h"

#include <algorithm>
#include <bit>

#include "rewriter/support/check.h"
#include "sim/exec/range_sink.h"

namespace gridloom::exec {

PageRecorder::PageRecorder(std::uint32_t page_bytes) : page_shift_(static_cast<unsigned>(std::countr_zero(page_bytes))) {
  GL_CHECK(std::has_single_bit(page_bytes), "the size of a page is a power of two");
}

void PageRecorder::Compact(TouchedPages& pages) {
  std::ranges::sort(pages, {}, &TouchedPage::page);
  std::size_t kept = 0;
  for (const TouchedPage& page : pages) {
    if (kept > 0 && pages[kept - 1].page == page.page) pages[kept - 1].flags |= page.flags;
    else pages[kept++] = page;
  }
  pages.resize(kept);
}

void PageRecorder::OnAccess(const ObservedAccess& access) {
  const std::uint32_t flags = access.kind == AccessKind::kRead    ? kRangeRead
                              : access.kind == AccessKind::kWrite ? kRangeWrite
                                                                  : kRangeRead | kRangeWrite;
  Shard& shard = shards_[access.cta_index % kShards];
  const std::lock_guard lock(shard.mutex);
  std::uint64_t last = ~std::uint64_t{0};  // neighbours are mostly on one page
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const std::uint64_t address = access.addresses[std::countr_zero(left)];
    const std::uint64_t end = (address + access.bytes - 1) >> page_shift_;
    for (std::uint64_t page = address >> page_shift_; page <= end; ++page) {
      if (page == last) continue;
      last = page;
      Recent& recent = shard.recent[page % kRecent];
      const bool same = recent.cta == access.cta_index && recent.page == page;
      if (same && (flags & ~recent.flags) == 0) continue;
      recent = {access.cta_index, page, same ? recent.flags | flags : flags};
      Touched& touched = shard.by_cta[access.cta_index];
      touched.pages.push_back({page, flags});
      if (touched.pages.size() < touched.compact_at) continue;
      Compact(touched.pages);
      touched.compact_at = std::max(touched.compact_at, 2 * touched.pages.size());
    }
  }
}

std::map<std::uint64_t, TouchedPages> PageRecorder::Pages() const {
  std::map<std::uint64_t, TouchedPages> all;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [cta, touched] : shard.by_cta) Compact(all.emplace(cta, touched.pages).first->second);
  }
  return all;
}

}  // namespace gridloom::exec
