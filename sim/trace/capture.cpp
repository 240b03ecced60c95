#include "sim/trace/capture.h"

#include <algorithm>
#include <bit>

namespace gridloom::trace {

using exec::AccessKind;
using exec::RecordHeader;
using exec::RecordKind;
using exec::RecordPlace;
using exec::RecordReader;

namespace {

constexpr std::size_t kMostPatterns = 256;  // of a warp, which looks through them; few kernels have more than four

/// Local memory of 32 lanes lies interleaved by words on a GPU: what a warp accesses together lies together.
std::uint64_t LocalAddress(const RecordPlace& place, std::uint64_t offset, std::uint32_t lane) {
  return place.local_base + offset / 4 * 4 * kWarpSize + lane * 4 + offset % 4;
}

}  // namespace

void Capture::OnRecords(const RecordPlace& place, std::span<const std::uint64_t> words, bool ended) {
  Cta* cta = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Cta>& slot = open_[place.cta_index];
    if (!slot) {
      slot = std::make_unique<Cta>();
      slot->warps.resize(shape_.warps_per_cta());
    }
    cta = slot.get();
  }
  if (place.warp >= cta->warps.size()) return;
  Warp& warp = cta->warps[place.warp];
  Append(warp, place, words);
  if (!ended || std::exchange(warp.ended, true)) return;
  SkipTo(warp, warp.end);
  if (++cta->ended < cta->warps.size()) return;
  CtaTrace trace = Join(*cta);
  const std::lock_guard lock(mutex_);
  open_.erase(place.cta_index);
  take_(place.cta_index, std::move(trace));
}

void Capture::Append(Warp& warp, const RecordPlace& place, std::span<const std::uint64_t> words) {
  RecordReader reader(words);
  while (reader.Next()) {
    if (reader.header().kind == RecordKind::kBlock) BeginBlock(warp, reader.header());
    else AddAccess(warp, place, reader);
  }
}

/// Memory instructions before `entry` that made no record were off for all lanes.
void Capture::SkipTo(Warp& warp, std::uint32_t entry) {
  for (; warp.next < entry; ++warp.next) {
    if (table_.code.instructions[warp.next].has_access()) warp.accesses.emplace_back();
  }
}

void Capture::BeginBlock(Warp& warp, const RecordHeader& header) {
  if (header.mask == 0 || header.instruction >= table_.entries.size()) return;
  const std::uint32_t block = table_.entries[header.instruction].block;
  if (block == CodeTable::kNoBlock) return;
  SkipTo(warp, warp.end);
  warp.visits.push_back({block, header.mask});
  warp.next = table_.code.blocks[block].first;
  warp.end = warp.next + table_.code.blocks[block].count;
}

void Capture::AddAccess(Warp& warp, const RecordPlace& place, RecordReader& reader) {
  const RecordHeader& header = reader.header();
  if (header.mask == 0 || header.instruction >= table_.entries.size()) return;
  const CodeTable::Entry& entry = table_.entries[header.instruction];
  const bool shared = header.space == exec::Space::kShared, local = header.space == exec::Space::kLocal;
  const auto fits = [&](std::uint32_t at) {
    const Instruction& instruction = table_.code.instructions[at];
    if (!instruction.has_access() || (instruction.space == Space::kShared) != shared || (instruction.space == Space::kLocal) != local)
      return false;
    return (header.access == AccessKind::kAtomic) == ((instruction.flags & kAtomic) != 0) &&
           (header.access == AccessKind::kWrite) == ((instruction.flags & (kAtomic | kStore)) == kStore);
  };
  std::uint32_t at = std::max(entry.first, warp.next);
  while (at < entry.first + entry.count && !fits(at)) ++at;
  if (at >= std::min(entry.first + entry.count, warp.end)) {
    if (entry.count != 0 && table_.code.instructions[entry.first].has_access()) {
      const std::lock_guard lock(mutex_);
      ++dropped_;
    }
    return;
  }
  SkipTo(warp, at);
  std::uint32_t done = 0;
  for (; done < header.bytes && at < entry.first + entry.count && fits(at); ++at) {
    MemoryAccess access{.mask = header.mask};
    const bool small_stride = reader.stride() >= MemoryAccess::kLeastStride && reader.stride() <= INT32_MAX;
    const std::optional<std::int32_t> pattern =
        header.kind == RecordKind::kPattern && !local ? PatternStride(warp, reader.pattern()) : std::nullopt;
    if (pattern) {
      access.base = reader.base() + done;
      access.stride = *pattern;
    } else if (reader.affine() && small_stride && !local) {
      access.base = reader.base() + done;
      access.stride = static_cast<std::int32_t>(reader.stride());
    } else {
      access.base = warp.lanes.size();
      access.stride = MemoryAccess::kScattered;
      const std::uint64_t* const addresses = reader.addresses();
      warp.lanes.resize(warp.lanes.size() + static_cast<std::size_t>(std::popcount(header.mask)));
      std::uint64_t* to = warp.lanes.data() + access.base;
      for (std::uint32_t rest = header.mask; rest != 0; rest &= rest - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
        *to++ = local ? LocalAddress(place, addresses[lane] + done, lane) : addresses[lane] + done;
      }
    }
    warp.accesses.push_back(access);
    warp.next = at + 1;
    done += table_.code.instructions[at].width;
  }
}

std::optional<std::int32_t> Capture::PatternStride(Warp& warp, const std::int64_t* pattern) {
  const auto number = [](std::size_t index) { return MemoryAccess::kFirstPattern + static_cast<std::int32_t>(index); };
  const auto known = std::ranges::find(warp.patterns, pattern);
  if (known != warp.patterns.end()) return number(static_cast<std::size_t>(known - warp.patterns.begin()));
  const bool fits =
      std::all_of(pattern, pattern + kWarpSize, [](std::int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; });
  if (!fits || warp.patterns.size() >= kMostPatterns) return std::nullopt;
  warp.patterns.push_back(pattern);
  return number(warp.patterns.size() - 1);
}

CtaTrace Capture::Join(Cta& cta) {
  CtaTrace trace;
  std::vector<const std::int64_t*> patterns;
  for (Warp& warp : cta.warps) {
    std::vector<std::int32_t> strides;  // by the warp's number of the pattern
    for (const std::int64_t* pattern : warp.patterns) {
      const auto place = std::ranges::find(patterns, pattern);
      strides.push_back(MemoryAccess::kFirstPattern + static_cast<std::int32_t>(place - patterns.begin()));
      if (place != patterns.end()) continue;
      patterns.push_back(pattern);
      std::ranges::transform(std::span(pattern, kWarpSize), trace.patterns.emplace_back().begin(),
                             [](std::int64_t offset) { return static_cast<std::int32_t>(offset); });
    }
    for (MemoryAccess& access : warp.accesses) {
      if (access.stride == MemoryAccess::kScattered) access.base += trace.lanes.size();
      else if (access.has_pattern()) access.stride = strides[access.pattern()];
    }
    trace.warps.push_back({static_cast<std::uint32_t>(trace.visits.size()), static_cast<std::uint32_t>(warp.visits.size()),
                           static_cast<std::uint32_t>(trace.accesses.size()), static_cast<std::uint32_t>(warp.accesses.size())});
    trace.visits.insert(trace.visits.end(), warp.visits.begin(), warp.visits.end());
    trace.accesses.insert(trace.accesses.end(), warp.accesses.begin(), warp.accesses.end());
    trace.lanes.insert(trace.lanes.end(), warp.lanes.begin(), warp.lanes.end());
    warp = {};
  }
  return trace;
}

std::uint64_t Capture::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace gridloom::trace
