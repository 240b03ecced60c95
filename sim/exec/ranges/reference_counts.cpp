#include "sim/exec/ranges/reference_counts.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace gridloom::exec {

void ReferenceCounts::OnRange(const RangeCall& call) {
  const std::optional<Allocation> allocation = memory_.Find(call.array);
  Shard& shard = shards_[call.cta_index % kShards];
  const std::lock_guard lock(shard.mutex);
  ++shard.calls;
  if (!allocation || call.width == 0 || call.count == 0) return;
  const std::uint64_t low = allocation->base, high = allocation->base + allocation->bytes;
  // Pieces that leave no page between them are one range: no call takes longer than its allocation has pages.
  const bool dense = call.count == 1 || call.stride <= page_bytes_;
  const std::uint64_t pieces = dense ? 1 : call.count;
  const unsigned __int128 whole = static_cast<unsigned __int128>(call.count - 1) * call.stride + call.width;
  const unsigned __int128 width = dense ? whole : call.width;
  std::uint64_t first_piece = 0;
  if (!dense && call.base < low)
    first_piece = (low - call.base) / call.stride;  // the last that begins at or before `low`
  std::optional<std::uint64_t> last_page;
  for (std::uint64_t i = first_piece; i < pieces; ++i) {
    const unsigned __int128 begin = static_cast<unsigned __int128>(i) * call.stride + call.base;
    if (begin >= high) break;
    const unsigned __int128 from = std::max<unsigned __int128>(begin, low),
                            to = std::min<unsigned __int128>(begin + width, high);
    if (from >= to) continue;
    std::uint64_t first = static_cast<std::uint64_t>(from) / page_bytes_;
    const std::uint64_t last = static_cast<std::uint64_t>(to - 1) / page_bytes_;
    if (last_page) first = std::max(first, *last_page + 1);  // a page counts once per call
    if (first <= last) Add(shard, call, first, last);
    last_page = last_page ? std::max(*last_page, last) : last;
  }
}

ReferenceCounts::Count& ReferenceCounts::Shard::StepAt(std::uint64_t page) {
  const std::uint64_t number = page / kChunk;
  if (last == nullptr || last_chunk != number) {
    auto& chunk = steps[number];
    if (chunk == nullptr) chunk = std::make_unique<Chunk>();
    last_chunk = number;
    last = chunk.get();
  }
  return (*last)[page % kChunk];
}

void ReferenceCounts::Add(Shard& shard, const RangeCall& call, std::uint64_t first, std::uint64_t last) const {
  const std::int64_t sign = call.op == RangeOp::kSet ? 1 : -1;
  const auto step = [&](std::uint64_t page, std::int64_t by) {
    Count& count = shard.StepAt(page);
    if (call.flags & kRangeRead) count.read += by;
    if (call.flags & kRangeWrite) count.write += by;
  };
  step(first, sign);
  step(last + 1, -sign);
  if (call.op == RangeOp::kSet && sample_.Has(call.cta_index))
    shard.set.Add(call.cta_index, {first, last, call.flags & (kRangeRead | kRangeWrite)});
}

std::map<std::uint64_t, ReferenceCounts::Count> ReferenceCounts::Counts() const {
  std::map<std::uint64_t, Chunk> steps;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    for (const auto& [number, chunk] : shard.steps) {
      Chunk& sum = steps[number];
      for (std::size_t i = 0; i < kChunk; ++i) {
        sum[i].read += (*chunk)[i].read;
        sum[i].write += (*chunk)[i].write;
      }
    }
  }
  std::map<std::uint64_t, Count> counts;
  Count count;
  std::uint64_t next = 0;  // the page that `count` holds for
  for (const auto& [number, chunk] : steps) {
    const std::uint64_t begin = number * kChunk;
    for (; next < begin && count != Count{}; ++next) counts[next] = count;
    for (std::size_t i = 0; i < kChunk; ++i) {
      count.read += chunk[i].read;
      count.write += chunk[i].write;
      if (count != Count{}) counts[begin + i] = count;
    }
    next = begin + kChunk;
  }
  return counts;
}

std::vector<CtaPages> ReferenceCounts::SetByCta() const {
  std::vector<std::vector<CtaPages>> logs;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    logs.push_back(shard.set.Sorted());
  }
  return MergeByCta(std::move(logs));
}

std::uint64_t ReferenceCounts::calls() const {
  std::uint64_t calls = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    calls += shard.calls;
  }
  return calls;
}

}  // namespace gridloom::exec
