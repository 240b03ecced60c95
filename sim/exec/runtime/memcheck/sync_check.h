// Barriers and .sync instructions that not all come to who have to. Threads say when they come to one, when they go on
// behind it, and when they come to a region (compiler/sync_checks.h). For a unit; touched by its worker's thread alone.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"
#include "sim/exec/memcheck.h"

namespace gridloom::exec {

class SyncCheck {
 public:
  struct Thread {
    std::uint32_t warp = 0, lane = 0;
  };
  struct Finding {
    MemcheckKind kind = MemcheckKind::kBarrierDivergence;
    Thread thread = {};            ///< that waits, or has waited
    std::uint32_t line = 0;        ///< of what it waits at
    Thread other = {};             ///< who did not come; kSyncMask: not set
    std::uint32_t other_line = 0;  ///< where it waits, 0 if it does not
    std::uint32_t members = 0;     ///< of a .sync instruction
    std::uint32_t missing = 0;     ///< of them, those who did not come
  };
  using Findings = std::vector<Finding>;

  void Prepare(std::uint32_t warps, std::uint32_t warps_per_cta);
  /// Nobody waits, and no barrier has been passed. Warps' sync_waits are the caller's.
  void BeginCta();

  /// Lanes of the warp come to a barrier or .sync instruction. `members`: of each lane.
  void Enter(std::uint32_t warp, std::uint32_t lanes, std::uint32_t line, SyncCheckImm imm,
             const std::uint32_t* members, Findings& found);
  /// Lanes go on.
  void Leave(std::uint32_t warp, std::uint32_t lanes, Findings& found);
  /// Lanes come to a region.
  void Pass(std::uint32_t warp, std::uint32_t lanes, PassSyncImm imm, Findings& found);
  /// WarpCtx::sync_waits.
  std::uint32_t Waits(std::uint32_t warp) const { return static_cast<std::uint32_t>(waits_[warp].size()); }

 private:
  struct Wait {
    std::uint32_t lanes = 0, members = 0, line = 0;
    SyncCheckImm imm;
    std::uint32_t passed = 0;  ///< members that have come to a region meanwhile
    bool told = false;         ///< or known to be right: nothing is looked for any more
    bool Names(std::uint32_t region) const;
    bool IsBarrier() const { return imm.has(SyncCheckImm::kBarrier); }
  };
  /// Threads of the CTA come to a region once each, behind equally many barriers.
  struct Counted {
    std::uint32_t line = 0;  ///< of the last barrier
    std::vector<std::uint8_t> barriers;
    std::optional<std::uint8_t> expected;  ///< by the first thread that has come
    Thread first;
    bool told = false;
  };

  static bool IsCompany(const Wait& a, const Wait& b) {
    return !a.IsBarrier() && !b.IsBarrier() && a.members == b.members && a.imm.exchange == b.imm.exchange;
  }
  Counted& CountedAt(std::uint32_t warp, std::uint32_t region);
  void PassCounted(std::uint32_t warp, std::uint32_t lanes, std::uint32_t region, Findings& found);

  std::vector<std::vector<Wait>> waits_;  // by warp
  std::uint32_t warps_per_cta_ = 1;
  std::unordered_map<std::uint64_t, Counted> counted_;  // by CTA and region
};

}  // namespace gridloom::exec
