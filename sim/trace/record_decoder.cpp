#include "sim/trace/record_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace gridloom::trace {

using exec::AccessKind;
using exec::RecordHeader;
using exec::RecordKind;
using exec::RecordReader;

namespace {

constexpr std::uint8_t kShared = 1, kLocal = 2, kAtomicAccess = 4, kStoreAccess = 8, kNoAccess = 0xff;
constexpr std::size_t kMostPatterns = 4096;     // of a CTA
constexpr std::uint8_t kMostPatternsOfOne = 4;  // of a CTA, found among the lanes of one instruction
constexpr std::size_t kMostSites = 0xffff;

std::uint8_t KindOfEntry(const Instruction& instruction) {
  if (!instruction.has_access()) return kNoAccess;
  std::uint8_t kind = instruction.space == Space::kShared ? kShared : instruction.space == Space::kLocal ? kLocal : 0;
  if (instruction.flags & kAtomic) kind |= kAtomicAccess;
  else if (instruction.flags & kStore) kind |= kStoreAccess;
  return kind;
}

/// Local memory of 32 lanes lies interleaved by words on a GPU: what a warp accesses together lies together.
std::uint64_t LocalAddress(std::uint64_t base, std::uint64_t offset, std::uint64_t lane) {
  return base + offset / 4 * 4 * kWarpSize + lane * 4 + offset % 4;
}

/// Whether the lanes of the mask all lie in a window. Mostly the first one tells.
bool AllIn(std::uint32_t mask, const std::uint64_t* lanes, std::uint64_t low, std::uint64_t bytes) {
  for (; mask != 0; mask &= mask - 1) {
    if (lanes[static_cast<std::size_t>(std::countr_zero(mask))] - low >= bytes) return false;
  }
  return true;
}

bool IsStride(std::int64_t stride) { return stride >= MemoryAccess::kLeastStride && stride <= INT32_MAX; }

/// The distance between lanes where there is one for all.
std::optional<std::int32_t> StrideOf(const std::int64_t* pattern) {
  const std::int64_t stride = pattern[1] - pattern[0];
  if (pattern[0] != 0 || !IsStride(stride)) return std::nullopt;
  for (std::uint32_t lane = 1; lane < kWarpSize; ++lane) {
    if (pattern[lane] - pattern[lane - 1] != stride) return std::nullopt;
  }
  return static_cast<std::int32_t>(stride);
}

/// Whether each of 32 lanes is base + offset of the lane. Most that are not show it at the last lane; else all are looked at, without a
/// way out, so that the compiler compares several at a time.
bool IsShifted(const std::uint64_t* lanes, std::uint64_t base, const std::uint64_t* offsets) {
  if (lanes[kWarpSize - 1] != base + offsets[kWarpSize - 1]) return false;
  std::uint64_t differs = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) differs |= lanes[lane] ^ (base + offsets[lane]);
  return differs == 0;
}

/// Whether 32 lanes are base + i * stride.
bool FindFullStride(const std::uint64_t* lanes, MemoryAccess& access) {
  const std::uint64_t stride = lanes[1] - lanes[0];
  if (!IsStride(static_cast<std::int64_t>(stride)) || lanes[kWarpSize - 1] != lanes[0] + stride * (kWarpSize - 1)) return false;
  std::uint64_t differs = 0;
  for (std::uint32_t lane = 1; lane < kWarpSize; ++lane) differs |= (lanes[lane] - lanes[lane - 1]) ^ stride;
  if (differs != 0) return false;
  access.base = lanes[0];
  access.stride = static_cast<std::int32_t>(stride);
  return true;
}

/// Whether the lanes of the mask are base + i * stride.
bool FindStride(std::uint32_t mask, const std::uint64_t* lanes, MemoryAccess& access) {
  if (mask == ~0u) return FindFullStride(lanes, access);
  const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
  std::uint32_t rest = mask & (mask - 1);
  std::int64_t stride = 0;
  if (rest != 0) {
    const auto second = static_cast<std::uint32_t>(std::countr_zero(rest));
    const auto distance = static_cast<std::int64_t>(lanes[second] - lanes[first]);
    stride = distance / static_cast<std::int64_t>(second - first);
    if (!IsStride(stride)) return false;
  }
  const std::uint64_t base = lanes[first] - static_cast<std::uint64_t>(stride) * first;
  for (; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (lanes[lane] != base + static_cast<std::uint64_t>(stride) * lane) return false;
  }
  access.base = base;
  access.stride = static_cast<std::int32_t>(stride);
  return true;
}

}  // namespace

