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
  PageFlags& pages = shard.by_cta[access.cta_index];
  std::uint64_t last = ~std::uint64_t{0};  // neighbours are mostly on one page
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const std::uint64_t address = access.addresses[std::countr_zero(left)];
    const std::uint64_t end = (address + access.bytes - 1) / page_bytes_;
    for (std::uint64_t page = address / page_bytes_; page <= end; ++page) {
      if (page == last) continue;
      pages[page] |= flags;
      last = page;
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
