#include "sim/trace/record_decoder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <tuple>
#include <utility>

#include "sim/exec/contract/recorded_event.h"

namespace gridloom::trace {

using exec::AccessKind;
using exec::RecordHeader;
using exec::RecordKind;
using exec::RecordReader;

namespace {

constexpr std::uint8_t kShared = 1, kLocal = 2, kAtomicAccess = 4, kStoreAccess = 8, kNoAccess = 0xff;
constexpr std::size_t kMostSites = 0xffff;
constexpr std::uint32_t kNewHope = 32;  // CTAs after which an instruction may look for patterns again
// Traces that are looked through for one that nobody has any more: as many as CtaEncoder keeps, and some.
constexpr std::size_t kKeptTraces = 20;
constexpr std::size_t kMostKeptBytes = std::size_t{4} << 20;     // of one that is used again
constexpr std::size_t kMostBytesBetween = std::size_t{1} << 20;  // of all from one launch to the next

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

}  // namespace

RecordDecoder::RecordDecoder(const CodeTable& table) : table_(table), entries_(table.code.instructions.size() + 1) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < table.code.instructions.size(); ++i) {
    entries_[i].kind = KindOfEntry(table.code.instructions[i]);
    entries_[i].width = table.code.instructions[i].width;
    entries_[i].number = number;
    entries_[i].leader = static_cast<std::uint32_t>(i);
    if (entries_[i].kind != kNoAccess) ++number;
  }
  entries_.back().kind = kNoAccess;
  entries_.back().number = number;
  for (const CodeTable::Entry& entry : table.entries) {
    BlockStart& start = starts_.emplace_back();
    start.block = entry.block;
    empty_blocks_.push_back(CodeTable::kNoBlock);
    if (entry.block == CodeTable::kNoBlock) continue;
    const BasicBlock& block = table.code.blocks[entry.block];
    start.end = block.first + block.count;
    const bool accesses = entries_[block.first].number != entries_[start.end].number;
    start.next = accesses ? block.first : start.end;
    if (!accesses) empty_blocks_.back() = entry.block;
  }
}

void RecordDecoder::BeginLaunch() {
  known_.clear();
  last_known_ = {};
}

void RecordDecoder::EndLaunch() {
  std::size_t kept = 0;
  for (std::shared_ptr<CtaTrace>& trace : traces_) {
    kept += trace ? BytesOf(*trace) : 0;
    if (kept > kMostBytesBetween) trace.reset();
  }
}

std::shared_ptr<const CtaTrace> RecordDecoder::Decode(const exec::RecordPlace& place, const RecordBuffers& buffers,
                                                      RecordSites* sites,
                                                      std::span<const std::span<const WordTurns>> turns,
                                                      std::uint32_t warps) {
  BeginCta(place, sites, buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b)
    DecodeBuffer(buffers[b], turns.empty() ? std::span<const WordTurns>() : turns[b], b);
  while (trace_->warps.size() < warps) {  // some records are missing
    BeginWarp();
    EndWarp();
  }
  visits_.Close();
  accesses_.Close();
  lanes_.Close();
  constexpr auto kPlace = [](const CtaEvent& event) { return std::tuple(event.warp, event.visit, event.instruction); };
  if (!std::ranges::is_sorted(trace_->events, {}, kPlace)) std::ranges::stable_sort(trace_->events, {}, kPlace);
  return std::exchange(trace_, nullptr);
}

void RecordDecoder::BeginCta(const exec::RecordPlace& place, RecordSites* sites, std::size_t buffers) {
  place_ = place;
  sites_ = sites;
  wide_.clear();
  dropped_ = visits_made_ = 0;
  cut_ = false;
  ++ctas_;
  trace_ = UnusedTrace();
  visits_.Open(trace_->visits);
  accesses_.Open(trace_->accesses);
  lanes_.Open(trace_->lanes);
  if (sites_ != nullptr) {
    *sites_ = {};
    sites_->number.resize(buffers);
    sites_->of.resize(entries_.back().number);
  }
}

