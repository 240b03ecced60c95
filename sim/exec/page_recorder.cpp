#include "sim/exec/page_recorder.h"

#include <bit>

#include "sim/exec/range_sink.h"

namespace gridloom::exec {

void PageRecorder::OnAccess(const ObservedAccess& access) {
  const std::uint32_t flags = access.kind == AccessKind::kRead    ? kRangeRead
                              : access.kind == AccessKind::kWrite ? kRangeWrite
                                                                  : kRangeRead | kRangeWrite;
  Shard& shard = shards_[access.cta_index % kShards];
  const std::lock_guard lock(shard.mutex);
  std::uint64_t last = ~std::uint64_t{0};  // neighbours are mostly on one page
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const std::uint64_t address = access.addresses[std::countr_zero(left)];
    const std::uint64_t end = (address + access.bytes - 1) / page_bytes_;
    for (std::uint64_t page = address / page_bytes_; page <= end; ++page) {
      if (page == last) continue;
      last = page;
      Recent& recent = shard.recent[page % kRecent];
      const bool same = recent.cta == access.cta_index && recent.page == page;
      if (same && (flags & ~recent.flags) == 0) continue;
      recent = {access.cta_index, page, shard.by_cta[access.cta_index][page] |= flags};
    }
  }
}

std::map<std::uint64_t, PageFlags> PageRecorder::Pages() const {
  std::map<std::uint64_t, PageFlags> all;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    all.insert(shard.by_cta.begin(), shard.by_cta.end());
  }
  return all;
}

}  // namespace gridloom::exec
