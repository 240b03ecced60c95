// How the addresses of a warp's lanes lie.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// What each lane adds to the address of one of them.
using LaneOffsets = std::array<std::uint64_t, kWarpSize>;

/// Whether MemoryAccess::stride can be this number and mean it.
constexpr bool IsStride(std::int64_t stride) { return stride >= MemoryAccess::kLeastStride && stride <= INT32_MAX; }

/// The distance between lanes where there is one for all 32.
std::optional<std::int32_t> StrideOf(const std::int64_t* pattern);
/// Whether the lanes of access.mask are base + i * stride, which are then set.
bool FindStride(const std::uint64_t* lanes, MemoryAccess& access);
/// The base from which the lanes of the mask, which is not 0, are base + their offset.
std::optional<std::uint64_t> FindBase(std::uint32_t mask, const std::uint64_t* lanes, const LaneOffsets& offsets);

/// What each lane of the mask, which is not 0, adds to the lowest of them; 0 for the others. False when some distance
/// is too large.
bool PatternOf(std::uint32_t mask, const std::uint64_t* lanes, LanePattern& pattern);
/// The same of distances from the lowest lane, of the mask's lanes alone, in units of so many bytes; `end`: of what may
/// be read behind them.
bool PatternOfDistances(std::uint32_t mask, const std::uint32_t* distances, const std::uint32_t* end,
                        std::uint32_t unit, LanePattern& pattern);
LaneOffsets Widen(const LanePattern& pattern);

}  // namespace gridloom::trace
