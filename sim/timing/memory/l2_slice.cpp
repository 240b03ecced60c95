#include "sim/timing/memory/l2_slice.h"

#include <algorithm>
#include <bit>

#include "rewriter/support/check.h"
#include "sim/timing/memory/set_search.h"

namespace gridloom::timing {
namespace {

constexpr std::uint8_t kWholeLine = 0xf;

std::uint32_t CountOf(std::uint8_t mask) { return static_cast<std::uint32_t>(std::popcount(mask)); }

bool IsAtomic(RequestKind kind) { return kind == RequestKind::kAtomic || kind == RequestKind::kReduce; }
/// Nothing is read for it.
bool IsWrite(RequestKind kind) {
  return kind == RequestKind::kWrite || kind == RequestKind::kWriteBack || kind == RequestKind::kFlush ||
         kind == RequestKind::kSweep || kind == RequestKind::kCopied;
}

/// Turns the sets of different tags against each other, so that strides spread over the sets.
std::uint64_t Turn(std::uint32_t tag) { return tag ^ (tag >> 5) ^ (tag >> 11); }

}  // namespace

L2Slice::L2Slice(const Parameters& parameters, const AddressMap& map, const Ports& ports, std::uint32_t partition,
                 std::uint32_t index, DramChannel& dram, MemoryCounters& counters)
    : parameters_(parameters),
      map_(map),
      ports_(ports),
      partition_(partition),
      index_(index),
      source_(static_cast<std::uint16_t>(partition * parameters.slices_per_partition() + index)),
      dram_(dram),
      counters_(counters),
      out_port_(parameters.SliceOutPort()),
      sets_(parameters.l2_sets()),
      ways_(parameters.timing().l2.ways),
      stride_((ways_ + kWaysPerStep - 1) / kWaysPerStep * kWaysPerStep),
      tags_(std::size_t{parameters.l2_sets()} * stride_, kNone),
      lines_(tags_.size()),
      copied_(parameters.timing().l2.halves > 1 ? tags_.size() : 0),
      stored_(tags_.size()),
      used_(tags_.size()),
      clock_(parameters.l2_sets()) {
  for (std::size_t i = 0; i < used_.size(); ++i) used_[i] = i % stride_ < ways_ ? 0 : kBehind;
  for (std::uint32_t packet = 0; packet <= 4; ++packet) {
    for (std::uint32_t data = 0; data <= 4; ++data) occupancy_.push_back(parameters.SliceOccupancy(packet, data));
  }
  const std::uint32_t width = parameters.timing().dram.access_bytes / sim::TimingSpec::kSectorBytes;
  for (std::uint32_t mask = 0; mask < 16; ++mask) {
    for (std::uint32_t first = 0; first < 4; first += width) {
      const std::uint32_t burst = ((1u << width) - 1) << first;
      if ((mask & burst) == 0) continue;
      granules_[mask] |= static_cast<std::uint8_t>(burst);
      ++bursts_[mask];
    }
  }
}

L2Slice::SetTag L2Slice::Locate(std::uint64_t local) const {
  const std::uint64_t quotient = sets_.Quotient(local);
  GL_CHECK(quotient <= kNone, "an address above 2^47 reached L2");
  // The last tag stands for no line: the lines that would have it share those of the one before.
  const std::uint64_t tag = std::min<std::uint64_t>(quotient, kNone - 1);
  const std::uint64_t set = sets_.Remainder(local + Turn(static_cast<std::uint32_t>(tag)));
  return {.set = static_cast<std::uint32_t>(set), .tag = static_cast<std::uint32_t>(tag)};
}

std::uint64_t L2Slice::LocalOf(std::uint32_t line) const {
  const std::uint64_t set = line / stride_;
  const std::uint32_t tag = tags_[line];
  return std::uint64_t{tag} * sets_.value() + sets_.Remainder(set + sets_.value() - sets_.Remainder(Turn(tag)));
}

/// The tags of all slices do not fit the host's first caches, and the next request's set is known.
void L2Slice::Prefetch(SetTag place) const {
  constexpr std::uint32_t kHostLine = 64;
  const std::size_t first = std::size_t{place.set} * stride_;
  __builtin_prefetch(&used_[first]);
  for (std::uint32_t way = 0; way < ways_; way += kHostLine / sizeof(Line)) {
    __builtin_prefetch(&tags_[first + way]);
    __builtin_prefetch(&lines_[first + way]);
  }
}

std::uint32_t L2Slice::FindLine(SetTag place) const {
  const std::uint32_t first = place.set * stride_;
  const std::uint64_t found = Matches(tags_.data() + first, stride_, place.tag);
  return found == 0 ? kNone : first + static_cast<std::uint32_t>(std::countr_zero(found));
}

Cycle L2Slice::Occupancy(const Request& request) const {
  const std::uint32_t sectors = CountOf(request.sectors());
  const Cycle plain = occupancy_[(request.kind() == RequestKind::kRead ? 0 : sectors) * 5 + sectors];
  if (!IsAtomic(request.kind())) return plain;
  const sim::TimingSpec::L2& l2 = parameters_.timing().l2;
  const std::uint32_t interval = request.is_float() ? l2.float_atomic_interval : l2.atomic_interval;
  return std::max<Cycle>(plain, Cycle{request.lanes()} * interval);
}

/// Looks for the line of the next request.
void L2Slice::FindNext() {
  if (found_) return;
  if (!located_) place_ = Locate(inbox_.front().line());
  line_ = FindLine(place_);
  located_ = found_ = true;
}

L2Slice::Missing L2Slice::MissingOf(const Request& request) const {
  const Line line = line_ == kNone ? Line{} : lines_[line_];
  Missing missing;
  missing.sectors = static_cast<std::uint8_t>(IsWrite(request.kind()) ? 0 : request.sectors() & ~line.valid);
  missing.pending = line.pending;
  missing.fetch = granules_[missing.sectors & ~line.pending];
  return missing;
}

std::uint32_t L2Slice::RoomForNext() {
  FindNext();
  return MissingOf(inbox_.front()).fetch != 0 ? 1 : 0;
}

bool L2Slice::Tick(Cycle now, Outbox<Response>& out) {
  if (inbox_.empty() || inbox_.next_arrival() > now || busy_until_ > now) return true;
  const Request& request = inbox_.front();  // stays where it is until SortInbox
  room_needed_ = 0;
  waits_for_room_only_ = false;
  FindNext();
  if (!Take(now, request, out)) return false;
  inbox_.Pop();
  found_ = false;
  located_ = !inbox_.empty();
  if (located_) {
    place_ = Locate(inbox_.front().line());
    Prefetch(place_);
  }
  // The half beside the SM has looked, too; each slice has one there that does for it what it does for that one.
  const Cycle occupied = Occupancy(request) * (looked_up_twice_ ? 2 : 1);
  busy_until_ = now + occupied;
  Count(request, occupied);
  looked_up_twice_ = false;
  return true;
}

/// What proposed parts send themselves they count themselves.
void L2Slice::Count(const Request& request, Cycle occupied) {
  counters_.l2_busy_cycles += occupied;
  if (request.sm() == Request::kNobody) return;
  counters_.l2_sector_accesses += CountOf(request.sectors()) * (looked_up_twice_ ? 2 : 1);
  if (IsAtomic(request.kind())) ++counters_.l2_atomics;
  else ++(IsWrite(request.kind()) ? counters_.l2_writes : counters_.l2_reads);
}

L2Access L2Slice::AccessOf(const Request& request) const {
  const LineHome home{.partition = static_cast<std::uint16_t>(partition_),
                      .slice = static_cast<std::uint8_t>(index_),
                      .local = request.line()};
  return {.partition = partition_,
          .slice = index_,
          .launch = request.launch(),
          .sm = request.sm(),
          .line = map_.Line(home),
          .kind = request.kind(),
          .sectors = request.sectors()};
}

/// Writes the line of the next request back if it is dirty, and drops it. A line whose sectors are on their way waits
/// for them.
bool L2Slice::Flush(Cycle now) {
  if (line_ == kNone) return true;
  Line& line = lines_[line_];
  if (line.pending != 0) return false;
  if (line.dirty != 0 && dram_.room() == 0) {
    room_needed_ = 1;
    return false;
  }
  Drop(now, line_);
  return true;
}

/// A line for which nothing is outstanding leaves its place, which is free then. If it is dirty, DRAM's queue has room
/// for it.
void L2Slice::Drop(Cycle now, std::uint32_t index) {
  ++changes_;
  ++counters_.l2_evictions;
  if (lines_[index].dirty != 0) WriteBack(now, index);
  if (ports_.l2 != nullptr) ports_.l2->OnEvict(now, partition_, index_, PlaceOf(index));
  tags_[index] = kNone;
  used_[index] = 0;
  lines_[index] = {};
  Forget(index);
}

/// Drops the lines that a part names: those that are clean in the first cycle in which DRAM's queue has room, then one
/// that is dirty in each such cycle. Lines whose sectors are on their way stay. True when it is done.
bool L2Slice::Sweep(Cycle now, std::uint64_t tag) {
  if (ports_.l2 == nullptr) return true;
  room_needed_ = 1;
  waits_for_room_only_ = true;
  if (dram_.room() == 0) return false;
  if (!sweeping_) {
    sweeping_ = true;
    swept_.clear();
    ports_.l2->OnSweep(now, partition_, index_, tag, swept_);
    std::erase_if(swept_, [&](const L2Place& place) {
      const std::uint32_t index = place.set * stride_ + place.way;
      const Line line = lines_[index];
      if (tags_[index] == kNone || line.pending != 0) return true;
      if (line.dirty != 0) return false;
      Drop(now, index);
      return true;
    });
    std::ranges::reverse(swept_);  // the first one goes first
  }
  if (!swept_.empty()) {
    Drop(now, swept_.back().set * stride_ + swept_.back().way);
    swept_.pop_back();
  }
  sweeping_ = !swept_.empty();
  return !sweeping_;
}

/// Lines that a copy has written are here, and DRAM has them, too.
void L2Slice::Bring(Cycle now, std::uint64_t local, std::uint32_t count) {
  for (const std::uint64_t end = local + count; local != end; ++local) {
    place_ = Locate(local);
    std::uint32_t index = FindLine(place_);
    const bool hit = index != kNone;
    if (!hit) index = GiveWay(now);
    if (index == kNone) continue;
    ++changes_;
    lines_[index].valid = kWholeLine;
    if (!copied_.empty()) copied_[index] = 0;
    Use(index);
    if (ports_.l2 == nullptr) continue;
    const LineHome home{.partition = static_cast<std::uint16_t>(partition_),
                        .slice = static_cast<std::uint8_t>(index_),
                        .local = local};
    ports_.l2->OnAccess(now,
                        {.partition = partition_,
                         .slice = index_,
                         .sm = Request::kNobody,
                         .line = map_.Line(home),
                         .kind = RequestKind::kCopied,
                         .sectors = kWholeLine},
                        PlaceOf(index), hit);
  }
}

/// The least recently used way of the set at place_, for a line that a copy brings; kNone while data are on their way
/// to all. What was dirty there has been written back while the copy went on.
std::uint32_t L2Slice::GiveWay(Cycle now) {
  const std::uint32_t first = place_.set * stride_;
  const std::uint32_t victim = first + FirstLeast(used_.data() + first, stride_);
  if ((used_[victim] & kPinned) != 0) return kNone;
  if (tags_[victim] != kNone) {
    ++counters_.l2_evictions;
    counters_.l2_write_backs += lines_[victim].dirty != 0 ? 1 : 0;
    if (ports_.l2 != nullptr) ports_.l2->OnEvict(now, partition_, index_, PlaceOf(victim));
  }
  tags_[victim] = place_.tag;
  lines_[victim] = {};
  Forget(victim);
  return victim;
}

bool L2Slice::Take(Cycle now, const Request& request, Outbox<Response>& out) {
  if (request.kind() == RequestKind::kCopied) {
    Bring(now, request.line(), request.launch());
    return true;
  }
  if (request.kind() == RequestKind::kFlush) return Flush(now);
  if (request.kind() == RequestKind::kSweep) return Sweep(now, request.line());
  std::uint32_t index = line_;
  const bool reads = !IsWrite(request.kind());
  const auto [missing, pending, fetch] = MissingOf(request);
  if (fetch != 0 && pending == 0 && outstanding_ >= parameters_.timing().l2.mshrs) return false;
  if (missing != 0 && !has_room_for_waiter()) return false;  // data of others are on their way
  if (fetch != 0 && dram_.room() == 0) {
    room_needed_ = 1;
    waits_for_room_only_ = true;  // sectors that nobody has asked for yet do not come
    return false;
  }
  if (index == kNone) index = Replace(now, request, fetch != 0);
  if (index == kNone) return false;
  if (ports_.l2 != nullptr) ports_.l2->OnAccess(now, AccessOf(request), PlaceOf(index), line_ != kNone);
  for (AccessEvents* const listener : ports_.access_events) listener->OnL2(now, AccessOf(request));

  const Cycle later = HalfCycles(index, request, missing == 0);
  Line& line = lines_[index];
  const Line before = line;
  Use(index);
  counters_.l2_sector_misses += CountOf(missing);
  counters_.l2_sector_merges += CountOf(missing & pending);
  // A request that needs a fetch and nothing else waits with it.
  const bool waits_alone = pending == 0 && line.first_waiter == kNoWaiter;
  if (fetch != 0) Read(now, index, request, fetch, waits_alone);
  if (!reads) {
    line.dirty |= request.sectors();
    line.valid |= request.sectors() & static_cast<std::uint8_t>(~request.partial());
    if (request.partial() != 0) line.valid |= Complete(index, request.words());
  }
  if (missing != 0) {
    if (!waits_alone) AddWaiter(line, request);
    return true;
  }
  if (IsAtomic(request.kind())) line.dirty |= request.sectors();
  if (line.valid != before.valid || line.dirty != before.dirty) ++changes_;
  Answer(now, request.sm(), request.id(), request.kind(), request.sectors(), later, out);
  return true;
}

/// Of L2's halves, each beside one half of the SMs.
bool L2Slice::IsFar(std::uint16_t sm) const {
  if (copied_.empty() || sm == Request::kNobody) return false;
  const bool sm_half = 2u * sm >= parameters_.device.sm.count;
  const bool own_half = 2 * partition_ >= parameters_.timing().dram.channels;
  return sm_half != own_half;
}

/// What a request takes longer because its line belongs to the other half than its SM. A read leaves a copy in the half
/// of its SM, where the next one finds it; a write takes that away. Latencies of DRAM are those of both halves.
Cycle L2Slice::HalfCycles(std::uint32_t index, const Request& request, bool hits) {
  if (copied_.empty()) return 0;
  const bool is_far = IsFar(request.sm());
  std::uint8_t& copied = copied_[index];
  const auto sectors = request.sectors();
  if (request.kind() != RequestKind::kRead) {
    if ((copied & sectors) != 0) ++changes_;
    copied &= static_cast<std::uint8_t>(~sectors);
    return is_far ? parameters_.timing().l2.far_cycles : 0;
  }
  if (!is_far || (copied & sectors) == sectors) return 0;
  copied |= sectors;
  ++changes_;
  looked_up_twice_ = true;
  return hits ? parameters_.timing().l2.far_cycles : 0;
}

/// A place has no line any more, or another one.
void L2Slice::Forget(std::uint32_t index) {
  stored_[index] = 0;
  if (!copied_.empty()) copied_[index] = 0;
}

/// Words of a line have been stored. Returns the sectors of which no word is missing now.
std::uint8_t L2Slice::Complete(std::uint32_t index, std::uint32_t words) {
  constexpr std::uint32_t kSector = 0xff;  // of the mask of words
  if ((words & ~stored_[index]) != 0) ++changes_;
  stored_[index] |= words;
  std::uint8_t complete = 0;
  for (std::uint32_t s = 0; s < 4; ++s) {
    if ((stored_[index] >> 8 * s & kSector) == kSector) complete |= static_cast<std::uint8_t>(1u << s);
  }
  return complete;
}

/// Marks a line of the set that the current request falls on as used last.
void L2Slice::Use(std::uint32_t line) {
  std::uint8_t& clock = clock_[place_.set];
  if (clock == kLatestUse) clock = NumberByAge(used_.data() + std::size_t{place_.set} * stride_, stride_, ways_);
  used_[line] = static_cast<std::uint8_t>(++clock | (lines_[line].pending != 0 ? kPinned : 0));
}

/// The least recently used of some ways of the set that begins at `first`; of all if none of them exists.
std::uint32_t L2Slice::Oldest(std::uint32_t first, std::uint64_t ways) const {
  const std::uint8_t* const used = used_.data() + first;
  std::uint32_t oldest = kNone;
  for (std::uint32_t way = 0; way < ways_; ++way) {
    if ((ways >> way & 1) != 0 && (oldest == kNone || used[way] < used[oldest])) oldest = way;
  }
  return oldest == kNone ? FirstLeast(used, stride_) : oldest;
}

/// The least recently used way that nothing is outstanding for, emptied; kNone when there is none or DRAM's queue has
/// no room for its dirty sectors (and the read that follows).
std::uint32_t L2Slice::Replace(Cycle now, const Request& request, bool also_reads) {
  const std::uint32_t first = place_.set * stride_;
  std::uint32_t oldest;
  if (ports_.l2 == nullptr) oldest = FirstLeast(used_.data() + first, stride_);
  else oldest = Oldest(first, ports_.l2->Candidates(now, AccessOf(request), place_.set));
  if ((used_[first + oldest] & kPinned) != 0) return kNone;
  const std::uint32_t victim = first + oldest;
  if (tags_[victim] != kNone) {
    const bool dirty = lines_[victim].dirty != 0;
    const std::uint32_t entries = also_reads ? 2 : 1;
    if (dirty && dram_.room() < entries) {
      room_needed_ = entries;
      return kNone;
    }
    ++counters_.l2_evictions;
    if (dirty) WriteBack(now, victim);
    if (ports_.l2 != nullptr) ports_.l2->OnEvict(now, partition_, index_, PlaceOf(victim));
  }
  ++changes_;
  tags_[victim] = place_.tag;
  lines_[victim] = {};
  Forget(victim);
  return victim;
}

void L2Slice::Read(Cycle now, std::uint32_t index, const Request& request, std::uint8_t sectors, bool waits_alone) {
  Line& line = lines_[index];
  if (line.pending == 0) ++outstanding_;
  line.pending |= sectors;
  used_[index] |= kPinned;
  std::uint32_t fetch = free_fetch_;
  if (fetch == kNone) {
    fetch = static_cast<std::uint32_t>(fetches_.size());
    fetches_.emplace_back();
  } else {
    free_fetch_ = fetches_[fetch].line;
  }
  fetches_[fetch] = {.line = index,
                     .sm = request.sm(),
                     .id = request.id(),
                     .kind = request.kind(),
                     .sectors = sectors,
                     .wanted = waits_alone ? request.sectors() : std::uint8_t{0}};
  const DramPlace place = map_.Place(static_cast<std::uint8_t>(index_), request.line());
  // The tag tells the partition the slice, too.
  dram_.Add(parameters_.l2_to_dram.Forward(now + 1), place.bank, place.row, bursts_[sectors], false,
            fetch << kTagSliceBits | index_);
}

void L2Slice::WriteBack(Cycle now, std::uint32_t index) {
  ++counters_.l2_write_backs;
  const DramPlace place = map_.Place(static_cast<std::uint8_t>(index_), LocalOf(index));
  dram_.Add(parameters_.l2_to_dram.Forward(now + 1), place.bank, place.row, bursts_[lines_[index].dirty], true, 0);
}

void L2Slice::AddWaiter(Line& line, const Request& request) {
  std::uint32_t index = free_waiter_;
  if (index == kNoWaiter) {
    index = static_cast<std::uint32_t>(waiters_.size());
    waiters_.emplace_back();
  } else {
    free_waiter_ = waiters_[index].next;
  }
  waiters_[index] = {.sm = request.sm(), .id = request.id(), .kind = request.kind(), .sectors = request.sectors()};
  if (line.first_waiter == kNoWaiter) line.first_waiter = index;
  else waiters_[waiters_[line.first_waiter].last].next = index;
  waiters_[line.first_waiter].last = index;
}

void L2Slice::Fill(Cycle now, std::uint32_t fetch, Outbox<Response>& out) {
  const Fetch done = fetches_[fetch];
  ++changes_;
  fetches_[fetch].line = free_fetch_;
  free_fetch_ = fetch;
  Line line = lines_[done.line];
  line.valid |= done.sectors;
  line.pending &= static_cast<std::uint8_t>(~done.sectors);
  if (line.pending == 0) {
    --outstanding_;
    used_[done.line] &= kLatestUse;
  }
  if (done.wanted != 0) {
    if (IsAtomic(done.kind)) line.dirty |= done.wanted;
    Answer(now, done.sm, done.id, done.kind, done.wanted, 0, out);
  }
  std::uint32_t previous = kNoWaiter;
  for (std::uint32_t index = line.first_waiter; index != kNoWaiter;) {
    Waiter& waiter = waiters_[index];
    const std::uint32_t next = waiter.next;
    if ((waiter.sectors & ~line.valid) != 0) {
      previous = index;
    } else {
      if (IsAtomic(waiter.kind)) line.dirty |= waiter.sectors;
      Answer(now, waiter.sm, waiter.id, waiter.kind, waiter.sectors, 0, out);
      if (previous == kNoWaiter) line.first_waiter = next;
      else waiters_[previous].next = next;
      waiter.next = free_waiter_;
      free_waiter_ = index;
    }
    index = next;
  }
  if (line.first_waiter != kNoWaiter) waiters_[line.first_waiter].last = previous;
  lines_[done.line] = line;
}

/// `later`: cycles that it takes on its way besides.
void L2Slice::Answer(Cycle now, std::uint16_t sm, std::uint16_t id, RequestKind kind, std::uint8_t sectors, Cycle later,
                     Outbox<Response>& out) {
  if (kind == RequestKind::kWriteBack || sm == Request::kNobody) return;
  if (kind == RequestKind::kWrite || kind == RequestKind::kReduce) sectors = 0;
  ++counters_.l2_responses;
  counters_.l2_response_sectors += CountOf(sectors);
  // The access takes a cycle; then the packet leaves.
  const Cycle sent = out_port_.Send(parameters_.sm_to_l2.Back(now + 1), CountOf(sectors));
  Response& response = out.New(sm);
  response.arrival = sent + parameters_.response_latency + later;
  response.sm = sm;
  response.id = id;
  response.source = source_;
  response.kind = kind;
  response.sectors = sectors;
}

void L2Slice::Walk(StateWalk& walk) {
  if (outstanding_ != 0 || sweeping_ || inbox_.has_new()) return walk.Refuse();
  walk.Word(changes_);
  walk.Word(inbox_.size());
  inbox_.ForEach([&](Request& request) { request.Walk(walk); });
  out_port_.Walk(walk);
  walk.L2NotBefore(busy_until_);
  walk.Word(room_needed_);
  walk.Word(waits_for_room_only_);
}

}  // namespace gridloom::timing
