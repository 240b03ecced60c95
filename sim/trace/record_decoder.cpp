#include "sim/trace/record_decoder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace gridloom::trace {

using exec::AccessKind;
using exec::RecordHeader;
using exec::RecordKind;
using exec::RecordReader;

namespace {

constexpr std::uint8_t kShared = 1, kLocal = 2, kAtomicAccess = 4, kStoreAccess = 8, kNoAccess = 0xff;
constexpr std::size_t kMostPatterns = 4096;  // of a CTA
constexpr std::size_t kMostSites = 0xffff;
constexpr std::uint32_t kNewHope = 32;  // CTAs after which an instruction may look for patterns again
// Traces that are looked through for one that nobody has any more: as many as CtaEncoder keeps, and some.
constexpr std::size_t kKeptTraces = 20;
constexpr std::size_t kMostKeptBytes = std::size_t{4} << 20;  // of one that is used again

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

std::size_t BytesOf(const CtaTrace& trace) {
  return trace.visits.capacity() * sizeof(BlockVisit) + trace.accesses.capacity() * sizeof(MemoryAccess) +
         trace.lanes.capacity() * sizeof(std::uint64_t) + trace.patterns.capacity() * sizeof(LanePattern);
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
  MakePlans();
}

/// Most records are expected: of an instruction that is one entry, in global or shared memory, in the order of the code.
void RecordDecoder::MakePlans() {
  plain_.resize(table_.entries.size());
  blocks_.resize(table_.entries.size());
  std::vector<const Plain*> plain_of(entries_.size());
  for (std::size_t i = 0; i < table_.entries.size(); ++i) {
    const CodeTable::Entry& entry = table_.entries[i];
    if (entry.count == 0) continue;
    const Instruction& instruction = table_.code.instructions[entry.first];
    if (!instruction.has_access() || (instruction.flags & kGeneric) != 0 || instruction.space == Space::kLocal) continue;
    const bool atomic = (instruction.flags & kAtomic) != 0, store = (instruction.flags & kStore) != 0;
    const bool shared = instruction.space == Space::kShared;
    const RecordHeader header{.access = atomic  ? AccessKind::kAtomic
                                        : store ? AccessKind::kWrite
                                                : AccessKind::kRead,
                              .space = shared ? exec::Space::kShared : exec::Space::kGlobal,
                              .bytes = instruction.width,
                              .instruction = static_cast<std::uint32_t>(i)};
    plain_[i] = {.at = entry.first, .key = KeyOf(header.Pack()), .moves = !shared};
    if (entry.count == 1) plain_of[entry.first] = &plain_[i];
  }
  for (std::size_t i = 0; i < table_.entries.size(); ++i) {
    const std::uint32_t number = table_.entries[i].block;
    if (number == CodeTable::kNoBlock) continue;
    const BasicBlock& block = table_.code.blocks[number];
    Block& plan = blocks_[i];
    plan = {.number = number, .first = block.first, .end = block.first + block.count};
    plan.plain = static_cast<std::uint32_t>(in_order_.size());
    for (std::uint32_t at = plan.first; at < plan.end; ++at) {
      if (entries_[at].kind == kNoAccess) continue;
      if (plain_of[at] == nullptr) break;
      in_order_.push_back(*plain_of[at]);
    }
    plan.plain_count = static_cast<std::uint32_t>(in_order_.size()) - plan.plain;
  }
}

std::shared_ptr<const CtaTrace> RecordDecoder::Decode(const exec::RecordPlace& place, const RecordBuffers& buffers, RecordSites* sites) {
  BeginCta(place, sites, buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) DecodeBuffer(buffers[b], b);
  return std::exchange(trace_, nullptr);
}

void RecordDecoder::BeginCta(const exec::RecordPlace& place, RecordSites* sites, std::size_t buffers) {
  place_ = place;
  sites_ = sites;
  for (const Known& known : known_) last_known_[SlotOf(known.pattern) % last_known_.size()] = {};
  known_.clear();
  wide_.clear();
  dropped_ = 0;
  ++ctas_;
  trace_ = UnusedTrace();
  if (sites_ != nullptr) {
    *sites_ = {};
    sites_->number.resize(buffers);
  }
}

/// Empty, with room for what an earlier CTA had: the next one is probably about as large.
std::shared_ptr<CtaTrace> RecordDecoder::UnusedTrace() {
  if (traces_.size() < kKeptTraces) traces_.resize(kKeptTraces);
  for (std::shared_ptr<CtaTrace>& kept : traces_) {
    if (!kept || kept.use_count() != 1) continue;
    std::atomic_thread_fence(std::memory_order_acquire);  // what the last one to let it go has read of it, on another thread, is over
    if (BytesOf(*kept) > kMostKeptBytes) {
      kept.reset();
      continue;
    }
    kept->warps.clear();
    kept->visits.clear();
    kept->accesses.clear();
    kept->lanes.clear();
    kept->patterns.clear();
    return kept;
  }
  std::shared_ptr<CtaTrace>& slot = traces_[oldest_++ % kKeptTraces];
  auto made = std::make_shared<CtaTrace>();
  if (slot) {
    made->visits.reserve(slot->visits.size());
    made->accesses.reserve(slot->accesses.size());
    made->lanes.reserve(slot->lanes.size());
  }
  return slot = std::move(made);
}

RecordDecoder::Entry& RecordDecoder::EntryOf(std::uint32_t at) {
  Entry& entry = entries_[at];
  if (entry.cta == ctas_) return entry;
  entry.cta = ctas_;
  entry.site = 0;
  entry.pattern = -1;
  if (ctas_ % kNewHope == 0) entry.patience = std::max<std::uint8_t>(entry.patience, 1);
  return entry;
}

void RecordDecoder::DecodeBuffer(std::span<const std::uint64_t> words, std::size_t buffer) {
  if (words.empty()) return;
  if (sites_ != nullptr) sites_->number[buffer].assign(words.size(), RecordSites::kFixed);
  site_numbers_ = sites_ != nullptr ? sites_->number[buffer].data() : nullptr;
  words_ = words.data();
  bool begun = false;
  for (Words at = words_, end = words_ + words.size(); at < end;) {
    if (!begun) BeginWarp();
    begun = true;
    switch (RecordHeader::Unpack(*at).kind) {
      case RecordKind::kBlock: at = TakeBlock(at, end); break;
      case RecordKind::kWarpEnd:
        EndWarp();
        begun = false;
        ++at;
        break;
      default: at = TakeAccess(at, end);
    }
  }
  if (begun) EndWarp();
}

void RecordDecoder::BeginWarp() {
  local_base_ = place_.local_base + trace_->warps.size() * place_.local_stride * kWarpSize;
  trace_->warps.push_back({static_cast<std::uint32_t>(trace_->visits.size()), 0, static_cast<std::uint32_t>(trace_->accesses.size()), 0});
  next_ = end_ = 0;
}

void RecordDecoder::EndWarp() {
  SkipTo(end_);
  WarpTrace& warp = trace_->warps.back();
  warp.visit_count = static_cast<std::uint32_t>(trace_->visits.size()) - warp.first_visit;
  warp.access_count = static_cast<std::uint32_t>(trace_->accesses.size()) - warp.first_access;
}

/// Memory instructions before `entry` that made no record were off for all lanes.
void RecordDecoder::SkipTo(std::uint32_t entry) {
  if (next_ >= entry) return;
  if (const std::uint32_t off = entries_[entry].number - entries_[next_].number; off != 0) {
    trace_->accesses.resize(trace_->accesses.size() + off);
  }
  next_ = entry;
}

/// A block, and those of its accesses that come as planned. Where what follows begins.
RecordDecoder::Words RecordDecoder::TakeBlock(Words at, Words end) {
  const RecordHeader header = RecordHeader::Unpack(*at++);
  if (header.mask == 0 || header.instruction >= blocks_.size()) return at;
  const Block& block = blocks_[header.instruction];
  if (block.number == CodeTable::kNoBlock) return at;
  SkipTo(end_);
  trace_->visits.push_back({block.number, header.mask});
  next_ = block.first;
  end_ = block.end;
  const Plain* const planned = in_order_.data() + block.plain;
  for (std::uint32_t i = 0; i < block.plain_count && at < end && KeyOf(*at) == planned[i].key; ++i) {
    const Words behind = TakePlain(planned[i], at, end);
    if (behind == nullptr) break;
    next_ = planned[i].at + 1;
    at = behind;
  }
  return at;
}

/// One access, whatever it is.
RecordDecoder::Words RecordDecoder::TakeAccess(Words at, Words end) {
  RecordReader reader({at, end});
  if (!reader.Next()) return end;
  const RecordHeader& header = reader.header();
  if (header.instruction < plain_.size()) {
    const Plain& plain = plain_[header.instruction];
    // Its place in the trace is behind those of the instructions that were off.
    if (plain.key == KeyOf(*at) && plain.at >= next_ && plain.at < end_ && header.mask != 0 && sites_ == nullptr) {
      SkipTo(plain.at);
      if (const Words behind = TakePlain(plain, at, end)) {
        next_ = plain.at + 1;
        return behind;
      }
    }
  }
  MarkSite(at, AddAccess(reader));
  return at + reader.next();
}

/// Nothing is done and null returned when it is not that or needs more care.
RecordDecoder::Words RecordDecoder::TakePlain(const Plain& plain, Words at, Words end) {
  const RecordHeader header = RecordHeader::Unpack(*at);
  if (header.mask == 0) return nullptr;
  const auto words = static_cast<std::size_t>(end - at);
  const auto put = [&](std::uint64_t base, std::int32_t stride) {  // written where it stays: what is copied at once must not be in parts
    MemoryAccess& access = trace_->accesses.emplace_back();
    access.base = base;
    access.stride = stride;
    access.mask = header.mask;
  };
  Words behind = at + 2;
  switch (header.kind) {
    case RecordKind::kUniform:
      if (words < 2) return nullptr;
      put(at[1], 0);
      break;
    case RecordKind::kAffine:
      if (words < 2) return nullptr;
      put(at[1] & RecordHeader::kBaseMask, static_cast<std::int32_t>(static_cast<std::int64_t>(at[1]) >> RecordHeader::kBaseBits));
      break;
    case RecordKind::kPattern: {
      if (words < 3) return nullptr;
      const std::optional<std::int32_t> stride = KnownPattern(reinterpret_cast<const std::int64_t*>(at[2]));
      if (!stride) return nullptr;
      put(at[1], *stride);
      behind = at + 3;
      break;
    }
    case RecordKind::kLanes: {
      if (words < exec::kMaxRecordWords) return nullptr;
      MemoryAccess access{.mask = header.mask};
      if (!FindStride(at + 1, access) && !FindPattern(plain.at, at + 1, access)) AddLanes(at + 1, access);
      put(access.base, access.stride);
      behind = at + exec::kMaxRecordWords;
      break;
    }
    default: return nullptr;
  }
  if (sites_ != nullptr) MarkSite(at, SiteOf(plain.at, plain.at + 1, plain.moves));
  return behind;
}

/// The words of a record that move with it.
void RecordDecoder::MarkSite(Words record, std::uint16_t site) {
  if (site == RecordSites::kFixed || site_numbers_ == nullptr) return;
  std::uint16_t* const numbers = site_numbers_ + (record - words_) + 1;
  numbers[0] = site;
  const RecordHeader header = RecordHeader::Unpack(*record);
  static_assert(RecordSites::kFixed == 0);
  if (header.kind != RecordKind::kLanes) return;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) numbers[lane] = static_cast<std::uint16_t>(site * (header.mask >> lane & 1));
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
    trace_->accesses.push_back(AccessOf(reader, at, done));
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
  if (!FindStride(lanes, access) && !FindPattern(at, lanes, access)) AddLanes(lanes, access);
  return access;
}