RecordDecoder::RecordDecoder(const CodeTable& table) : table_(table), entries_(table.code.instructions.size() + 1) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < table.code.instructions.size(); ++i) {
    entries_[i].kind = KindOfEntry(table.code.instructions[i]);
    entries_[i].width = table.code.instructions[i].width;
    entries_[i].number = number;
    if (entries_[i].kind != kNoAccess) ++number;
  }
  entries_.back().kind = kNoAccess;
  entries_.back().number = number;
  plain_.resize(table.entries.size());
  for (std::size_t i = 0; i < table.entries.size(); ++i) {
    const CodeTable::Entry& entry = table.entries[i];
    if (entry.count == 0) continue;
    const Instruction& instruction = table.code.instructions[entry.first];
    if (!instruction.has_access() || (instruction.flags & kGeneric) != 0 || instruction.space == Space::kLocal) continue;
    const bool atomic = (instruction.flags & kAtomic) != 0, store = (instruction.flags & kStore) != 0;
    plain_[i] = {.at = entry.first,
                 .key = KeyOf({.access = atomic  ? AccessKind::kAtomic
                                         : store ? AccessKind::kWrite
                                                 : AccessKind::kRead,
                               .space = instruction.space == Space::kShared ? exec::Space::kShared : exec::Space::kGlobal,
                               .bytes = instruction.width})};
  }
}

std::uint32_t RecordDecoder::KeyOf(const RecordHeader& header) {
  return static_cast<std::uint32_t>(header.access) | static_cast<std::uint32_t>(header.space) << 8 | header.bytes << 16;
}

CtaTrace RecordDecoder::Decode(const exec::RecordPlace& place, const RecordBuffers& buffers, RecordSites* sites) {
  BeginCta(place, sites, buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) DecodeBuffer(buffers[b], b);
  // The next one is probably about as large.
  CtaTrace trace = std::move(trace_);
  trace_ = {};
  trace_.visits.reserve(trace.visits.size());
  trace_.accesses.reserve(trace.accesses.size());
  trace_.lanes.reserve(trace.lanes.size());
  return trace;
}

void RecordDecoder::BeginCta(const exec::RecordPlace& place, RecordSites* sites, std::size_t buffers) {
  place_ = place;
  sites_ = sites;
  known_.clear();
  wide_.clear();
  dropped_ = 0;
  for (Entry& entry : entries_) {
    entry.new_patterns = 0;
    entry.pattern = -1;
    entry.site = 0;
  }
  if (sites_ != nullptr) {
    *sites_ = {};
    sites_->number.resize(buffers);
  }
}

void RecordDecoder::DecodeBuffer(std::span<const std::uint64_t> words, std::size_t buffer) {
  if (words.empty()) return;
  if (sites_ != nullptr) sites_->number[buffer].assign(words.size(), RecordSites::kFixed);
  RecordReader reader(words);
  bool begun = false;
  while (reader.Next()) {
    if (!begun) BeginWarp();
    begun = true;
    switch (reader.header().kind) {
      case RecordKind::kBlock: BeginBlock(reader.header()); break;
      case RecordKind::kWarpEnd:
        EndWarp();
        begun = false;
        break;
      default: {
        if (sites_ == nullptr && AddPlainAccess(reader)) break;
        const std::uint16_t site = AddAccess(reader);
        if (site == RecordSites::kFixed || sites_ == nullptr) break;
        std::vector<std::uint16_t>& number = sites_->number[buffer];
        number[reader.at() + 1] = site;
        if (reader.header().kind != RecordKind::kLanes) break;
        for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
          number[reader.at() + 1 + lane] = (reader.header().mask >> lane & 1) != 0 ? site : RecordSites::kFixed;
        }
      }
    }
  }
  if (begun) EndWarp();
}

