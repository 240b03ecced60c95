#include "sim/trace/lane_shape.h"

#include <bit>

namespace gridloom::trace {
namespace {

/// Lanes that lie otherwise mostly show it at the last one; else all are looked at, without a way out, so that the compiler compares
/// several at a time.
bool FindFullStride(const std::uint64_t* lanes, MemoryAccess& access) {
  const std::uint64_t stride = lanes[1] - lanes[0];
  if (!IsStride(static_cast<std::int64_t>(stride)) || lanes[kWarpSize - 1] != lanes[0] + stride * (kWarpSize - 1)) return false;
  std::uint64_t differs = 0;
  for (std::uint32_t lane = 1; lane < kWarpSize; ++lane) differs |= (lanes[lane] - lanes[lane - 1]) ^ stride;
  if (differs != 0) return false;
  access.base = lanes[0];
  access.stride = static_cast<std::int32_t>(stride);
  return true;
}

/// What the distance between lanes can be, of a mask with two lanes at least. Neighbours tell without a division.
std::int64_t LikelyStride(std::uint32_t mask, const std::uint64_t* lanes) {
  const std::uint32_t neighbours = mask & mask >> 1;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(neighbours != 0 ? neighbours : mask));
  const auto second = static_cast<std::uint32_t>(std::countr_zero(mask & ~((2u << first) - 1)));
  const auto distance = static_cast<std::int64_t>(lanes[second] - lanes[first]);
  return second == first + 1 ? distance : distance / static_cast<std::int64_t>(second - first);
}

}  // namespace

std::optional<std::int32_t> StrideOf(const std::int64_t* pattern) {
  const std::int64_t stride = pattern[1] - pattern[0];
  if (pattern[0] != 0 || !IsStride(stride)) return std::nullopt;
  for (std::uint32_t lane = 1; lane < kWarpSize; ++lane) {
    if (pattern[lane] - pattern[lane - 1] != stride) return std::nullopt;
  }
  return static_cast<std::int32_t>(stride);
}

bool FindStride(const std::uint64_t* lanes, MemoryAccess& access) {
  if (access.mask == ~0u) return FindFullStride(lanes, access);
  const auto first = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  const auto last = kWarpSize - 1 - static_cast<std::uint32_t>(std::countl_zero(access.mask));
  const std::int64_t stride = first == last ? 0 : LikelyStride(access.mask, lanes);
  if (!IsStride(stride)) return false;
  const std::uint64_t base = lanes[first] - static_cast<std::uint64_t>(stride) * first;
  if (lanes[last] != base + static_cast<std::uint64_t>(stride) * last) return false;
  for (std::uint32_t rest = access.mask & (access.mask - 1); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (lanes[lane] != base + static_cast<std::uint64_t>(stride) * lane) return false;
  }
  access.base = base;
  access.stride = static_cast<std::int32_t>(stride);
  return true;
}

std::optional<std::uint64_t> FindBase(std::uint32_t mask, const std::uint64_t* lanes, const LaneOffsets& offsets) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
  const auto last = kWarpSize - 1 - static_cast<std::uint32_t>(std::countl_zero(mask));
  const std::uint64_t base = lanes[first] - offsets[first];
  if (lanes[last] != base + offsets[last]) return std::nullopt;
  if (mask == ~0u) {
    std::uint64_t differs = 0;
    for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) differs |= lanes[lane] ^ (base + offsets[lane]);
    return differs == 0 ? std::optional(base) : std::nullopt;
  }
  for (std::uint32_t rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (lanes[lane] != base + offsets[lane]) return std::nullopt;
  }
  return base;
}

}  // namespace gridloom::trace