/// To be filled anew, with room for what an earlier CTA had: the next one is probably about as large.
std::shared_ptr<CtaTrace> RecordDecoder::UnusedTrace() {
  if (traces_.size() < kKeptTraces) traces_.resize(kKeptTraces);
  for (std::shared_ptr<CtaTrace>& kept : traces_) {
    if (!kept || kept.use_count() != 1) continue;
    std::atomic_thread_fence(
        std::memory_order_acquire);  // what the last one to let it go has read of it, on another thread, is over
    if (BytesOf(*kept) > kMostKeptBytes) {
      kept.reset();
      continue;
    }
    kept->warps.clear();
    kept->patterns.clear();
    kept->repeats.clear();
    kept->events.clear();
    return kept;
  }
  std::shared_ptr<CtaTrace>& slot = traces_[oldest_++ % kKeptTraces];
  auto made = std::make_shared<CtaTrace>();
  if (slot) {
    made->visits.resize(slot->visits.size());
    made->accesses.resize(slot->accesses.size());
    made->lanes.resize(slot->lanes.size());
  }
  return slot = std::move(made);
}

void RecordDecoder::BeginEntry(Entry& entry) const {
  entry.cta = ctas_;
  entry.site = 0;
  entry.pattern = -1;
  if (ctas_ % kNewHope == 0) entry.patience = std::max<std::uint8_t>(entry.patience, 1);
}

void RecordDecoder::DecodeBuffer(std::span<const std::uint64_t> words, std::span<const WordTurns> turns,
                                 std::size_t buffer) {
  if (words.empty()) return;
  if (sites_ != nullptr) sites_->number[buffer].assign(words.size(), RecordSites::kFixed);
  site_numbers_ = sites_ != nullptr ? sites_->number[buffer].data() : nullptr;
  words_ = words.data();
  words_end_ = words_ + words.size();
  Words at = words_;
  for (const WordTurns& some : turns) at = DecodeTurns(DecodeUpTo(at, words_ + some.at), some);
  DecodeUpTo(at, words_end_);
  if (in_warp_) EndWarp();
}

/// Takes records that begin before `limit`. Where the next one begins; behind the words if the trace has come to an end
/// before them.
RecordDecoder::Words RecordDecoder::DecodeUpTo(Words at, Words limit) {
  while (at < limit) {
    // No record is shorter than a word, nor has more than a visit where it is taken with others.
    const std::uint64_t left = VisitsLeft();
    if (left == 0) return CutHere();
    const Words stop = at + std::min(left, static_cast<std::uint64_t>(limit - at));
    if (!in_warp_) BeginWarp();
    const RecordKind kind = RecordHeader::Unpack(*at).kind;
    if (sites_ == nullptr && kind <= RecordKind::kMaskedGroup) {
      const Words from = std::exchange(at, TakeSimpleRecords(at, stop));
      if (at != from) continue;
    }
    switch (kind) {
      case RecordKind::kBlock: at = TakeBlocks(at, stop); break;
      case RecordKind::kWarpEnd:
        EndWarp();
        ++at;
        break;
      case exec::kEventRecord: at = TakeEvent(at, words_end_); break;
      default: at = TakeGroup(at, words_end_);
    }
  }
  return at;
}

/// `at` is the first record that begins in the turns. What the trace has of two turns may still differ, by what is kept
/// of patterns from one execution to the next; then one more is decoded.
RecordDecoder::Words RecordDecoder::DecodeTurns(Words at, const WordTurns& turns) {
  if (at == words_end_) return at;
  const Words first = at, end_of_turn = at + turns.period;
  std::array<Place, WordTurns::kKeptTurns> places{Here()};
  for (std::size_t i = 1; i < places.size(); ++i) {
    const Words end = at + turns.period;
    if (end > words_ + turns.at + WordTurns::kKeptTurns * turns.period) return CutHere();
    at = DecodeUpTo(at, end);
    if (at != end) return CutHere();
    places[i] = Here();
  }
  for (std::uint64_t more = turns.more; more != 0; --more) {
    if (IsTurn(places[1], places[2], places[3])) {
      AddRepeat(places[1], places[2], more);
      break;
    }
    if (DecodeUpTo(first, end_of_turn) != end_of_turn) return CutHere();
    std::ranges::rotate(places, places.begin() + 1);
    places.back() = Here();
  }
  return at;
}