void RecordDecoder::BeginWarp() {
  local_base_ = place_.local_base + trace_.warps.size() * place_.local_stride * kWarpSize;
  trace_.warps.push_back({static_cast<std::uint32_t>(trace_.visits.size()), 0, static_cast<std::uint32_t>(trace_.accesses.size()), 0});
  next_ = end_ = 0;
}

void RecordDecoder::EndWarp() {
  SkipTo(end_);
  WarpTrace& warp = trace_.warps.back();
  warp.visit_count = static_cast<std::uint32_t>(trace_.visits.size()) - warp.first_visit;
  warp.access_count = static_cast<std::uint32_t>(trace_.accesses.size()) - warp.first_access;
}

/// Memory instructions before `entry` that made no record were off for all lanes.
void RecordDecoder::SkipTo(std::uint32_t entry) {
  if (next_ >= entry) return;
  if (const std::uint32_t off = entries_[entry].number - entries_[next_].number; off != 0) {
    trace_.accesses.resize(trace_.accesses.size() + off);
  }
  next_ = entry;
}

void RecordDecoder::BeginBlock(const RecordHeader& header) {
  if (header.mask == 0 || header.instruction >= table_.entries.size()) return;
  const std::uint32_t block = table_.entries[header.instruction].block;
  if (block == CodeTable::kNoBlock) return;
  SkipTo(end_);
  trace_.visits.push_back({block, header.mask});
  next_ = table_.code.blocks[block].first;
  end_ = next_ + table_.code.blocks[block].count;
}

std::uint8_t RecordDecoder::KindOf(const RecordHeader& header) {
  std::uint8_t kind = header.space == exec::Space::kShared ? kShared : header.space == exec::Space::kLocal ? kLocal : 0;
  if (header.access == AccessKind::kAtomic) kind |= kAtomicAccess;
  if (header.access == AccessKind::kWrite) kind |= kStoreAccess;
  return kind;
}

std::uint16_t RecordDecoder::AddAccess(RecordReader& reader) {
  const RecordHeader& header = reader.header();
  if (header.mask == 0 || header.instruction >= table_.entries.size()) return RecordSites::kFixed;
  const CodeTable::Entry& entry = table_.entries[header.instruction];
  const std::uint8_t kind = KindOf(header);
  const std::uint32_t entry_end = entry.first + entry.count;
  std::uint32_t at = std::max(entry.first, next_);
  while (at < entry_end && entries_[at].kind != kind) ++at;
  if (at >= std::min(entry_end, end_)) {
    if (entry.count != 0 && entries_[entry.first].kind != kNoAccess) ++dropped_;
    return SiteOf(at, at, true);
  }
  SkipTo(at);
  const std::uint32_t first = at;
  for (std::uint32_t done = 0; done < header.bytes && at < entry_end && entries_[at].kind == kind; ++at) {
    trace_.accesses.push_back(AccessOf(reader, at, done));
    done += entries_[at].width;
  }
  next_ = at;
  return SiteOf(first, at, (kind & (kShared | kLocal)) == 0);
}

MemoryAccess RecordDecoder::AccessOf(RecordReader& reader, std::uint32_t at, std::uint32_t done) {
  const RecordHeader& header = reader.header();
  MemoryAccess access{.mask = header.mask};
  const exec::Space space = header.space == exec::Space::kGeneric ? SpaceOfGeneric(reader) : header.space;
  const bool generic_local = space != header.space && space == exec::Space::kLocal;
  std::uint64_t add = done;
  if (space != header.space && space == exec::Space::kShared) add += MemoryAccess::kSharedWindow - place_.shared_base;
  if (!generic_local && Linear(reader, add, access)) return access;
  const std::uint64_t* lanes = reader.addresses();
  std::array<std::uint64_t, kWarpSize> moved;
  if (generic_local) {
    // Other CTAs run in the same place, but have another window.
    if (sites_ != nullptr) sites_->usable = false;
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
      const std::uint64_t offset = lanes[lane] - place_.generic_local + done;
      moved[lane] =
          MemoryAccess::kLocalWindow + LocalAddress(local_base_, offset % place_.local_stride, offset / place_.local_stride % kWarpSize);
    }
    lanes = moved.data();
  } else if (const bool local = space == exec::Space::kLocal; local || add != 0) {
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
      moved[lane] = local ? LocalAddress(local_base_, lanes[lane] + done, lane) : lanes[lane] + add;
    lanes = moved.data();
  }
  if (!FindStride(header.mask, lanes, access) && !FindPattern(at, lanes, access)) AddLanes(lanes, access);
  return access;
}

