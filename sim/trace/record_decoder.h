// From the records of one CTA (sim/exec/contract/records.h) to its trace.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/exec/contract/records.h"
#include "sim/exec/record_sink.h"
#include "sim/trace/code_table.h"
#include "sim/trace/kernel_trace.h"
#include "sim/trace/lane_shape.h"
#include "sim/trace/word_turns.h"

namespace gridloom::trace {

/// The records of a CTA by buffer (RecordPlace::buffer); unused ones are empty.
using RecordBuffers = std::vector<std::span<const std::uint64_t>>;

/// Which words of a CTA's records move when its accesses do.
struct RecordSites {
  static constexpr std::uint16_t kFixed = 0;
  bool usable = true;             ///< else there are too many, or they overlap
  bool names_patterns = false;    ///< some words are pointers to patterns of the launch
  std::size_t count = 1;          ///< of sites; the first is kFixed
  std::vector<std::uint16_t> of;  ///< by memory instruction (AccessCount counts them): that of its addresses
  std::vector<std::vector<std::uint16_t>> number;  ///< by buffer and word
};

/// A vector that is filled from its beginning. What it held stays until it is closed: elements that are written at once
/// anyway need not be cleared first.
template <typename T>
class Filling {
 public:
  void Open(Table<T>& to) {
    to_ = &to;
    begin_ = to.data();
    size_ = to.size();
    used_ = 0;
  }
  /// So many elements more, which may hold anything. Valid until the next call.
  T* Add(std::size_t count) {
    if (used_ + count > size_) Grow(used_ + count);
    T* const added = begin_ + used_;
    used_ += count;
    return added;
  }
  void TakeBack(std::size_t count) { used_ -= count; }
  /// Room for so many more, that the caller fills from the place it gets on, before EndAt says where it came to. Valid
  /// until the next call.
  T* Room(std::size_t count) {
    if (used_ + count > size_) Grow(used_ + count);
    return begin_ + used_;
  }
  void EndAt(const T* end) { used_ = static_cast<std::size_t>(end - begin_); }
  const T* begin() const { return begin_; }
  std::size_t size() const { return used_; }
  void Close() { to_->resize(used_); }

 private:
  void Grow(std::size_t least) {
    to_->resize(least <= to_->capacity() ? to_->capacity() : std::max(least, 2 * size_));
    begin_ = to_->data();
    size_ = to_->size();
  }

  Table<T>* to_ = nullptr;
  T* begin_ = nullptr;
  std::size_t size_ = 0, used_ = 0;
};

/// A MemoryAccess as two words: its base, then stride and mask.
using AccessWords = std::uint64_t __attribute__((vector_size(16)));
inline AccessWords Lies(std::uint64_t base, std::int32_t stride, std::uint64_t mask_word) {
  return AccessWords{base, static_cast<std::uint32_t>(stride) | mask_word};
}

class RecordDecoder {
 public:
  explicit RecordDecoder(const CodeTable& table);

  /// Patterns that records name are of one launch.
  void BeginLaunch();
  /// Keeps little memory.
  void EndLaunch();
  /// `sites`, if not null, is filled; `turns` of the buffers' words, if not empty, become repeats: not both. A trace
  /// that nobody has kept is used again for a later CTA. It has `warps` warps, whatever the records tell.
  std::shared_ptr<const CtaTrace> Decode(const exec::RecordPlace& place, const RecordBuffers& buffers,
                                         RecordSites* sites, std::span<const std::span<const WordTurns>> turns = {},
                                         std::uint32_t warps = 0);
  /// Accesses and events of the last CTA that the trace has no place for: loops inside of one instruction (bulk copies)
  /// keep their first.
  std::uint64_t dropped() const { return dropped_; }
  /// Whether the last CTA makes more visits than a trace may have: the trace has the first ones of them.
  bool cut() const { return cut_; }

 private:
  using Words = const std::uint64_t*;
  static constexpr std::uint32_t kNoEntry = ~0u;
  static constexpr std::size_t kMostPatterns = 4096;  ///< of a CTA
  /// From so many visits on, no group is begun.
  static constexpr std::uint64_t kMostDecoded = kMostVisits - exec::kMaxGroupWords;
  static constexpr std::size_t kLastKnown = 64, kLastPlans = 256;
  static constexpr std::size_t kMostSlots = 64;  ///< of a simple group
  /// Patterns of one instruction that were found among its lanes and not met again: so many at most.
  static constexpr std::uint8_t kPatience = 4;