/// The rest of the buffer has no place in the trace.
RecordDecoder::Words RecordDecoder::CutHere() {
  cut_ = true;
  return words_end_;
}

bool RecordDecoder::SameAccess(const MemoryAccess& a, const MemoryAccess& b) const {
  if (a.mask != b.mask || a.stride != b.stride) return false;
  if (a.stride != MemoryAccess::kScattered || a.mask == 0) return a.base == b.base;
  const std::uint32_t* const first = lanes_.begin() + a.base;
  const std::uint32_t unit = ScatteredLanes::At(first).unit;
  const std::uint32_t words = ScatteredLanes::Words(unit, static_cast<std::uint32_t>(std::popcount(a.mask)));
  return std::equal(first, first + words, lanes_.begin() + b.base);
}

/// Whether the same was done from `begin` to `middle` as from there to `end`, and can be done again behind it.
bool RecordDecoder::IsTurn(const Place& begin, const Place& middle, const Place& end) const {
  const std::size_t visits = middle.visits - begin.visits, accesses = middle.accesses - begin.accesses;
  const bool same_warp = begin.in_warp && end.in_warp && begin.warps == end.warps && begin.events == end.events;
  if (!same_warp || visits == 0 || end.visits - middle.visits != visits || end.accesses - middle.accesses != accesses)
    return false;
  if (begin.next != middle.next || begin.end != middle.end || middle.next != end.next || middle.end != end.end)
    return false;
  const auto same_visit = [](const BlockVisit& a, const BlockVisit& b) {
    return a.block == b.block && a.mask == b.mask;
  };
  const BlockVisit* const visit = visits_.begin() + begin.visits;
  if (!std::equal(visit, visit + visits, visit + visits, same_visit)) return false;
  const MemoryAccess* const access = accesses_.begin() + begin.accesses;
  return std::equal(access, access + accesses, access + accesses,
                    [&](const auto& a, const auto& b) { return SameAccess(a, b); });
}

/// What is between these places comes so many times more.
void RecordDecoder::AddRepeat(const Place& begin, const Place& end, std::uint64_t more) {
  // The first visit's accesses begin behind those that the block before it is still to make.
  const std::uint32_t before = begin.next < begin.end ? entries_[begin.end].number - entries_[begin.next].number : 0;
  const std::uint64_t visits = end.visits - begin.visits;
  const std::uint64_t left = (kMostVisitsMade - kMostVisits - visits_made_) / visits;
  cut_ |= more > left;
  more = std::min(more, left);
  if (more == 0) return;
  visits_made_ += more * visits;
  trace_->repeats.push_back({.warp = static_cast<std::uint32_t>(trace_->warps.size()),
                             .visit = static_cast<std::uint32_t>(begin.visits) - first_visit_,
                             .visit_count = static_cast<std::uint32_t>(visits),
                             .access = static_cast<std::uint32_t>(begin.accesses) + before - first_access_,
                             .access_count = static_cast<std::uint32_t>(end.accesses - begin.accesses),
                             .more = more});
}

void RecordDecoder::BeginWarp() {
  local_base_ = place_.local_base + trace_->warps.size() * place_.local_stride * kWarpSize;
  first_visit_ = static_cast<std::uint32_t>(visits_.size());
  first_access_ = static_cast<std::uint32_t>(accesses_.size());
  next_ = end_ = 0;
  in_warp_ = true;
}

void RecordDecoder::EndWarp() {
  SkipTo(end_);
  in_warp_ = false;
  WarpTrace& warp = trace_->warps.emplace_back();
  warp.first_visit = first_visit_;
  warp.visit_count = static_cast<std::uint32_t>(visits_.size()) - first_visit_;
  warp.first_access = first_access_;
  warp.access_count = static_cast<std::uint32_t>(accesses_.size()) - first_access_;
}

/// Memory instructions before `entry` that made no record were off for all lanes.
void RecordDecoder::SkipTo(std::uint32_t entry) {
  if (next_ >= entry) return;
  if (const std::uint32_t off = entries_[entry].number - entries_[next_].number; off != 0) {
    std::fill_n(accesses_.Add(off), off, MemoryAccess{});
  }
  next_ = entry;
}

