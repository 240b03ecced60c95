// Runtime helpers that generated code calls through LaunchCtx::helpers, and what their implementations share.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/immediates.h"
#include "sim/exec/runtime/unit.h"
#include "sim/exec/runtime/worker.h"

namespace gridloom::exec {

/// Indexed by Helper.
const HelperFn* HelperTable();

#define GL_HELPER(name, convergent, reads, writes) \
  void Helper_##name(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args);
#include "sim/exec/contract/helpers.def"
#undef GL_HELPER

/// Calls visit(lane) for every lane of a mask, lowest first.
template <typename F>
inline void ForEachLane(std::uint32_t mask, F&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
}

inline Launch& LaunchOf(const Warp& warp) { return *warp.cta->unit->launch; }
inline std::uint64_t CtaNumber(const Warp& warp) { return CtaNumber(*warp.cta); }
inline EngineServices& ServicesOf(const Warp& warp) { return *LaunchOf(warp).services; }

/// While one lives, a SIGSEGV in this thread is a fault of the lane named last.
class LaneAccess {
 public:
  LaneAccess(Warp& warp, std::uint32_t line) : worker_(warp.cta->unit->worker) { worker_.access_line = line; }
  ~LaneAccess() { worker_.access_lane = -1; }
  LaneAccess(const LaneAccess&) = delete;
  LaneAccess& operator=(const LaneAccess&) = delete;
  void At(std::uint32_t lane) { worker_.access_lane = static_cast<std::int32_t>(lane); }

 private:
  Worker& worker_;
};

/// The host address behind a lane's address, after all checks short of touching it; raises the fault that is due.
/// Addresses are host addresses already; `space` says which window they must lie in.
/// Under memcheck a bad address may come back as a harmless place instead; `strong`, the `value` of a store and
/// `followed` (LaneRequest) are for it.
std::uint8_t* CheckedAddress(Warp& warp, std::uint32_t lane, std::uint32_t line, Space space, std::uint64_t address,
                             std::uint32_t bytes, AccessKind kind, bool strong = false, const void* value = nullptr,
                             bool followed = false);
/// The end of a helper that has called CheckedAddress: leaves a launch that memcheck has stopped, and lets generated
/// code do the like of this access by itself from now on (`site`: its number, 0 when it has none).
void EndOfAccesses(Warp& warp, std::uint32_t mask, std::uint32_t site = 0, const std::uint64_t* addresses = nullptr,
                   std::uint32_t bytes = 0, bool write = false);

/// Helper_kAtomic at places that have been checked.
void RunKnownAtomic(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args);

/// memcheck: instructions that all lanes of a warp do together keep the lanes' accesses before them from those after.
void OrderLanes(Warp& warp);

}  // namespace gridloom::exec
