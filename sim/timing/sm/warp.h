// The state of a resident warp: where it is in its trace, and when it may go on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sim/timing/cycle.h"
#include "sim/timing/sm/decoded_code.h"

namespace gridloom::timing {

/// What a warp waits for, when that is not a known cycle.
enum class WarpState : std::uint8_t {
  kFree,      ///< no warp
  kRunning,   ///< the registers and next_issue decide
  kBarrier,   ///< at a barrier
  kFence,     ///< at a fence, until its stores are accepted
  kAsleep,    ///< told what to do by software, which has nothing for it before `wake`
  kFinished,  ///< has ended; its CTA, loads or stores have not
};

struct Warp {
  static constexpr std::size_t kMostParts = lowering::Lowered::Region::kMostParts;
  WarpState state = WarpState::kFree;
  std::uint8_t scheduler = 0;
  std::uint8_t index = 0;    ///< within the scheduler: bit of its masks
  std::uint8_t pipe = 0;     ///< of the next instruction
  std::uint8_t barrier = 0;  ///< kBarrier, or some lanes are there: at which
  std::uint16_t cta_slot = 0;
  std::uint32_t mask = 0;         ///< active lanes of the current block
  std::uint32_t parked = 0;       ///< lanes that are at a barrier already, while others go on
  const DecodedOp* op = nullptr;  ///< next instruction
  const DecodedOp* block_end = nullptr;
  const trace::BlockVisit* visit = nullptr;  ///< after the current one
  /// The end of the part of the path up to the end of `repeat`; without one, the end of the path.
  const trace::BlockVisit* visits_end = nullptr;
  const trace::MemoryAccess* accesses = nullptr;       ///< of the current visit
  const trace::MemoryAccess* next_accesses = nullptr;  ///< of the visits after it
  /// In a region: by part, records of the parts before it, and which parts the warp does not visit.
  std::array<std::uint16_t, kMostParts> part_records = {};
  std::uint16_t absent = 0;
  const DecodedRegion* region = nullptr;
  Cycle next_issue = 0;  ///< not before this cycle
  Cycle wake = 0;        ///< when the next instruction can issue, as last computed; kNever while that is unknown
  std::uint64_t age = 0;
  std::uint32_t loads = 0;   ///< outstanding
  std::uint32_t stores = 0;  ///< packets outstanding
  const DecodedCode* code = nullptr;
  std::vector<Cycle> ready;  ///< by register; [0] stays 0. kNever: a load has not come back
  // Behind what every warp needs in every cycle.
  const DecodedOp* event_op = nullptr;     ///< the instruction of `event`; null: nobody wants to know of one
  const trace::CtaEvent* event = nullptr;  ///< the next one
  const trace::CtaEvent* events_end = nullptr;
  bool granted = false;                ///< gates have let the next instruction pass
  bool fed = false;                    ///< it has no trace of its own (WarpFeed)
  std::uint16_t home = 0, number = 0;  ///< if fed: slot of the CTA that it was started in, and which of its warps it is
  const trace::CtaTrace* trace = nullptr;  ///< what its accesses refer to
  // Repeats of the path that are still to come, or have turns left.
  const trace::Repeat* repeat = nullptr;
  const trace::Repeat* repeats_end = nullptr;
  std::uint64_t turns_left = 0;                      ///< of `repeat`, after the current one
  const trace::BlockVisit* path = nullptr;           ///< its first visit, that repeats count from
  const trace::BlockVisit* path_end = nullptr;       ///< if there are repeats
  const trace::MemoryAccess* path_access = nullptr;  ///< the same of accesses