static_assert(static_cast<int>(EventKind::kDeviceLaunch) == exec::RecordedEvent::kDeviceLaunch &&
              static_cast<int>(EventKind::kSetRange) == exec::RecordedEvent::kSetRange &&
              static_cast<int>(EventKind::kReleaseRange) == exec::RecordedEvent::kReleaseRange &&
              static_cast<int>(EventKind::kStreamCreate) == exec::RecordedEvent::kStreamCreate);

/// It belongs to the last visit of the instruction's block by its lanes: the others may have gone on before.
RecordDecoder::Words RecordDecoder::TakeEvent(Words at, Words end) {
  if (static_cast<std::size_t>(end - at) < exec::RecordedEvent::kWords) return end;
  const Words next = at + exec::RecordedEvent::kWords;
  const RecordHeader header = RecordHeader::Unpack(*at);
  const exec::RecordedEvent recorded = exec::RecordedEvent::At(at);
  if (header.instruction >= table_.entries.size()) return next;
  const std::uint32_t instruction = table_.entries[header.instruction].first;
  for (std::size_t visit = visits_.size(); visit-- > first_visit_;) {
    const BlockVisit& visited = visits_.begin()[visit];
    const BasicBlock& block = table_.code.blocks[visited.block];
    if (instruction < block.first || instruction - block.first >= block.count || (header.mask & ~visited.mask) != 0)
      continue;
    trace_->events.push_back({.kind = static_cast<EventKind>(recorded.kind),
                              .flags = recorded.flags,
                              .warp = static_cast<std::uint32_t>(trace_->warps.size()),
                              .visit = static_cast<std::uint32_t>(visit) - first_visit_,
                              .instruction = instruction,
                              .lanes = header.mask,
                              .data = recorded.data});
    return next;
  }
  ++dropped_;
  return next;
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
    return SiteOf(at, at, reader.slot().form != exec::RecordSlot::kFixed);
  }
  SkipTo(at);
  const std::uint32_t first = at;
  for (std::uint32_t done = 0; done < header.bytes && at < entry_end && entries_[at].kind == kind; ++at) {
    const MemoryAccess access = AccessOf(reader, at, done);
    *accesses_.Add(1) = access;
    done += entries_[at].width;
  }
  next_ = at;
  return SiteOf(first, at, (kind & (kShared | kLocal)) == 0 && reader.slot().form != exec::RecordSlot::kFixed);
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
      moved[lane] = MemoryAccess::kLocalWindow +
                    LocalAddress(local_base_, offset % place_.local_stride, offset / place_.local_stride % kWarpSize);
    }
    lanes = moved.data();
  } else if (const bool local = space == exec::Space::kLocal; local || add != 0) {
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
      moved[lane] = local ? LocalAddress(local_base_, lanes[lane] + done, lane) : lanes[lane] + add;
    lanes = moved.data();
  }
  AddShape(at, lanes, access);
  return access;
}

void RecordDecoder::AddLanes(const std::uint64_t* lanes, MemoryAccess& access) {
  access.base = lanes_.size();
  access.stride = MemoryAccess::kScattered;
  std::uint64_t active[kWarpSize];
  std::size_t count = 0;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) active[count++] = lanes[std::countr_zero(rest)];
  std::uint32_t* const words = lanes_.Add(ScatteredLanes::kMostWords);
  lanes_.TakeBack(ScatteredLanes::kMostWords - PutLanes({active, count}, words));
}

