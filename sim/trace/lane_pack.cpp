#include "sim/trace/lane_pack.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/exec/simd.h"

namespace gridloom::trace {

using exec::SimdLevel;
using exec::UsableSimd;

namespace {

template <typename Distance>
GL_INLINE void Store(const std::uint64_t* __restrict offsets, std::uint32_t shift, std::uint8_t* __restrict bytes) {
  Distance distances[kWarpSize];
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) distances[lane] = static_cast<Distance>(offsets[lane] >> shift);
  std::memcpy(bytes, distances, sizeof distances);
}

/// Of 32 lanes.
GL_INLINE void PackAllLanes(const std::uint64_t* __restrict lanes, std::uint32_t shift, PackedLanes* __restrict packed) {
  std::uint64_t low = lanes[0];
  for (std::uint32_t lane = 1; lane < kWarpSize; ++lane) low = lanes[lane] < low ? lanes[lane] : low;
  alignas(64) std::uint64_t offsets[kWarpSize];
  std::uint64_t any = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    offsets[lane] = lanes[lane] - low;
    any |= offsets[lane];
  }
  packed->low = low;
  std::uint8_t* const bytes = packed->bytes.data();
  const bool whole = (any & ((std::uint64_t{1} << shift) - 1)) == 0;
  const auto fits = [&](unsigned bits) { return any >> shift >> bits == 0; };
  if (whole && fits(8)) {
    packed->unit = LaneUnit::kUnits8;
    Store<std::uint8_t>(offsets, shift, bytes);
  } else if (whole && fits(16)) {
    packed->unit = LaneUnit::kUnits16;
    Store<std::uint16_t>(offsets, shift, bytes);
  } else if (whole && fits(32)) {
    packed->unit = LaneUnit::kUnits32;
    Store<std::uint32_t>(offsets, shift, bytes);
  } else if (any >> 32 == 0) {
    packed->unit = LaneUnit::kBytes32;
    Store<std::uint32_t>(offsets, 0, bytes);
  } else {
    packed->unit = LaneUnit::kBytes64;
    Store<std::uint64_t>(offsets, 0, bytes);
  }
}

}  // namespace

GL_SIMD_FUNCTION(PackFullWarp, PackAllLanes, (const std::uint64_t* lanes, std::uint32_t shift, PackedLanes* packed), (lanes, shift, packed))

void PackLanes(std::span<const std::uint64_t> lanes, std::uint32_t width, PackedLanes& packed) {
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(width));
  if (lanes.size() == kWarpSize) return PackFullWarp(lanes.data(), shift, &packed);
  std::uint64_t all[kWarpSize];
  std::ranges::copy(lanes, all);
  std::fill(all + lanes.size(), all + kWarpSize, lanes.front());
  PackFullWarp(all, shift, &packed);
}

void UnpackLanes(std::uint64_t low, LaneUnit unit, std::uint32_t width, const std::uint8_t* bytes, std::span<std::uint64_t> lanes) {
  const auto unpack = [&](auto zero, std::uint64_t scale) {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      auto distance = zero;
      std::memcpy(&distance, bytes + i * sizeof zero, sizeof zero);
      lanes[i] = low + distance * scale;
    }
  };
  switch (unit) {
    case LaneUnit::kBytes32: return unpack(std::uint32_t{0}, 1);
    case LaneUnit::kBytes64: return unpack(std::uint64_t{0}, 1);
    case LaneUnit::kUnits8: return unpack(std::uint8_t{0}, width);
    case LaneUnit::kUnits16: return unpack(std::uint16_t{0}, width);
    case LaneUnit::kUnits32: return unpack(std::uint32_t{0}, width);
  }
}

}  // namespace gridloom::trace
