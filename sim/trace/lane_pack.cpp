#include "sim/trace/lane_pack.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/exec/simd.h"

namespace gridloom::trace {

using exec::SimdLevel;
using exec::UsableSimd;

namespace {

template <typename Distance, typename From>
GL_INLINE void Store(const From* __restrict distances, std::uint32_t shift, std::uint8_t* __restrict bytes) {
  Distance narrow[kWarpSize];
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) narrow[lane] = static_cast<Distance>(distances[lane] >> shift);
  std::memcpy(bytes, narrow, sizeof narrow);
}

/// The first ones of 32 distances in units of the width.
GL_INLINE void PackInUnits(const std::uint32_t* __restrict distances, std::uint32_t count,
                           PackedLanes* __restrict packed) {
  std::uint32_t any = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) any |= lane < count ? distances[lane] : 0;
  std::uint8_t* const bytes = packed->bytes.data();
  packed->unit = any >> 8 == 0 ? LaneUnit::kUnits8 : any >> 16 == 0 ? LaneUnit::kUnits16 : LaneUnit::kUnits32;
  if (any >> 8 == 0) Store<std::uint8_t>(distances, 0, bytes);
  else if (any >> 16 == 0) Store<std::uint16_t>(distances, 0, bytes);
  else Store<std::uint32_t>(distances, 0, bytes);
}

/// 32 distances in bytes.
GL_INLINE void PackInBytes(const std::uint64_t* __restrict distances, std::uint32_t shift,
                           PackedLanes* __restrict packed) {
  std::uint64_t any = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) any |= distances[lane];
  std::uint8_t* const bytes = packed->bytes.data();
  const bool whole = (any & ((std::uint64_t{1} << shift) - 1)) == 0;
  const auto fits = [&](unsigned bits) { return any >> shift >> bits == 0; };
  if (whole && fits(8)) {
    packed->unit = LaneUnit::kUnits8;
    Store<std::uint8_t>(distances, shift, bytes);
  } else if (whole && fits(16)) {
    packed->unit = LaneUnit::kUnits16;
    Store<std::uint16_t>(distances, shift, bytes);
  } else if (whole && fits(32)) {
    packed->unit = LaneUnit::kUnits32;
    Store<std::uint32_t>(distances, shift, bytes);
  } else if (any >> 32 == 0) {
    packed->unit = LaneUnit::kBytes32;
    Store<std::uint32_t>(distances, 0, bytes);
  } else {
    packed->unit = LaneUnit::kBytes64;
    Store<std::uint64_t>(distances, 0, bytes);
  }
}

}  // namespace

GL_SIMD_FUNCTION(PackUnits, PackInUnits, (const std::uint32_t* distances, std::uint32_t count, PackedLanes* packed),
                 (distances, count, packed))
GL_SIMD_FUNCTION(PackBytes, PackInBytes, (const std::uint64_t* distances, std::uint32_t shift, PackedLanes* packed),
                 (distances, shift, packed))

void PackLanes(const ScatteredLanes& lanes, std::size_t count, std::size_t readable, std::uint32_t width,
               PackedLanes& packed) {
  packed.low = lanes.low;
  if (lanes.unit == width && readable >= kWarpSize)
    return PackUnits(lanes.distances, static_cast<std::uint32_t>(count), &packed);
  std::uint64_t all[kWarpSize] = {};
  for (std::size_t i = 0; i < count; ++i) all[i] = lanes[i] - lanes.low;
  PackBytes(all, static_cast<std::uint32_t>(std::countr_zero(width)), &packed);
}

void UnpackLanes(std::uint64_t low, LaneUnit unit, std::uint32_t width, std::size_t count, const std::uint8_t* bytes,
                 std::uint32_t* words) {
  ScatteredLanes::PutHead(low, UnpackedUnit(unit, width), words);
  std::uint32_t* const distances = words + ScatteredLanes::kHeadWords;
  const auto unpack = [&](auto zero) {
    for (std::size_t i = 0; i < count; ++i) {
      auto distance = zero;
      std::memcpy(&distance, bytes + i * sizeof zero, sizeof zero);
      distances[i] = distance;
    }
  };
  switch (unit) {
    case LaneUnit::kUnits8: return unpack(std::uint8_t{0});
    case LaneUnit::kUnits16: return unpack(std::uint16_t{0});
    default: std::memcpy(distances, bytes, count * SizeOf(unit));
  }
}

}  // namespace gridloom::trace
