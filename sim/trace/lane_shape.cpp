#include "sim/trace/lane_shape.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <bit>

#include "sim/exec/simd.h"

namespace gridloom::trace {

using exec::SimdLevel;
using exec::UsableSimd;

namespace {

GL_INLINE void CompareWithStride(const std::uint64_t* __restrict lanes, std::uint64_t base, std::uint64_t stride,
                                 std::uint32_t mask, std::uint64_t* __restrict differs) {
  std::uint64_t any = 0;
  for (std::uint64_t lane = 0; lane < kWarpSize; ++lane)
    any |= (lanes[lane] ^ (base + stride * lane)) & (0 - (mask >> lane & std::uint64_t{1}));
  *differs = any;
}

GL_INLINE void CompareWithOffsets(const std::uint64_t* __restrict lanes, const std::uint64_t* __restrict offsets,
                                  std::uint64_t base, std::uint32_t mask, std::uint64_t* __restrict differs) {
  std::uint64_t any = 0;
  for (std::uint64_t lane = 0; lane < kWarpSize; ++lane)
    any |= (lanes[lane] ^ (base + offsets[lane])) & (0 - (mask >> lane & std::uint64_t{1}));
  *differs = any;
}

}  // namespace

GL_SIMD_FUNCTION(DifferFromStride, CompareWithStride,
                 (const std::uint64_t* lanes, std::uint64_t base, std::uint64_t stride, std::uint32_t mask,
                  std::uint64_t* differs),
                 (lanes, base, stride, mask, differs))
GL_SIMD_FUNCTION(DifferFromOffsets, CompareWithOffsets,
                 (const std::uint64_t* lanes, const std::uint64_t* offsets, std::uint64_t base, std::uint32_t mask,
                  std::uint64_t* differs),
                 (lanes, offsets, base, mask, differs))

namespace {

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
  const auto first = static_cast<std::uint32_t>(std::countr_zero(access.mask));
  const auto last = kWarpSize - 1 - static_cast<std::uint32_t>(std::countl_zero(access.mask));
  const std::int64_t stride = first == last ? 0 : LikelyStride(access.mask, lanes);
  if (!IsStride(stride)) return false;
  const std::uint64_t base = lanes[first] - static_cast<std::uint64_t>(stride) * first;
  if (lanes[last] != base + static_cast<std::uint64_t>(stride) * last)
    return false;  // what lies otherwise mostly shows it there
  std::uint64_t differs = 0;
  DifferFromStride(lanes, base, static_cast<std::uint64_t>(stride), access.mask, &differs);
  if (differs != 0) return false;
  access.base = base;
  access.stride = static_cast<std::int32_t>(stride);
  return true;
}

bool PatternOf(std::uint32_t mask, const std::uint64_t* lanes, LanePattern& pattern) {
  const std::uint64_t first = lanes[std::countr_zero(mask)];
  std::uint64_t differs = 0;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint64_t offset = (lanes[lane] - first) & (0 - (mask >> lane & std::uint64_t{1}));
    pattern[lane] = static_cast<std::int32_t>(offset);
    differs |= static_cast<std::uint64_t>(std::int64_t{pattern[lane]}) ^ offset;
  }
  return differs == 0;
}

namespace {

/// Distances to the lanes of the mask, 0 to the others.
void SpreadDistances(std::uint32_t mask, const std::uint32_t* distances, LanePattern& lanes) {
  lanes.fill(0);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1)
    lanes[static_cast<std::size_t>(std::countr_zero(rest))] = static_cast<std::int32_t>(*distances++);
}

#if defined(__x86_64__)
/// The same; 16 distances can be read from any of them on.
[[gnu::target("avx512f,popcnt")]] void SpreadDistancesAvx512(std::uint32_t mask, const std::uint32_t* distances,
                                                             LanePattern& lanes) {
  const auto low = static_cast<__mmask16>(mask), high = static_cast<__mmask16>(mask >> 16);
  const __m512i first = _mm512_loadu_si512(distances), second = _mm512_loadu_si512(distances + _mm_popcnt_u32(low));
  _mm512_storeu_si512(lanes.data(), _mm512_maskz_expand_epi32(low, first));
  _mm512_storeu_si512(lanes.data() + 16, _mm512_maskz_expand_epi32(high, second));
}
#endif

}  // namespace

bool PatternOfDistances(std::uint32_t mask, const std::uint32_t* distances, const std::uint32_t* end,
                        std::uint32_t unit, LanePattern& pattern) {
#if defined(__x86_64__)
  if (UsableSimd() == SimdLevel::kAvx512 && end - distances >= std::ptrdiff_t{kWarpSize})
    SpreadDistancesAvx512(mask, distances, pattern);
  else SpreadDistances(mask, distances, pattern);
#else
  SpreadDistances(mask, distances, pattern);
#endif
  std::uint32_t any = 0;
  for (std::int32_t& offset : pattern) {
    any |= static_cast<std::uint32_t>(offset);
    offset = static_cast<std::int32_t>(static_cast<std::uint32_t>(offset) * unit);
  }
  return std::uint64_t{any} * unit <= INT32_MAX;
}

LaneOffsets Widen(const LanePattern& pattern) {
  LaneOffsets offsets;
  for (std::uint32_t lane = 0; lane < kWarpSize; ++lane)
    offsets[lane] = static_cast<std::uint64_t>(std::int64_t{pattern[lane]});
  return offsets;
}

std::optional<std::uint64_t> FindBase(std::uint32_t mask, const std::uint64_t* lanes, const LaneOffsets& offsets) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
  const auto last = kWarpSize - 1 - static_cast<std::uint32_t>(std::countl_zero(mask));
  const std::uint64_t base = lanes[first] - offsets[first];
  if (lanes[last] != base + offsets[last]) return std::nullopt;
  std::uint64_t differs = 0;
  DifferFromOffsets(lanes, offsets.data(), base, mask, &differs);
  return differs == 0 ? std::optional(base) : std::nullopt;
}

}  // namespace gridloom::trace