  /// What is kept about an entry of the code.
  struct Entry {
    std::uint8_t kind = 0;     ///< what it accesses and how: KindOf
    std::uint8_t width = 0;    ///< bytes per lane
    std::uint32_t number = 0;  ///< memory instructions before it
    std::uint32_t leader = 0;  ///< of the entries whose addresses some group has in one word; its site is theirs
    std::uint8_t patience = kPatience;  ///< patterns that it may still make before one of them is met again
    // What follows is about one CTA: EntryOf begins anew.
    std::uint16_t site = 0;     ///< 0: none yet
    std::uint32_t cta = 0;      ///< which, as ctas_ counts
    std::int32_t pattern = -1;  ///< the last one found here
    std::uint32_t offsets = 0;  ///< its, in wide_
  };
  /// An access of a group whose instruction is one entry, in global or shared memory: what it takes to add it to the
  /// trace.
  struct PlainAccess {
    std::uint32_t at = 0;     ///< entry
    std::uint32_t place = 0;  ///< memory instructions between the first entry of the block, or the group, and this
    std::uint32_t slot = 0;
    std::uint64_t add = 0;   ///< to all lanes
    std::uint64_t base = 0;  ///< to the slot's word: the same and the slot's base
    bool moves = false;      ///< not in shared memory, nor always at one address
  };
  /// An access of a simple group that lies at a slot: what it adds, and its number among the group's.
  struct Addend {
    AccessWords words;
    std::uint32_t access = 0;
  };
  struct PlainSlot {
    static constexpr std::uint32_t kNone = ~0u;
    std::uint64_t form = 0;                 ///< of the RecordSlot
    std::uint32_t in_loop = kNone;          ///< of the slots of the loop, that it lies at
    std::uint32_t count = 0;                ///< of the accesses that lie there
    Addend first;                           ///< what the first of these accesses adds
    std::uint32_t others = 0;               ///< where those of the others begin
    std::int32_t stride = 0;                ///< without a pattern
    std::int32_t unit = 0;                  ///< of NearLanes
    const std::int64_t* pattern = nullptr;  ///< null also where the record names it
  };
  /// What is made of a group of the compiled code when it is first met.
  struct Plan {
    const exec::RecordGroup* group = nullptr;
    bool plain = false;                       ///< its accesses are PlainAccess, in the order of the entries
    bool simple = false;                      ///< plain, a block with all of its accesses, and at most kMostSlots
    bool in_loop = false;                     ///< some slot lies at one of a loop
    std::uint32_t loop = 0;                   ///< the group's
    std::uint32_t loop_slots = 0;             ///< of its loop, up to the last one that it lies at
    bool found = false;                       ///< of some slot only the run tells how its lanes lie
    std::uint32_t rounds = PlainSlot::kNone;  ///< slot that says which round of its loop it is
    std::uint32_t block = CodeTable::kNoBlock;
    std::uint32_t end = 0;  ///< of the block's entries
    std::vector<PlainAccess> accesses;
    std::vector<Addend> addends;  ///< of a simple group, by slot; without the first one of each
    std::vector<PlainSlot> slots;
  };
  /// Where accesses of a loop lie in its round 0, and how far one round is from the next.
  struct LoopSlot {
    std::uint64_t base = 0, step = 0;
    std::int32_t stride = 0;  ///< as in MemoryAccess; kScattered: each lane adds what pattern or lanes has
    const std::int64_t* pattern = nullptr;
    std::array<std::uint64_t, kWarpSize> lanes;  ///< where `pattern` is null, too
    std::uint32_t mask = 0;
    const exec::RecordSlot* form = nullptr;
    const std::uint64_t* at = nullptr;  ///< its words
  };
  /// A loop that the warp has begun.
  struct Loop {
    const exec::RecordGroup* group = nullptr;
    const std::uint64_t* at = nullptr;  ///< the words of its slots
    std::vector<LoopSlot> slots;
    std::uint32_t count = 0;  ///< of them
  };
  /// A pattern of the records, and what traces call it.
  struct Known {
    const std::int64_t* pattern = nullptr;
    bool is_stride = false, fits = true;  ///< a stride needs no pattern; others have to fit
    std::int32_t stride = 0;              ///< that, or the name in the trace of `cta`
    std::uint32_t cta = 0;                ///< the last one, as ctas_ counts, that has the pattern in its trace
    LanePattern offsets{};
  };
  /// Patterns lie 256 bytes and more apart.
  static std::size_t SlotOf(const std::int64_t* pattern) { return reinterpret_cast<std::uintptr_t>(pattern) >> 8; }
  static std::size_t PlaceOf(const exec::RecordGroup* group) {
    return (reinterpret_cast<std::uintptr_t>(group) >> 4) % kLastPlans;
  }
  static std::uint8_t KindOf(const exec::RecordHeader& header);
  const Plan& PlanOf(const exec::RecordGroup* group) {
    const Plan* const last = last_plans_[PlaceOf(group)];
    return last != nullptr && last->group == group ? *last : FindPlan(group);
  }
  const Plan& FindPlan(const exec::RecordGroup* group);
  std::unique_ptr<const Plan> MakePlan(const exec::RecordGroup& group);
  void AddSlots(const exec::RecordGroup& group, Plan& plan);
  bool AddPlain(const exec::RecordGroup& group, Plan& plan);
  bool IsSimple(const Plan& plan) const;
  bool IsPlain(const exec::RecordHeader& header) const;
  const std::int64_t* Intern(const std::int64_t* pattern);
  std::uint32_t LeaderOf(std::uint32_t at);
  void Join(std::uint32_t a, std::uint32_t b);
  Entry& EntryOf(std::uint32_t at) {
    Entry& entry = entries_[at];
    if (entry.cta != ctas_) BeginEntry(entry);
    return entry;
  }
  void BeginEntry(Entry& entry) const;
  void BeginCta(const exec::RecordPlace& place, RecordSites* sites, std::size_t buffers);
  std::shared_ptr<CtaTrace> UnusedTrace();
  void DecodeBuffer(std::span<const std::uint64_t> words, std::span<const WordTurns> turns, std::size_t buffer);
  Words DecodeUpTo(Words at, Words limit);
  /// How far the trace has come between two records.
  struct Place {
    std::size_t visits = 0, accesses = 0, warps = 0, events = 0;
    std::uint32_t next = 0, end = 0;
    bool in_warp = false;
  };
  Place Here() const {
    return {visits_.size(), accesses_.size(), trace_->warps.size(), trace_->events.size(), next_, end_, in_warp_};
  }
  Words DecodeTurns(Words at, const WordTurns& turns);
  Words CutHere();
  bool IsTurn(const Place& begin, const Place& middle, const Place& end) const;
  bool SameAccess(const MemoryAccess& a, const MemoryAccess& b) const;
  void AddRepeat(const Place& begin, const Place& end, std::uint64_t more);
  std::uint64_t VisitsLeft() const { return kMostDecoded - std::min<std::uint64_t>(visits_.size(), kMostDecoded); }
  /// So many of a loop's rounds have a place in the trace.
  std::uint64_t RoundsThatFit(std::uint64_t rounds) {
    cut_ |= rounds > VisitsLeft();
    return std::min(rounds, VisitsLeft());
  }
  void BeginWarp();
  void EndWarp();
  Words TakeBlocks(Words at, Words end);
  void SkipTo(std::uint32_t entry);
  Words TakeEvent(Words at, Words end);
  bool TakeBlock(std::uint32_t instruction, std::uint32_t mask);
  Words TakeGroup(Words at, Words end);
  Words TakeAnyGroup(const Plan& plan, Words at, Words end);
  Words TakePlainGroup(const Plan& plan, std::uint32_t mask, Words at, bool repeats);
  void TakePlainRound(const Plan& plan, std::uint32_t mask, std::uint64_t round);
  Words TakeSimpleRecords(Words at, Words end);
  void TakeOthers(const Plan& plan, std::uint32_t mask, std::uint64_t slots, std::uint64_t round, MemoryAccess* access);
  bool HopesForPattern(std::uint32_t at) {
    const Entry& entry = EntryOf(at);
    return entry.pattern >= 0 || entry.patience != 0;
  }
  Words TakeRepeatedGroup(const Plan& plan, std::uint32_t mask, Words at);
  void AddLoopRounds(const PlainAccess& plain, const LoopSlot& slot, std::uint64_t rounds, std::uint32_t mask,
                     std::pair<MemoryAccess*, std::size_t> out);
  Words FindSlots(const Plan& plan, Words at);
  Words BeginLoop(const Plan& plan, std::uint32_t mask, Words at);
  void BeginSlot(const exec::RecordSlot& form, const PlainSlot& plain, std::uint32_t mask, Words at, LoopSlot& slot);
  void TakeLoopNear(const exec::NearLanes& lanes, std::uint32_t mask, LoopSlot& slot);
  void TakeLoopLanes(std::uint32_t mask, LoopSlot& slot);
  /// The slots that groups of the loop lie at, up to number `count`.
  const LoopSlot* LoopSlots(std::uint32_t loop, std::uint32_t count) {
    if (loop >= loops_.size() || loops_[loop].count < count) SlotInLoop(loop, std::max(count, 1u) - 1);
    return loops_[loop].slots.data();
  }
  LoopSlot& SlotInLoop(std::uint32_t loop, std::uint32_t slot);
  void AddPlainAccess(const Plan& plan, const PlainAccess& plain, Words at, std::uint64_t round, MemoryAccess& access);
  void AddLoopAccess(const PlainAccess& plain, const LoopSlot& slot, std::uint64_t round, MemoryAccess& access);
  void AddPattern(std::uint64_t base, const std::int64_t* pattern, std::uint32_t at, MemoryAccess& access);
  void AddShape(std::uint32_t at, const std::uint64_t* lanes, MemoryAccess& access);
  void AddNear(std::uint32_t at, const exec::NearLanes& lanes, std::uint64_t add, MemoryAccess& access);
  void MarkSite(const exec::RecordSlot& slot, Words at, std::uint32_t mask, std::uint16_t site);
  /// The access of the next memory instruction that it can be; those before it were off. The record's site.
  std::uint16_t AddAccess(exec::RecordReader& reader);
  void AddLanes(const std::uint64_t* lanes, MemoryAccess& access);
  MemoryAccess AccessOf(exec::RecordReader& reader, std::uint32_t at, std::uint32_t done);
  bool FindPattern(std::uint32_t at, const std::uint64_t* lanes, MemoryAccess& access);
  exec::Space SpaceOfGeneric(exec::RecordReader& reader) const;
  bool Linear(exec::RecordReader& reader, std::uint64_t add, MemoryAccess& access);
  /// The stride that a pattern is or that names it; kScattered when its distances are too large.
  std::int32_t KnownPattern(const std::int64_t* pattern) {
    const Known* const last = last_known_[SlotOf(pattern) % kLastKnown];
    if (last != nullptr && last->pattern == pattern && (last->is_stride || last->cta == ctas_)) return last->stride;
    return NamePattern(pattern);
  }
  std::int32_t NamePattern(const std::int64_t* pattern);
  Known& FindKnown(const std::int64_t* pattern);
  std::uint16_t SiteOf(std::uint32_t from, std::uint32_t to, bool moves);