void RecordDecoder::AddLanes(const std::uint64_t* lanes, MemoryAccess& access) {
  access.base = trace_->lanes.size();
  access.stride = MemoryAccess::kScattered;
  if (access.mask == ~0u) {
    trace_->lanes.insert(trace_->lanes.end(), lanes, lanes + kWarpSize);
    return;
  }
  std::array<std::uint64_t, kWarpSize> active;
  std::size_t count = 0;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1)
    active[count++] = lanes[static_cast<std::size_t>(std::countr_zero(rest))];
  trace_->lanes.insert(trace_->lanes.end(), active.begin(), active.begin() + static_cast<std::ptrdiff_t>(count));
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
  Known& last = last_known_[SlotOf(pattern) % last_known_.size()];
  if (last.pattern == pattern) return last.stride;
  for (const Known& known : known_) {
    if (known.pattern == pattern) return (last = known).stride;
  }
  const std::optional<std::int32_t> stride = AddKnownPattern(pattern);
  if (stride) last = known_.emplace_back(Known{pattern, *stride});
  return stride;
}

std::optional<std::int32_t> RecordDecoder::AddKnownPattern(const std::int64_t* pattern) {
  if (const std::optional<std::int32_t> stride = StrideOf(pattern)) return stride;
  const bool fits =
      std::all_of(pattern, pattern + kWarpSize, [](std::int64_t offset) { return offset >= INT32_MIN && offset <= INT32_MAX; });
  if (!fits || trace_->patterns.size() >= kMostPatterns) return std::nullopt;
  const std::int32_t stride = MemoryAccess::kFirstPattern + static_cast<std::int32_t>(trace_->patterns.size());
  LanePattern& made = trace_->patterns.emplace_back();
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) made[lane] = static_cast<std::int32_t>(pattern[lane]);
  return stride;
}

