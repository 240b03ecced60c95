// What the parts of the checker share.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/exec/runtime/memcheck/checker.h"
#include "sim/exec/runtime/worker.h"

namespace gridloom::exec {

inline UnitCheck& CheckOf(const Warp& warp) { return *warp.cta->unit->check; }
inline std::uint32_t NumberOf(const Warp& warp) { return static_cast<std::uint32_t>(&warp - warp.cta->unit->warps); }

/// Bytes of a CTA's window that exist: windows of a cluster's CTAs lie a rounded distance apart.
bool InSharedWindow(const Launch& launch, std::uint64_t offset, std::uint32_t bytes);

inline bool IsAligned(std::uint64_t address, std::uint32_t bytes) {
  return (address & (std::bit_ceil(bytes) - 1)) == 0;
}

}  // namespace gridloom::exec
