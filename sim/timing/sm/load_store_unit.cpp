#include "sim/timing/sm/load_store_unit.h"

#include <algorithm>
#include <bit>

#include "rewriter/support/check.h"

namespace gridloom::timing {
namespace {

constexpr std::uint32_t kNoLoad = ~std::uint32_t{0};
constexpr std::uint8_t kAllSectors = 0xf;

/// MSHRs are found by line and cache.
constexpr unsigned kCacheShift = 52;
static_assert(kCacheShift >= LineAccess::kLineBits && kCacheShift + 3 < MshrTable::kKeyBits);

std::uint64_t LineOf(std::uint64_t key) { return key & ((std::uint64_t{1} << kCacheShift) - 1); }

bool Has(const DecodedOp& op, unsigned flags) { return (op.flags & flags) != 0; }

}  // namespace

LoadStoreUnit::LoadStoreUnit(const Parameters& parameters, const AddressMap& map, const Ports& ports, std::uint32_t sm,
                             bool plain, SmCounters& counters)
    : parameters_(parameters),
      map_(map),
      ports_(ports),
      sm_(sm),
      plain_(plain),
      counters_(counters),
      queue_(parameters.timing().l1.queue),
      mshrs_(parameters.timing().l1.mshrs, parameters.timing().l1.merges, plain),
      tlb_(parameters.timing().tlb.entries, parameters.timing().tlb.ways, parameters.device.memory.page_bytes,
           parameters.timing().tlb.miss_cycles),
      port_(parameters.SmOutPort()),
      free_load_(kNoLoad) {
  const sim::TimingSpec& timing = parameters.timing();
  const auto set = [&](CacheId id, std::uint32_t size, std::uint32_t ways, std::uint32_t latency) {
    caches_[static_cast<std::size_t>(id)] = Cache(size, ways);
    hit_latency_[static_cast<std::size_t>(id)] = latency;
  };
  set(CacheId::kL1, timing.l1.size_bytes, timing.l1.ways, timing.l1.latency);
  set(CacheId::kConstant, timing.constant.size_bytes, timing.constant.ways, timing.constant.latency);
  set(CacheId::kTexture, timing.texture.size_bytes, timing.texture.ways, timing.texture.latency);
}

std::uint64_t LoadStoreUnit::KeyOf(CacheId cache, std::uint64_t line) {
  return line | static_cast<std::uint64_t>(cache) << kCacheShift;
}

LoadStoreUnit::CacheId LoadStoreUnit::CacheOf(const DecodedOp& op, trace::Space space) const {
  const sim::TimingSpec& timing = parameters_.timing();
  const bool read_only = space == trace::Space::kTexture || Has(op, trace::kReadOnly);
  if (space == trace::Space::kConstant) return CacheId::kConstant;
  if (read_only) return timing.texture.size_bytes > 0 ? CacheId::kTexture : CacheId::kL1;
  if (space == trace::Space::kLocal) return CacheId::kL1;
  if (Has(op, trace::kAtomic | trace::kVolatile | trace::kCacheGlobal) || !timing.l1.global) return CacheId::kNone;
  return CacheId::kL1;
}

std::uint32_t LoadStoreUnit::Passes(const MemoryInstruction& instruction) const {
  const sim::TimingSpec::Shared& shared = parameters_.timing().shared;
  const DecodedOp& op = *instruction.op;
  if (Has(op, trace::kAtomic)) {
    return SharedAtomicPasses(*instruction.cta, instruction.access, op.width, shared.banks, shared.bank_bytes,
                              shared.atomic_interval);
  }
  const bool twins = shared.twins && !Has(op, trace::kStore);
  return SharedPasses(*instruction.cta, instruction.access, op.width, shared.banks, shared.bank_bytes, twins);
}

std::uint32_t LoadStoreUnit::Accept(const MemoryInstruction& instruction) {
  Entry& entry = queue_[(head_ + count_) % queue_.size()];
  ++count_;
  entry.instruction = instruction;
  entry.is_store = Has(*instruction.op, trace::kStore);
  entry.next_line = 0;
  entry.load = entry.is_store ? kNoLoad : NewLoad(instruction);
  const trace::AccessWindow window =
      trace::WindowOf(instruction.op->space, instruction.op->flags, *instruction.cta, instruction.access);
  entry.space = window.space;
  if (entry.space == trace::Space::kShared) {
    entry.passes = Passes(instruction);
    entry.lines.count = 0;
    return 0;
  }
  entry.cache = CacheOf(*instruction.op, entry.space);
  const auto coalesce = plain_ ? CoalescePlainly : Coalesce;
  coalesce(*instruction.cta, instruction.access, instruction.shift - window.added, instruction.op->width,
           {.atomic = Has(*instruction.op, trace::kAtomic), .store = entry.is_store}, entry.lines);
  for (std::uint32_t i = 0; i < entry.lines.count; ++i)
    entry.lines.lines[i].line = instruction.memory->PhysicalLine(entry.lines.lines[i].line);
  entry.data_cycles = DataCycles(entry);
  return entry.is_store ? entry.lines.count : 0;
}

/// What the words of all lanes take between L1 and the registers. An L1 that looks up several lines a cycle has its
/// data in the banks that it shares with shared memory, and as many passes over them; one that looks up a line a cycle
/// gives that line.
std::uint32_t LoadStoreUnit::DataCycles(const Entry& entry) const {
  const MemoryInstruction& instruction = entry.instruction;
  const bool by_line = entry.cache == CacheId::kConstant || Has(*instruction.op, trace::kAtomic);
  if (parameters_.timing().l1.tags == 1 || by_line) return 1;
  const sim::TimingSpec::Shared& shared = parameters_.timing().shared;
  return std::max(1u, SharedPasses(*instruction.cta, instruction.access, instruction.op->width, shared.banks,
                                   shared.bank_bytes, false));
}

void LoadStoreUnit::Tick(Cycle now, Outbox<Request>& out) {
  if (count_ == 0 || now < busy_until_ || (!plain_ && now < blocked_until_)) return;
  Entry& entry = queue_[head_];
  if (entry.space == trace::Space::kShared) return TickShared(now, entry);
  if (entry.lines.count > 0 && !AccessLines(now, entry, out)) return;
  busy_until_ = now + 1;
  if (entry.next_line >= entry.lines.count) {
    known_absent_ = false;
    blocked_until_ = 0;
    FinishLines(now, entry);
    Pop();
  }
  if (!plain_ && count_ > 0 && mshrs_.full()) SleepIfMissing(queue_[head_]);
}

/// The lines of this cycle. False when nothing could be done.
bool LoadStoreUnit::AccessLines(Cycle now, Entry& entry, Outbox<Request>& out) {
  const bool one_by_one = entry.cache == CacheId::kConstant;
  const std::uint32_t most = one_by_one ? 1 : parameters_.timing().l1.tags;
  if (entry.next_line == 0) data_until_ = now + entry.data_cycles;
  for (looked_up_ = 0; looked_up_ < most && entry.next_line < entry.lines.count; ++looked_up_) {
    if (!AccessLine(now, entry, entry.lines.lines[entry.next_line], out)) return looked_up_ != 0;
    ++counters_.line_accesses;
    ++entry.next_line;
    known_absent_ = false;
    blocked_until_ = 0;
  }
  return true;
}

/// Its tags have been looked up. The data of wide loads and stores take longer.
void LoadStoreUnit::FinishLines(Cycle now, const Entry& entry) {
  if (entry.lines.count > 0) busy_until_ = std::max(busy_until_, data_until_);
  if (entry.load == kNoLoad) return;
  const bool waits = entry.lines.count > 0 && entry.data_cycles > 1 && entry.cache != CacheId::kNone;
  Release(entry.load,
          waits ? std::max(now, data_until_ + hit_latency_[static_cast<std::size_t>(entry.cache)] - 2) : now);
}

/// Whether a packet cannot begin in this cycle. Lines that are looked up together may follow each other within it.
bool LoadStoreUnit::PortIsBusy(Cycle now) const {
  return looked_up_ == 0 ? port_.free_at() > now : !port_.HasRoom(now);
}

/// When all MSHRs are taken and the next line of a load needs one, nothing can be done before an answer comes: the unit
/// need not try.
void LoadStoreUnit::SleepIfMissing(const Entry& entry) {
  if (entry.space == trace::Space::kShared || entry.is_store || entry.next_line >= entry.lines.count ||
      !ports_.line_gates.empty())
    return;
  if (entry.cache != CacheId::kNone) {
    const std::uint64_t line = entry.lines.lines[entry.next_line].line;
    known_absent_ = caches_[static_cast<std::size_t>(entry.cache)].Find(line) == nullptr &&
                    mshrs_.Find(KeyOf(entry.cache, line)) == MshrTable::kNone;
    if (!known_absent_) return;
  }
  Block(kNever);
}

void LoadStoreUnit::TickShared(Cycle now, Entry& entry) {
  ++counters_.shared_instructions;
  counters_.shared_passes += entry.passes;
  const std::uint32_t passes = std::max(entry.passes, 1u);
  busy_until_ = now + passes;
  // The instruction was issued in the cycle before its first pass.
  const sim::TimingSpec::Shared& shared = parameters_.timing().shared;
  const Cycle more = Has(*entry.instruction.op, trace::kAtomic) ? 1 : shared.way_cycles;
  if (entry.load != kNoLoad) Release(entry.load, now + (passes - 1) * more + shared.latency - 1);
  Pop();
}

bool LoadStoreUnit::AccessLine(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out) {
  const MemoryInstruction& instruction = entry.instruction;
  if (!ports_.line_gates.empty()) {
    const Cycle when = OpenForLine(now, instruction, line.line);
    if (when > now) return Block(when);
  }
  if (entry.is_store && entry.space == trace::Space::kLocal && parameters_.timing().l1.local_write_back) {
    return StoreLocal(now, entry, line, out);
  }
  if (entry.is_store) return Store(now, entry, line, out);
  return entry.cache == CacheId::kNone ? LoadUncached(now, entry, line, out) : LoadCached(now, entry, line, out);
}

/// When all gates let the line pass.
Cycle LoadStoreUnit::OpenForLine(Cycle now, const MemoryInstruction& instruction, std::uint64_t line) const {
  const bool writes = Has(*instruction.op, trace::kStore | trace::kAtomic);
  const LineIssue issue{
      .sm = sm_, .warp = instruction.warp, .launch = instruction.launch, .line = line, .writes = writes};
  Cycle when = now;
  for (LineGate* const gate : ports_.line_gates) when = std::max(when, gate->MayAccess(now, issue));
  return when;
}

bool LoadStoreUnit::LoadCached(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out) {
  const auto id = static_cast<std::size_t>(entry.cache);
  Cache& cache = caches_[id];
  const std::uint8_t needed = parameters_.timing().l1.sectored ? static_cast<std::uint8_t>(line.sectors) : kAllSectors;
  CacheLine* found = known_absent_ ? nullptr : cache.Find(line.line);
  const std::uint8_t missing = found == nullptr ? needed : static_cast<std::uint8_t>(needed & ~found->valid);
  if (missing == 0) {
    if (!ports_.access_events.empty()) [[unlikely]]
      TellHit(now, entry, line, *found);
    cache.Touch(found);
    CountHit(entry.cache, true);
    loads_[entry.load].ready = std::max(loads_[entry.load].ready, now + hit_latency_[id] - 1);
    return true;
  }
  const std::uint64_t key = KeyOf(entry.cache, line.line);
  std::uint16_t mshr = known_absent_ ? MshrTable::kNone : mshrs_.Find(key);
  const bool known = mshr != MshrTable::kNone;
  known_absent_ = found == nullptr && !known && !plain_;
  if (known ? !mshrs_.CanMerge(mshr) : mshrs_.full()) return Block(kNever);
  const std::uint8_t ask = known ? static_cast<std::uint8_t>(missing & ~mshrs_.outstanding(mshr)) : missing;
  if (ask != 0 && PortIsBusy(now)) return Block(port_.free_at());
  if (!known) mshr = mshrs_.Allocate(key);
  if (ask != 0) {
    Send(now, line.line, RequestKind::kRead, ask, {.launch = entry.instruction.launch, .id = mshr}, out);
  } else {
    ++counters_.l1_merges;
  }
  if (found != nullptr && !ports_.access_events.empty()) [[unlikely]]
    TellHit(now, entry, line, *found);
  mshrs_.AddWaiter(mshr, entry.load, missing);
  ++loads_[entry.load].pending;
  CountHit(entry.cache, false);
  return true;
}

/// Tells observers what a load takes from a line that is there.
void LoadStoreUnit::TellHit(Cycle now, const Entry& entry, const LineAccess& line, const CacheLine& held) const {
  const bool shared = entry.space == trace::Space::kGlobal || entry.space == trace::Space::kTexture;
  const auto sectors = static_cast<std::uint8_t>(line.sectors & held.valid);
  if (!shared || entry.cache == CacheId::kConstant || sectors == 0) return;
  const CachedSectors hit{.sm = sm_,
                          .cache = entry.cache == CacheId::kL1 ? 0u : 1u,
                          .place = caches_[static_cast<std::size_t>(entry.cache)].PlaceOf(held),
                          .launch = entry.instruction.launch,
                          .line = line.line,
                          .sectors = sectors};
  for (AccessEvents* const listener : ports_.access_events) listener->OnHit(now, hit);
}

void LoadStoreUnit::TellFill(Cycle now, CacheId cache, const CacheLine& filled, std::uint8_t sectors) const {
  if (cache == CacheId::kConstant) return;
  const CachedSectors fill{.sm = sm_,
                           .cache = cache == CacheId::kL1 ? 0u : 1u,
                           .place = caches_[static_cast<std::size_t>(cache)].PlaceOf(filled),
                           .line = filled.line,
                           .sectors = sectors};
  for (AccessEvents* const listener : ports_.access_events) listener->OnFill(now, fill);
}

bool LoadStoreUnit::LoadUncached(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out) {
  const bool atomic = Has(*entry.instruction.op, trace::kAtomic);
  if (mshrs_.full()) return Block(kNever);
  if (PortIsBusy(now)) return Block(port_.free_at());
  if (atomic) {
    CacheLine* stale = caches_[static_cast<std::size_t>(CacheId::kL1)].Find(line.line);
    if (stale != nullptr) Drop(*stale, static_cast<std::uint8_t>(line.sectors));
  }
  const std::uint16_t mshr = mshrs_.Allocate(MshrTable::kAnonymous);
  Send(now, line.line, atomic ? RequestKind::kAtomic : RequestKind::kRead, static_cast<std::uint8_t>(line.sectors),
       {.launch = entry.instruction.launch,
        .id = mshr,
        .lanes = static_cast<std::uint8_t>(line.lanes),
        .is_float = entry.instruction.op->float_atomic},
       out);
  mshrs_.AddWaiter(mshr, entry.load, static_cast<std::uint8_t>(line.sectors));
  ++loads_[entry.load].pending;
  return true;
}

bool LoadStoreUnit::Store(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out) {
  const sim::TimingSpec::L1& l1 = parameters_.timing().l1;
  const bool reduce = Has(*entry.instruction.op, trace::kAtomic);
  if (stores_ >= l1.stores) return Block(kNever);
  if (PortIsBusy(now)) return Block(port_.free_at());
  CacheLine* held = caches_[static_cast<std::size_t>(CacheId::kL1)].Find(line.line);
  if (held != nullptr && (reduce || l1.stores_of_global == sim::StorePolicy::kWriteEvict)) {
    Drop(*held, static_cast<std::uint8_t>(line.sectors));
  }
  ++stores_;
  Send(now, line.line, reduce ? RequestKind::kReduce : RequestKind::kWrite, static_cast<std::uint8_t>(line.sectors),
       {.launch = entry.instruction.launch,
        .id = entry.instruction.warp,
        .partial = static_cast<std::uint8_t>(line.partial),
        .lanes = static_cast<std::uint8_t>(line.lanes),
        .is_float = entry.instruction.op->float_atomic,
        .words = entry.lines.words[entry.next_line]},
       out);
  return true;
}

bool LoadStoreUnit::StoreLocal(Cycle now, Entry& entry, const LineAccess& line, Outbox<Request>& out) {
  Cache& l1 = caches_[static_cast<std::size_t>(CacheId::kL1)];
  Cache::Victim victim;
  CacheLine& held = l1.FindOrInsert(line.line, victim);
  WriteBack(now, victim, out);
  l1.Touch(&held);
  if ((held.valid & held.dirty & line.sectors) != line.sectors) ++cache_changes_;  // or it was not there
  // Sectors written in part count as whole: the lanes of a warp write neighbouring words of local memory.
  held.valid |= line.sectors;
  l1.MarkDirty(held, static_cast<std::uint8_t>(line.sectors));
  completions_.push_back({.op = nullptr, .ready = now, .warp = entry.instruction.warp});
  return true;
}

/// Sectors of a line of L1 that are written behind its back.
void LoadStoreUnit::Drop(CacheLine& line, std::uint8_t sectors) {
  if ((line.valid & sectors) != 0) ++cache_changes_;
  line.valid &= static_cast<std::uint8_t>(~sectors);
}

void LoadStoreUnit::DropL1(Cycle now, Outbox<Request>& out) {
  ++cache_changes_;
  const auto lost = [&](const Cache::Victim& victim) { WriteBack(now, victim, out); };
  caches_[static_cast<std::size_t>(CacheId::kL1)].DropAll(lost);
  if (parameters_.timing().texture.size_bytes > 0) caches_[static_cast<std::size_t>(CacheId::kTexture)].DropAll(lost);
}

bool LoadStoreUnit::Block(Cycle until) {
  blocked_until_ = until;
  return false;
}

void LoadStoreUnit::Send(Cycle now, std::uint64_t line, RequestKind kind, std::uint8_t mask, Names names,
                         Outbox<Request>& out) {
  const LineHome home = map_.Home(line);
  GL_CHECK(home.local >> Request::kLineBits == 0, "an address above 2^47 left an SM");
  const bool carries_data = kind != RequestKind::kRead;
  const auto sectors = static_cast<std::uint32_t>(std::popcount(mask));
  Cycle arrival = port_.Send(now, carries_data ? sectors : 0) + parameters_.request_latency;
  if (tlb_.present()) arrival += TranslationDelay(now, line);
  out.Add(home.partition, Request({.arrival = arrival,
                                   .line = home.local,
                                   .launch = names.launch,
                                   .sm = static_cast<std::uint16_t>(sm_),
                                   .id = names.id,
                                   .partition = home.partition,
                                   .kind = kind,
                                   .slice = home.slice,
                                   .sectors = mask,
                                   .partial = names.partial,
                                   .lanes = names.lanes,
                                   .is_float = names.is_float,
                                   .words = names.words}));
  switch (kind) {
    case RequestKind::kRead: ++counters_.read_requests; break;
    case RequestKind::kWrite: ++counters_.write_requests; break;
    case RequestKind::kWriteBack: ++counters_.write_back_requests; break;
    default: ++counters_.atomic_requests;
  }
  if (carries_data) counters_.write_sectors += sectors;
  if (kind == RequestKind::kRead || kind == RequestKind::kAtomic) counters_.read_sectors += sectors;
}

Cycle LoadStoreUnit::TranslationDelay(Cycle now, std::uint64_t line) {
  const Tlb::Translation translation = tlb_.Translate(now, line);
  ++(translation.hit ? counters_.tlb_hits : counters_.tlb_misses);
  return translation.ready - now;
}

void LoadStoreUnit::WriteBack(Cycle now, const Cache::Victim& victim, Outbox<Request>& out) {
  if (victim.dirty == 0) return;
  Send(now, victim.line, RequestKind::kWriteBack, victim.dirty, {}, out);
}

void LoadStoreUnit::PrefetchSet(const Response& response) const {
  if (!HasEntry(response.kind)) return;
  const std::uint64_t key = mshrs_.key(response.id);
  if (key == MshrTable::kAnonymous) return;
  caches_[key >> kCacheShift].Prefetch(LineOf(key));
  mshrs_.PrefetchKey(key);
}

void LoadStoreUnit::Fill(Cycle now, const Response& response, Outbox<Request>& out) {
  ++counters_.responses;
  counters_.response_sectors += static_cast<std::uint64_t>(std::popcount(response.sectors));
  blocked_until_ = 0;
  if (!HasEntry(response.kind)) {
    --stores_;
    completions_.push_back({.op = nullptr, .ready = now, .warp = response.id});
    return;
  }
  const std::uint64_t key = mshrs_.key(response.id);
  if (key != MshrTable::kAnonymous) {
    ++cache_changes_;
    Cache& cache = caches_[key >> kCacheShift];
    const std::uint64_t line = LineOf(key);
    Cache::Victim victim;
    CacheLine& filled = cache.FindOrInsert(line, victim);
    filled.valid |= response.sectors;
    if (!ports_.access_events.empty()) [[unlikely]]
      TellFill(now, static_cast<CacheId>(key >> kCacheShift), filled, response.sectors);
    WriteBack(now, victim, out);
  }
  mshrs_.Fill(response.id, response.sectors, [&](std::uint32_t load) { Release(load, now); });
}

void LoadStoreUnit::CountHit(CacheId cache, bool hit) {
  switch (cache) {
    case CacheId::kL1: ++(hit ? counters_.l1_hits : counters_.l1_misses); break;
    case CacheId::kConstant: ++(hit ? counters_.constant_hits : counters_.constant_misses); break;
    case CacheId::kTexture: ++(hit ? counters_.texture_hits : counters_.texture_misses); break;
    case CacheId::kNone: break;
  }
}

void LoadStoreUnit::Pop() {
  head_ = static_cast<std::uint32_t>((head_ + 1) % queue_.size());
  --count_;
}

std::uint32_t LoadStoreUnit::NewLoad(const MemoryInstruction& instruction) {
  std::uint32_t index = free_load_;
  if (index == kNoLoad) {
    index = static_cast<std::uint32_t>(loads_.size());
    GL_CHECK(index < MshrTable::kMaxLoads, "65535 loads of an SM are outstanding");
    loads_.emplace_back();
  } else {
    free_load_ = loads_[index].next_free;
  }
  loads_[index] = {.op = instruction.op, .ready = 0, .pending = 1, .next_free = kNoLoad, .warp = instruction.warp};
  return index;
}

void LoadStoreUnit::Release(std::uint32_t index, Cycle ready) {
  Load& load = loads_[index];
  load.ready = std::max(load.ready, ready);
  if (--load.pending > 0) return;
  completions_.push_back({.op = load.op, .ready = load.ready, .warp = load.warp});
  load.next_free = free_load_;
  free_load_ = index;
}

void LoadStoreUnit::Walk(StateWalk& walk) {
  walk.Word(cache_changes_);
  walk.Word(count_);
  for (std::uint32_t i = 0; i < count_; ++i) WalkInstruction(queue_[(head_ + i) % queue_.size()], walk);
  walk.NotBefore(busy_until_);
  walk.NotBefore(blocked_until_);
  walk.NotBefore(data_until_);
  walk.Word(known_absent_);
  walk.Word(mshrs_.used());
  walk.Word(stores_);
  port_.Walk(walk);
  tlb_.Walk(walk);
  if (!completions_.empty()) walk.Refuse();
}

void LoadStoreUnit::WalkInstruction(const Entry& entry, StateWalk& walk) {
  const MemoryInstruction& instruction = entry.instruction;
  walk.Pointer(instruction.op);
  walk.Pointer(instruction.cta);
  walk.Word(instruction.access.base);
  walk.Word(std::uint64_t{instruction.access.mask} << 32 | static_cast<std::uint32_t>(instruction.access.stride));
  walk.Word(instruction.shift);
  walk.Pointer(instruction.memory);
  walk.Word(std::uint64_t{instruction.launch} << 32 | instruction.warp);
  walk.Word(static_cast<std::uint64_t>(entry.space) << 8 | static_cast<std::uint64_t>(entry.cache));
  walk.Word(std::uint64_t{entry.passes} << 32 | entry.next_line);
  walk.Word(entry.data_cycles);
  walk.Word(entry.is_store);
  if (!entry.is_store) WalkLoad(entry.load, walk);
  walk.Word(entry.lines.count);
  for (std::uint32_t i = entry.next_line; i < entry.lines.count; ++i)
    walk.Word(std::bit_cast<std::uint64_t>(entry.lines.lines[i]));
}

void LoadStoreUnit::WalkEntry(std::uint16_t id, StateWalk& walk) {
  walk.Word(mshrs_.key(id));
  walk.Word(mshrs_.outstanding(id));
  mshrs_.ForEachWaiter(id, [&](std::uint32_t load, std::uint8_t missing) {
    walk.Word(missing);
    WalkLoad(load, walk);
  });
  walk.Word(kNoLoad);
}

void LoadStoreUnit::WalkLoad(std::uint32_t index, StateWalk& walk) {
  if (!walk.MeetsLoad(static_cast<std::uint16_t>(sm_), index)) return;
  Load& load = loads_[index];
  walk.Pointer(load.op);
  walk.NotBefore(load.ready);
  walk.Word(std::uint64_t{load.pending} << 32 | load.warp);
}

}  // namespace gridloom::timing
