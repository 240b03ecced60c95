#include "sim/exec/ranges/written_memory.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "sim/exec/ranges/range_pieces.h"

namespace gridloom::exec {
namespace {

constexpr std::uint64_t kPage = 4096;

/// Sorted, and joined where they touch.
void Compact(std::vector<ByteRange>& ranges) {
  std::ranges::sort(ranges, {}, &ByteRange::begin);
  std::size_t used = 0;
  for (const ByteRange& range : ranges) {
    if (used != 0 && range.begin <= ranges[used - 1].end)
      ranges[used - 1].end = std::max(ranges[used - 1].end, range.end);
    else ranges[used++] = range;
  }
  ranges.resize(used);
}

bool IsShared(MemoryKind kind) {
  return kind == MemoryKind::kManaged || kind == MemoryKind::kPinned || kind == MemoryKind::kRegistered;
}

}  // namespace

void WrittenMemory::OnRange(const RangeCall& call) {
  if (call.op != RangeOp::kSet || (call.flags & kRangeWrite) == 0) return;
  const std::optional<Allocation> allocation = memory_.Find(call.array);
  if (!allocation) return;
  const std::uint64_t low = allocation->base, high = allocation->base + allocation->bytes;
  RangePieces pieces = ClipRange(call, low, high);
  if (pieces.count == 0) return;
  // Pieces that leave no page between them are one: no call takes longer than its allocation has pages.
  if (pieces.count > 1 && pieces.stride <= kPage) {
    const unsigned __int128 width = static_cast<unsigned __int128>(pieces.count - 1) * pieces.stride + pieces.width;
    pieces = {pieces.base, static_cast<std::uint64_t>(std::min<unsigned __int128>(width, high - pieces.base)), 0, 1};
  }
  Shard& shard = shards_[call.cta_index % kShards];
  const std::lock_guard lock(shard.mutex);
  if (IsShared(allocation->kind)) shard.shared = allocation;
  for (std::uint64_t i = 0; i < pieces.count; ++i) {
    const unsigned __int128 begin = static_cast<unsigned __int128>(i) * pieces.stride + pieces.base;
    const unsigned __int128 end = (begin + pieces.width + kPage - 1) / kPage * kPage;
    const auto from = static_cast<std::uint64_t>(std::max<unsigned __int128>(begin / kPage * kPage, low));
    const auto to = static_cast<std::uint64_t>(std::min<unsigned __int128>(end, high));
    if (from < to) shard.ranges.push_back({from, to});
  }
  if (shard.ranges.size() < shard.compact_at) return;
  Compact(shard.ranges);
  shard.compact_at = std::max(shard.compact_at, 2 * shard.ranges.size());
}

std::vector<ByteRange> WrittenMemory::Ranges() const {
  std::vector<ByteRange> all;
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    all.insert(all.end(), shard.ranges.begin(), shard.ranges.end());
  }
  Compact(all);
  return all;
}

std::optional<Allocation> WrittenMemory::SharedWithHost() const {
  for (const Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    if (shard.shared) return shard.shared;
  }
  return std::nullopt;
}

std::uint64_t SavedMemory::BytesOf(const std::vector<ByteRange>& ranges) {
  std::uint64_t bytes = 0;
  for (const ByteRange& range : ranges) bytes += range.end - range.begin;
  return bytes;
}

std::optional<SavedMemory> SavedMemory::Of(const std::vector<ByteRange>& ranges) {
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[BytesOf(ranges)]);
  if (bytes == nullptr) return std::nullopt;
  std::byte* at = bytes.get();
  for (const ByteRange& range : ranges) {
    std::memcpy(at, reinterpret_cast<const void*>(range.begin), range.end - range.begin);
    at += range.end - range.begin;
  }
  return SavedMemory(ranges, std::move(bytes));
}

void SavedMemory::Restore() const {
  const std::byte* at = bytes_.get();
  for (const ByteRange& range : ranges_) {
    std::memcpy(reinterpret_cast<void*>(range.begin), at, range.end - range.begin);
    at += range.end - range.begin;
  }
}

}  // namespace gridloom::exec