void RecordDecoder::AddLanes(const std::uint64_t* lanes, MemoryAccess& access) {
  access.base = trace_.lanes.size();
  access.stride = MemoryAccess::kScattered;
  if (access.mask == ~0u) {
    trace_.lanes.insert(trace_.lanes.end(), lanes, lanes + kWarpSize);
    return;
  }
  std::array<std::uint64_t, kWarpSize> active;
  std::size_t count = 0;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1)
    active[count++] = lanes[static_cast<std::size_t>(std::countr_zero(rest))];
  trace_.lanes.insert(trace_.lanes.end(), active.begin(), active.begin() + static_cast<std::ptrdiff_t>(count));
}

/// Most records: of an instruction that is one entry, the next one or one after it, in global or shared memory.
bool RecordDecoder::AddPlainAccess(const RecordReader& reader) {
  const RecordHeader& header = reader.header();
  if (header.instruction >= plain_.size()) return false;
  const Plain& plain = plain_[header.instruction];
  if (plain.key != KeyOf(header) || plain.at < next_ || plain.at >= end_ || header.mask == 0) return false;
  MemoryAccess access{.mask = header.mask};
  switch (header.kind) {
    case RecordKind::kUniform:
    case RecordKind::kAffine:
      access.base = reader.base();
      access.stride = static_cast<std::int32_t>(reader.stride());
      break;
    case RecordKind::kPattern: {
      const std::optional<std::int32_t> stride = KnownPattern(reader.pattern());
      if (!stride) return false;
      access.base = reader.base();
      access.stride = *stride;
      break;
    }
    default:
      if (!FindStride(header.mask, reader.lanes(), access) && !FindPattern(plain.at, reader.lanes(), access))
        AddLanes(reader.lanes(), access);
  }
  SkipTo(plain.at);
  trace_.accesses.push_back(access);
  next_ = plain.at + 1;
  return true;
}

/// Where a generic access goes; one whose lanes lie in several windows counts as global.
exec::Space RecordDecoder::SpaceOfGeneric(RecordReader& reader) const {
  const std::uint32_t mask = reader.header().mask;
  const std::uint64_t* const lanes = reader.addresses();
  if (AllIn(mask, lanes, place_.shared_base, place_.shared_bytes)) return exec::Space::kShared;
  if (AllIn(mask, lanes, place_.generic_local, place_.generic_local_bytes)) return exec::Space::kLocal;
  return exec::Space::kGlobal;
}

/// Records that say how the lanes lie. `add` is added to their addresses.
bool RecordDecoder::Linear(RecordReader& reader, std::uint64_t add, MemoryAccess& access) {
  const RecordHeader& header = reader.header();
  if (header.kind == RecordKind::kLanes) return false;
  const std::uint64_t base = reader.base() + add;
  if (header.space == exec::Space::kLocal) {
    // A distance of whole words stays one distance when the lanes are interleaved by words.
    const std::int64_t stride = reader.stride() * kWarpSize + 4;
    if (header.kind == RecordKind::kPattern || reader.stride() % 4 != 0 || !IsStride(stride)) return false;
    access.base = LocalAddress(local_base_, base, 0);
    access.stride = static_cast<std::int32_t>(stride);
    return true;
  }
  access.base = base;
  if (header.kind != RecordKind::kPattern) {
    access.stride = static_cast<std::int32_t>(reader.stride());
    return true;
  }
  const std::optional<std::int32_t> pattern = KnownPattern(reader.pattern());
  if (pattern) access.stride = *pattern;
  return pattern.has_value();
}