/// Lanes of which mostly nobody expects any more that they lie in some order.
void RecordDecoder::AddNear(std::uint32_t at, const exec::NearLanes& lanes, std::uint64_t add, MemoryAccess& access) {
  if (const Entry& entry = EntryOf(at); entry.pattern >= 0 || entry.patience != 0) {
    std::array<std::uint64_t, kWarpSize> addresses;
    lanes.Expand(addresses.data());
    for (std::uint64_t& address : addresses) address += add;
    return AddShape(at, addresses.data(), access);
  }
  const std::uint64_t low = lanes.low + add;
  access.base = lanes_.size();
  access.stride = MemoryAccess::kScattered;
  constexpr std::uint32_t kMost = ScatteredLanes::kHeadWords + kWarpSize;
  std::uint32_t* const words = lanes_.Add(kMost);
  ScatteredLanes::PutHead(low, lanes.unit, words);
  std::uint32_t* const begin = words + ScatteredLanes::kHeadWords;
  std::uint32_t* end = begin + lanes.count;
  if (lanes.mask == access.mask) {
    // As many as there can be, where there is something to read: nobody can foretell how many there are.
    if (lanes.distances + kWarpSize <= reinterpret_cast<const std::uint32_t*>(words_end_))
      std::copy_n(lanes.distances, kWarpSize, begin);
    else std::copy_n(lanes.distances, lanes.count, begin);
  } else {
    end = begin;
    for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1)
      *end++ = lanes.distances[std::popcount(lanes.mask & ((rest & (0 - rest)) - 1))];
  }
  lanes_.TakeBack(kMost - static_cast<std::size_t>(end - words));
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
  access.stride = KnownPattern(reader.pattern());
  return access.stride != MemoryAccess::kScattered;
}

std::int32_t RecordDecoder::NamePattern(const std::int64_t* pattern) {
  Known*& last = last_known_[SlotOf(pattern) % kLastKnown];
  if (last == nullptr || last->pattern != pattern) last = &FindKnown(pattern);
  if (last->is_stride || last->cta == ctas_) return last->stride;
  if (!last->fits || trace_->patterns.size() >= kMostPatterns) return MemoryAccess::kScattered;
  last->cta = ctas_;
  last->stride = MemoryAccess::kFirstPattern + static_cast<std::int32_t>(trace_->patterns.size());
  trace_->patterns.push_back(last->offsets);
  return last->stride;
}

RecordDecoder::Known& RecordDecoder::FindKnown(const std::int64_t* pattern) {
  for (Known& known : known_) {
    if (known.pattern == pattern) return known;
  }
  Known& made = known_.emplace_back();
  made.pattern = pattern;
  if (const std::optional<std::int32_t> stride = StrideOf(pattern)) {
    made.is_stride = true;
    made.stride = *stride;
  }
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    made.offsets[lane] = static_cast<std::int32_t>(pattern[lane]);
    made.fits &= made.offsets[lane] == pattern[lane];
  }
  return made;
}

/// Lanes that lie as they did when the instruction was executed last, somewhere else. Instructions whose lanes never do
/// that are soon left alone.
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
  LanePattern pattern;
  if (!PatternOf(access.mask, lanes, pattern)) return false;
  --entry.patience;
  entry.pattern = static_cast<std::int32_t>(trace_->patterns.size());
  entry.offsets = static_cast<std::uint32_t>(wide_.size());
  trace_->patterns.push_back(pattern);
  wide_.push_back(Widen(pattern));
  access.base = lanes[std::countr_zero(access.mask)];
  access.stride = MemoryAccess::kFirstPattern + entry.pattern;
  return true;
}

/// The site of a record that the entries [from, to) take: a new one at their first record. Addresses of shared and
/// local memory do not move.
std::uint16_t RecordDecoder::SiteOf(std::uint32_t from, std::uint32_t to, bool moves) {
  if (sites_ == nullptr || !sites_->usable || !moves) return RecordSites::kFixed;
  if (from != to) {
    for (std::uint32_t at = from + 1; at < to; ++at) Join(from, at);
    if (const std::uint16_t known = EntryOf(LeaderOf(from)).site; known != 0 || !sites_->usable) {
      std::fill(sites_->of.begin() + entries_[from].number, sites_->of.begin() + entries_[from].number + (to - from),
                known);
      return known;
    }
  }
  // What has no place in the trace may lie anywhere: a site of its own each time.
  if (sites_->count >= kMostSites) sites_->usable = false;
  if (!sites_->usable) return RecordSites::kFixed;
  const auto made = static_cast<std::uint16_t>(sites_->count++);
  if (from == to) return made;
  EntryOf(LeaderOf(from)).site = made;
  std::fill(sites_->of.begin() + entries_[from].number, sites_->of.begin() + entries_[from].number + (to - from), made);
  return made;
}

}  // namespace gridloom::trace
