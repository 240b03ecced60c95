#include "sim/exec/ranges/page_recorder.h"

#include <bit>
#include <utility>

#include "rewriter/support/check.h"
#include "sim/exec/ranges/range_sink.h"

namespace gridloom::exec {

PageRecorder::PageRecorder(std::uint32_t page_bytes, CtaSample sample)
    : page_shift_(static_cast<unsigned>(std::countr_zero(page_bytes))), sample_(sample) {
  GL_CHECK(std::has_single_bit(page_bytes), "the size of a page is a power of two");
}

void PageRecorder::OnAccess(const ObservedAccess& access) {
  if (!sample_.Has(access.cta_index)) return;
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
      shard.log.Add(access.cta_index, {page, page, flags});
    }
  }
}

std::vector<CtaPages> PageRecorder::Pages() const {
  std::vector<std::vector<CtaPages>> logs;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    logs.push_back(shard.log.Sorted());
  }
  return MergeByCta(std::move(logs));
}

}  // namespace gridloom::exec
