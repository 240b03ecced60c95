// Addresses of lanes without a pattern as few bytes: distances from the lowest one, in units of the access's width.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// How the distances are written; the numbers stand in files.
enum class LaneUnit : std::uint8_t {
  kBytes32 = 0,  ///< 4 bytes each, in bytes
  kBytes64 = 1,
  kUnits8 = 2,  ///< 1 byte each, in units
  kUnits16 = 3,
  kUnits32 = 4,
};
inline constexpr std::uint8_t kLaneUnits = 5;

/// Bytes of one distance.
constexpr std::size_t SizeOf(LaneUnit unit) {
  constexpr std::array<std::uint8_t, kLaneUnits> kSizes = {4, 8, 1, 2, 4};
  return kSizes[static_cast<std::size_t>(unit)];
}

struct PackedLanes {
  std::uint64_t low = 0;
  LaneUnit unit = LaneUnit::kBytes32;
  alignas(64) std::array<std::uint8_t, kWarpSize * 8> bytes;  ///< as many as lanes were given, each of SizeOf(unit)
};

/// `count`: of the lanes, 1 to 32; `width`: a power of two; `readable`: words from the first distance on, at least
/// those of the lanes.
void PackLanes(const ScatteredLanes& lanes, std::size_t count, std::size_t readable, std::uint32_t width,
               PackedLanes& packed);
/// The reverse. `bytes` holds `count` distances; `words` has room for ScatteredLanes::Words of as many.
void UnpackLanes(std::uint64_t low, LaneUnit unit, std::uint32_t width, std::size_t count, const std::uint8_t* bytes,
                 std::uint32_t* words);
/// The unit of ScatteredLanes in which they are unpacked.
constexpr std::uint32_t UnpackedUnit(LaneUnit unit, std::uint32_t width) {
  if (unit == LaneUnit::kBytes64) return ScatteredLanes::kFar;
  return unit == LaneUnit::kBytes32 ? 1 : width;
}

}  // namespace gridloom::trace