  /// A block that begins at an instruction.
  struct BlockStart {
    std::uint32_t block = CodeTable::kNoBlock;
    std::uint32_t next = 0, end = 0;  ///< entries of which an access may come next, and behind its last one
  };

  const CodeTable& table_;
  std::vector<BlockStart> starts_;           ///< by instruction of the PTX
  std::vector<std::uint32_t> empty_blocks_;  ///< the same: blocks that have no accesses; kNoBlock for others
  std::vector<Entry> entries_;               ///< by instruction of the code, and one behind the last
  std::unordered_map<const exec::RecordGroup*, std::unique_ptr<const Plan>> plans_;
  std::array<const Plan*, kLastPlans> last_plans_{};  ///< some of them
  std::vector<std::unique_ptr<const std::array<std::int64_t, kWarpSize>>> patterns_;
  std::vector<Words> slot_at_;  ///< of the group being taken
  std::vector<Loop> loops_;     ///< by number
  /// An entry that lies at a loop's slot, by loop and slot.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> loop_entries_;
  exec::RecordLoops record_loops_;

  std::vector<std::shared_ptr<CtaTrace>> traces_;  ///< the last ones
  std::size_t oldest_ = 0;                         ///< of them
  std::shared_ptr<CtaTrace> trace_;
  Filling<BlockVisit> visits_;      ///< of trace_
  Filling<MemoryAccess> accesses_;  ///< of trace_
  Filling<std::uint32_t> lanes_;    ///< of trace_
  exec::RecordPlace place_;
  std::uint64_t local_base_ = 0;  ///< of the warp
  RecordSites* sites_ = nullptr;
  std::uint16_t* site_numbers_ = nullptr;        ///< of the buffer, beside its words; null without sites_
  Words words_ = nullptr, words_end_ = nullptr;  ///< of the buffer
  std::deque<Known> known_;                      ///< of the launch
  std::array<Known*, kLastKnown> last_known_{};  ///< some of them, by SlotOf
  std::vector<LaneOffsets> wide_;                ///< of the trace's patterns, those found among lanes
  std::uint32_t next_ = 0, end_ = 0;             ///< what is left of the block being visited
  bool in_warp_ = false;
  std::uint32_t first_visit_ = 0, first_access_ = 0;  ///< of the warp
  std::uint32_t ctas_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t visits_made_ = 0;  ///< by further turns of repeats
  bool cut_ = false;
};

}  // namespace gridloom::trace