/// The stride that a pattern is or that names it; nothing when its distances are too large.
std::optional<std::int32_t> RecordDecoder::KnownPattern(const std::int64_t* pattern) {
  for (const auto& [known, stride] : known_) {
    if (known == pattern) return stride;
  }
  if (const std::optional<std::int32_t> stride = StrideOf(pattern)) {
    known_.emplace_back(pattern, *stride);
    return stride;
  }
  const bool fits =
      std::all_of(pattern, pattern + kWarpSize, [](std::int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; });
  if (!fits || trace_.patterns.size() >= kMostPatterns) return std::nullopt;
  const std::int32_t stride = MemoryAccess::kFirstPattern + static_cast<std::int32_t>(trace_.patterns.size());
  LanePattern& made = trace_.patterns.emplace_back();
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) made[lane] = static_cast<std::int32_t>(pattern[lane]);
  known_.emplace_back(pattern, stride);
  return stride;
}

/// Lanes that lie as they did when the instruction was executed last, somewhere else.
bool RecordDecoder::FindPattern(std::uint32_t at, const std::uint64_t* lanes, MemoryAccess& access) {
  Entry& entry = entries_[at];
  if (entry.pattern >= 0 && IsPattern(entry, lanes, access)) return true;
  if (entry.new_patterns >= kMostPatternsOfOne || trace_.patterns.size() >= kMostPatterns) return false;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  LanePattern pattern{};
  Offsets offsets{};
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    offsets[lane] = lanes[lane] - lanes[first];
    pattern[lane] = static_cast<std::int32_t>(offsets[lane]);
    if (static_cast<std::uint64_t>(std::int64_t{pattern[lane]}) != offsets[lane]) return false;
  }
  ++entry.new_patterns;
  entry.pattern = static_cast<std::int32_t>(trace_.patterns.size());
  entry.offsets = static_cast<std::uint32_t>(wide_.size());
  trace_.patterns.push_back(pattern);
  wide_.push_back(offsets);
  access.base = lanes[first];
  access.stride = MemoryAccess::kFirstPattern + entry.pattern;
  return true;
}

bool RecordDecoder::IsPattern(const Entry& entry, const std::uint64_t* lanes, MemoryAccess& access) const {
  const Offsets& offsets = wide_[entry.offsets];
  const auto first = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  const std::uint64_t base = lanes[first] - offsets[first];
  if (access.mask == ~0u) {
    if (!IsShifted(lanes, base, offsets.data())) return false;
  } else {
    for (std::uint32_t rest = access.mask & (access.mask - 1); rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (lanes[lane] != base + offsets[lane]) return false;
    }
  }
  access.base = base;
  access.stride = MemoryAccess::kFirstPattern + entry.pattern;
  return true;
}

/// The site of a record that the entries [from, to) take: a new one at their first record. Addresses of shared and local memory do
/// not move.
std::uint16_t RecordDecoder::SiteOf(std::uint32_t from, std::uint32_t to, bool moves) {
  if (sites_ == nullptr || !sites_->usable || !moves) return RecordSites::kFixed;
  if (from == to) {  // has no place in the trace, and may lie anywhere: a site of its own each time
    if (sites_->sites.size() < kMostSites) {
      sites_->sites.push_back({});
      return static_cast<std::uint16_t>(sites_->sites.size() - 1);
    }
    sites_->usable = false;
    return RecordSites::kFixed;
  }
  const RecordSites::Site site{entries_[from].number, to - from};
  if (const std::uint16_t known = entries_[from].site; known != 0) {
    if (sites_->sites[known].first != site.first || sites_->sites[known].count != site.count) sites_->usable = false;
    return known;
  }
  for (std::uint32_t at = from; at < to; ++at) {
    if (entries_[at].site != 0) sites_->usable = false;
  }
  if (sites_->sites.size() >= kMostSites) sites_->usable = false;
  if (!sites_->usable) return RecordSites::kFixed;
  sites_->sites.push_back(site);
  for (std::uint32_t at = from; at < to; ++at) entries_[at].site = static_cast<std::uint16_t>(sites_->sites.size() - 1);
  return entries_[from].site;
}

}  // namespace gridloom::trace