/// Lanes that lie as they did when the instruction was executed last, somewhere else. Instructions whose lanes never do that are
/// soon left alone.
bool RecordDecoder::FindPattern(std::uint32_t at, const std::uint64_t* lanes, MemoryAccess& access) {
  Entry& entry = EntryOf(at);
  if (entry.pattern >= 0) {
    if (const std::optional<std::uint64_t> base = FindBase(access.mask, lanes, wide_[entry.offsets])) {
      entry.patience = kPatience;
      access.base = *base;
      access.stride = MemoryAccess::kFirstPattern + entry.pattern;
      return true;
    }
  }
  if (entry.patience == 0 || trace_->patterns.size() >= kMostPatterns) return false;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  LanePattern pattern{};
  LaneOffsets offsets{};
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    offsets[lane] = lanes[lane] - lanes[first];
    pattern[lane] = static_cast<std::int32_t>(offsets[lane]);
    if (static_cast<std::uint64_t>(std::int64_t{pattern[lane]}) != offsets[lane]) return false;
  }
  --entry.patience;
  entry.pattern = static_cast<std::int32_t>(trace_->patterns.size());
  entry.offsets = static_cast<std::uint32_t>(wide_.size());
  trace_->patterns.push_back(pattern);
  wide_.push_back(offsets);
  access.base = lanes[first];
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
  if (const std::uint16_t known = EntryOf(from).site; known != 0) {
    if (sites_->sites[known].first != site.first || sites_->sites[known].count != site.count) sites_->usable = false;
    return known;
  }
  for (std::uint32_t at = from; at < to; ++at) {
    if (EntryOf(at).site != 0) sites_->usable = false;
  }
  if (sites_->sites.size() >= kMostSites) sites_->usable = false;
  if (!sites_->usable) return RecordSites::kFixed;
  sites_->sites.push_back(site);
  for (std::uint32_t at = from; at < to; ++at) entries_[at].site = static_cast<std::uint16_t>(sites_->sites.size() - 1);
  return entries_[from].site;
}

}  // namespace gridloom::trace
