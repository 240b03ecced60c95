// Lanes of a diverged warp that meet in .sync instructions at different places of the code (PTX ISA, 9.7.9.6
// and 9.7.13). No state but the WarpMeetings they are given.
#include <algorithm>
#include <bit>
#include <utility>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"
#include "sim/exec/runtime/lane_operations.h"

namespace gridloom::exec {
namespace {

SyncImm ImmOf(const WarpMeetings& m, std::uint32_t lane) { return UnpackImm<SyncImm>(m.imm[lane]); }

/// The lanes that wait for the same as `lane`: the same instruction but for its place, and the same members.
std::uint32_t CompanyOf(const WarpMeetings& m, std::uint32_t lane) {
  std::uint32_t company = 0;
  ForLanes(m.waiting, [&](std::uint32_t other) {
    const bool same = m.imm[other] == m.imm[lane] && m.members[other] == m.members[lane] &&
                      (!ImmOf(m, lane).same_place || m.block[other] == m.block[lane]);
    company |= static_cast<std::uint32_t>(same) << other;
  });
  return company;
}

/// Lanes that have not ended, but for those that run now.
std::uint32_t Alive(const WarpMeetings& m) {
  std::uint32_t alive = m.waiting;
  for (std::uint32_t block = 0; block < m.blocks; ++block) alive |= m.pending_masks[block];
  return alive;
}

/// What `lane` gets from those of its company.
std::pair<std::uint32_t, std::uint32_t> ResultsOf(const WarpMeetings& m, std::uint32_t company, std::uint32_t lane) {
  const SyncImm imm = ImmOf(m, lane);
  const std::uint32_t members = m.members[lane];
  const auto ballot = [&](std::uint32_t value) {
    std::uint32_t bits = 0;
    ForLanes(company,
             [&](std::uint32_t other) { bits |= static_cast<std::uint32_t>(m.value[other] == value) << other; });
    return bits;
  };
  switch (imm.op) {
    case SyncOp::kBarrier: return {};
    case SyncOp::kElect: return {company, 0};
    case SyncOp::kBallot: return {ballot(1), 0};
    case SyncOp::kUni: return {ballot(1), ballot(0)};
    case SyncOp::kShuffle: {
      if ((m.valid >> lane & 1) == 0) return {static_cast<std::uint32_t>(m.value[lane]), 0};
      const std::uint32_t source = m.source[lane] % kWarpSize;  // who does not take part gives zero, as in EmitShuffle
      return {(company >> source & 1) != 0 ? static_cast<std::uint32_t>(m.value[source]) : 0, 0};
    }
    case SyncOp::kMatchAny: return {MatchAny(company & members, m.value, lane), 0};
    case SyncOp::kMatchAll: {
      const bool all = MatchAny(company & members, m.value, lane) == (company & members);
      return {all ? company & members : 0, all};
    }
    case SyncOp::kRedux:
      return {Redux(ReduxImmOf(imm.qualifiers), company & members,
                    [&](std::uint32_t other) { return static_cast<std::uint32_t>(m.value[other]); }),
              0};
  }
  return {};
}

/// `company` goes on, each behind its own instruction.
void Release(WarpMeetings& m, std::uint32_t company) {
  ForLanes(company, [&](std::uint32_t lane) {
    const auto [first, second] = ResultsOf(m, company, lane);
    m.results[0][lane] = first;
    m.results[1][lane] = second;
    if (ImmOf(m, lane).op != SyncOp::kBarrier) m.met |= 1u << lane;
    WarpMeetings::Released* const end = m.released + m.released_count;
    WarpMeetings::Released* const at =
        std::find_if(m.released, end, [&](const auto& one) { return one.block == m.block[lane]; });
    if (at == end) m.released[m.released_count++] = {m.block[lane], 0};
    at->lanes |= 1u << lane;
  });
  m.waiting &= ~company;
}

/// Releases all groups of those in `lanes` of which no live member is missing.
void ReleaseComplete(WarpMeetings& m, std::uint32_t lanes) {
  const std::uint32_t alive = Alive(m);
  while (lanes != 0) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
    const std::uint32_t company = CompanyOf(m, lane);
    if ((m.members[lane] & alive & ~company) == 0) Release(m, company);
    lanes &= ~company;
  }
}

void StoreInputs(WarpMeetings& m, std::uint32_t mask, SyncOp op, void* const* inputs) {
  const auto words = [&](std::size_t input) { return static_cast<const std::uint32_t*>(inputs[input]); };
  ForLanes(mask, [&](std::uint32_t lane) {
    switch (Info(op).first) {
      case SyncValue::kNone:
      case SyncValue::kWordAndPredicate: break;
      case SyncValue::kPredicate: m.value[lane] = *words(0) >> lane & 1; break;
      case SyncValue::kWord: m.value[lane] = words(0)[lane]; break;
      case SyncValue::kLong: m.value[lane] = static_cast<const std::uint64_t*>(inputs[0])[lane]; break;
    }
    if (Info(op).inputs == 3) {
      m.source[lane] = words(1)[lane];
      m.valid = (m.valid & ~(1u << lane)) | (*words(2) & 1u << lane);
    }
  });
}

}  // namespace

void Helper_kMeet(WarpCtx*, std::uint32_t mask, std::uint32_t block, std::uint64_t imm, void* const* args) {
  auto& m = *static_cast<WarpMeetings*>(args[0]);
  const auto* const members = static_cast<const std::uint32_t*>(args[1]);
  ForLanes(mask, [&](std::uint32_t lane) {
    m.members[lane] = members[lane];
    m.block[lane] = block;
    m.imm[lane] = imm;
  });
  StoreInputs(m, mask, UnpackImm<SyncImm>(imm).op, args + 2);
  m.waiting |= mask;
  m.released_count = 0;
  ReleaseComplete(m, mask);
}

void Helper_kMeetAgain(WarpCtx*, std::uint32_t, std::uint32_t, std::uint64_t none_can_run, void* const* args) {
  auto& m = *static_cast<WarpMeetings*>(args[0]);
  m.released_count = 0;
  ReleaseComplete(m, m.waiting);
  if (none_can_run == 0 || m.released_count != 0 || m.waiting == 0) return;
  // The members that are missing never come: on a GPU a deadlock or undefined. Those at the earliest place go on
  // without them.
  std::uint32_t first = static_cast<std::uint32_t>(std::countr_zero(m.waiting));
  ForLanes(m.waiting, [&](std::uint32_t lane) {
    if (m.block[lane] < m.block[first]) first = lane;
  });
  Release(m, CompanyOf(m, first));
}

}  // namespace gridloom::exec
