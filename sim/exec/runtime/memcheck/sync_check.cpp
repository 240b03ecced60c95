#include "sim/exec/runtime/memcheck/sync_check.h"

#include <algorithm>
#include <bit>

namespace gridloom::exec {
namespace {

std::uint32_t FirstOf(std::uint32_t lanes) { return static_cast<std::uint32_t>(std::countr_zero(lanes)); }

template <typename Visit>
void ForLanesOf(std::uint32_t lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(FirstOf(lanes));
}

}  // namespace

bool SyncCheck::Wait::Names(std::uint32_t region) const {
  return std::ranges::find(imm.regions, region) != std::end(imm.regions);
}

void SyncCheck::Prepare(std::uint32_t warps, std::uint32_t warps_per_cta) {
  waits_.resize(warps);
  warps_per_cta_ = warps_per_cta;
  BeginCta();
}

void SyncCheck::BeginCta() {
  for (std::vector<Wait>& waits : waits_) waits.clear();
  counted_.clear();
}

SyncCheck::Counted& SyncCheck::CountedAt(std::uint32_t warp, std::uint32_t region) {
  Counted& counted = counted_[std::uint64_t{warp / warps_per_cta_} << 32 | region];
  if (counted.barriers.empty()) counted.barriers.resize(waits_.size() * kWarpSize);
  return counted;
}

void SyncCheck::Enter(std::uint32_t warp, std::uint32_t lanes, std::uint32_t line, SyncCheckImm imm,
                      const std::uint32_t* members, Findings& found) {
  std::vector<Wait>& waits = waits_[warp];
  const bool barrier = imm.has(SyncCheckImm::kBarrier);
  if (imm.has(SyncCheckImm::kCounted)) {
    Counted& counted = CountedAt(warp, imm.regions[0]);
    counted.line = line;
    ForLanesOf(lanes, [&](std::uint32_t lane) { ++counted.barriers[warp * kWarpSize + lane]; });
  }
  if (barrier && !imm.has(SyncCheckImm::kAligned)) return;
  for (Wait& wait : waits) {  // lanes of one warp at two barriers
    if (!barrier || !wait.IsBarrier() || wait.line == line || wait.told) continue;
    wait.told = true;
    found.push_back({.kind = MemcheckKind::kBarrierDivergence,
                     .thread = {warp, FirstOf(wait.lanes)},
                     .line = wait.line,
                     .other = {warp, FirstOf(lanes)},
                     .other_line = line,
                     .missing = lanes});
  }
  while (lanes != 0) {
    Wait wait{.members = members[FirstOf(lanes)], .line = line, .imm = imm};
    ForLanesOf(lanes, [&](std::uint32_t lane) {
      wait.lanes |= static_cast<std::uint32_t>(members[lane] == wait.members) << lane;
    });
    lanes &= ~wait.lanes;
    if (const std::uint32_t strangers = wait.lanes & ~wait.members; strangers != 0) {
      found.push_back({.kind = MemcheckKind::kSyncMask,
                       .thread = {warp, FirstOf(strangers)},
                       .line = line,
                       .members = wait.members});
      wait.told = true;
    }
    const auto same = std::ranges::find_if(
        waits, [&](const Wait& other) { return barrier && other.IsBarrier() && other.line == line && !other.told; });
    if (same != waits.end()) same->lanes |= wait.lanes;
    else waits.push_back(wait);
  }
}

void SyncCheck::Leave(std::uint32_t warp, std::uint32_t lanes, Findings& found) {
  std::vector<Wait>& waits = waits_[warp];
  for (Wait& wait : waits) {
    if ((wait.lanes & lanes) == 0 || wait.IsBarrier() || wait.told) continue;
    std::uint32_t company = 0, elsewhere = 0;
    for (Wait& other : waits) {
      if (!IsCompany(wait, other)) {
        elsewhere |= other.lanes;
        continue;
      }
      company |= other.lanes;
      other.told = true;  // they go on together, some a little later
    }
    const std::uint32_t missing = wait.members & ~company & (wait.passed | elsewhere);
    if (missing == 0) continue;
    std::uint32_t other_line = 0;
    for (Wait& other : waits) {
      if ((other.lanes >> FirstOf(missing) & 1) != 0) other_line = other.line;
      // Of two that wait for each other, one is told.
      other.told |= (other.lanes & missing) != 0 && !other.IsBarrier() && other.members == wait.members;
    }
    found.push_back({.kind = MemcheckKind::kSyncMissing,
                     .thread = {warp, FirstOf(wait.lanes)},
                     .line = wait.line,
                     .other = {warp, FirstOf(missing)},
                     .other_line = other_line,
                     .members = wait.members,
                     .missing = missing});
  }
  for (Wait& wait : waits) wait.lanes &= ~lanes;
  std::erase_if(waits, [](const Wait& wait) { return wait.lanes == 0; });
}

void SyncCheck::Pass(std::uint32_t warp, std::uint32_t lanes, PassSyncImm imm, Findings& found) {
  for (Wait& wait : waits_[warp]) {
    const std::uint32_t late = lanes & wait.members & ~wait.lanes;
    if (late == 0 || wait.told || !wait.Names(imm.region)) continue;
    wait.passed |= late;
    if (!wait.IsBarrier()) continue;  // they may meet the others in another instruction
    wait.told = true;
    found.push_back({.kind = MemcheckKind::kBarrierDivergence,
                     .thread = {warp, FirstOf(wait.lanes)},
                     .line = wait.line,
                     .other = {warp, FirstOf(late)},
                     .missing = late});
  }
  if (imm.counted != 0) PassCounted(warp, lanes, imm.region, found);
}

void SyncCheck::PassCounted(std::uint32_t warp, std::uint32_t lanes, std::uint32_t region, Findings& found) {
  Counted& counted = CountedAt(warp, region);
  ForLanesOf(lanes, [&](std::uint32_t lane) {
    const std::uint8_t barriers = counted.barriers[warp * kWarpSize + lane];
    if (!counted.expected) {
      counted.expected = barriers;
      counted.first = {warp, lane};
    }
    if (barriers == *counted.expected || counted.told) return;
    counted.told = true;
    const bool came = barriers > *counted.expected;
    const Thread mine{warp, lane}, waited = came ? mine : counted.first, absent = came ? counted.first : mine;
    found.push_back(
        {.kind = MemcheckKind::kBarrierDivergence, .thread = waited, .line = counted.line, .other = absent});
  });
}

}  // namespace gridloom::exec