  /// When the next instruction finds its registers ready, those that it writes included.
  Cycle RegistersReady() const {
    const std::uint16_t* registers = op->registers;
    std::uint32_t count = op->register_count;
    if (count > DecodedOp::kInlineRegisters) registers = code->operands.data() + op->operands;
    Cycle latest = 0;
    for (std::uint32_t i = 0; i < count; ++i) latest = std::max(latest, ready[registers[i]]);
    return latest;
  }
  void SetDestinations(const DecodedOp& written, Cycle cycle) {
    const std::uint16_t* registers = written.register_count > DecodedOp::kInlineRegisters
                                         ? code->operands.data() + written.operands
                                         : written.registers;
    for (std::uint32_t i = 0; i < written.destinations; ++i) {
      if (registers[i] != 0) ready[registers[i]] = cycle;
    }
  }
  /// Lanes that run next, after the current instruction: those of the next visit, if that is of others. 0 at the end.
  std::uint32_t NextLanes() const {
    // What is not of its last part goes on with the same lanes.
    if (region != nullptr && AccessOf(*op).part + 1u < region->parts.size()) return mask;
    if (visit != visits_end) return visit->mask;
    if (repeat == repeats_end) return 0;
    if (turns_left != 0) return path[repeat->visit].mask;
    return visit != path_end ? visit->mask : 0;
  }
  /// Moves to the next instruction of the trace; false at its end.
  bool Advance() {
    if (++op != block_end) return true;
    return NextBlock();
  }
  bool NextBlock() {
    do {
      while (visit != visits_end) {
        const DecodedBlock& block = code->blocks[visit->block];
        mask = visit->mask;
        accesses = next_accesses;
        if (block.region != 0 && EnterRegion(code->regions[block.region - 1])) return true;
        region = nullptr;
        absent = 0;
        ++visit;
        next_accesses += block.accesses;
        if (block.count == 0) continue;
        op = code->ops.data() + block.first;
        block_end = op + block.count;
        return true;
      }
    } while (repeat != repeats_end && NextTurn());
    return false;
  }
  /// The warp visits the blocks of a region one after the other, with no event in them: it runs the region's code.
  bool EnterRegion(const DecodedRegion& entered) {
    const trace::BlockVisit* at = visit;
    std::uint32_t records = 0, visited = 0;
    std::array<std::uint16_t, kMostParts> before = {};
    const auto take = [&](std::size_t p) {
      const auto& [block, optional] = entered.parts[p];
      if (at == visits_end || at->block != block || (optional ? (at->mask & ~mask) != 0 : at->mask != mask))
        return false;
      before[p] = static_cast<std::uint16_t>(records);
      records += code->blocks[block].accesses;
      visited |= 1u << p;
      ++at;
      return true;
    };
    for (std::size_t p = 0; p < entered.parts.size(); ++p) {
      if (take(p)) continue;
      if (!entered.parts[p].optional) return false;
      // The other side of the branch may have come first.
      if (p + 1 < entered.parts.size() && entered.parts[p + 1].optional && take(p + 1)) take(p++);
    }
    const std::uint32_t not_visited = ~visited & ((1u << entered.parts.size()) - 1);
    const bool leaves = entered.next != lowering::Lowered::Region::kNoBlock;
    if (leaves && (at == visits_end || at->block != entered.next || at->mask != mask)) return false;
    if (records > UINT16_MAX || HasEvent(at)) return false;
    visit = at;
    next_accesses += records;
    region = &entered;
    part_records = before;
    absent = static_cast<std::uint16_t>(not_visited);
    op = code->ops.data() + entered.first;
    block_end = op + entered.count;
    return true;
  }
  std::size_t PartRecords(std::size_t part) const { return part == 0 ? 0 : part_records[part]; }
  const DecodedCode::Access& AccessOf(const DecodedOp& of) const {
    return code->access[static_cast<std::size_t>(&of - code->ops.data())];
  }
  /// Whether an event is still to happen in the visits before `end`.
  bool HasEvent(const trace::BlockVisit* end) const {
    return event_op != nullptr && event != events_end && path + event->visit < end;
  }
  /// Behind the last visit of a repeat's turn: it goes round once more, or on. False where there is nothing behind it.
  bool NextTurn() {
    if (turns_left != 0) {
      --turns_left;
      visit = path + repeat->visit;
      next_accesses = path_access + repeat->access;
      return true;
    }
    ++repeat;
    SetPart();
    return visit != visits_end;
  }
  /// The part of the path up to the end of `repeat`'s first turn.
  void SetPart() {
    if (repeat == repeats_end) {
      visits_end = path_end;
      return;
    }
    visits_end = path + repeat->visit + repeat->visit_count;
    turns_left = repeat->more;
  }
};

}  // namespace gridloom::timing
