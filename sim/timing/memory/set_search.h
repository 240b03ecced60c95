// Searches in one set of a cache: the ways are compared several at a time and without branches, which no processor
// could predict. With the instructions that every x86-64 processor has had since 2011 (SSE4.1).
#pragma once

#include <smmintrin.h>

#include <array>
#include <bit>
#include <cstdint>

namespace gridloom::timing {

/// Sets are searched in steps of as many ways; arrays of them are filled up to whole steps.
inline constexpr std::uint32_t kWaysPerStep = 8;

/// The entries that are `wanted`, as a mask.
inline std::uint64_t Matches(const std::uint32_t* entries, std::uint32_t count, std::uint32_t wanted) {
  const __m128i all = _mm_set1_epi32(static_cast<int>(wanted));
  std::uint64_t matches = 0;
  for (std::uint32_t i = 0; i < count; i += kWaysPerStep) {
    const __m128i low = _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(entries + i)), all);
    const __m128i high = _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(entries + i + 4)), all);
    const __m128i bytes = _mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
    matches |= static_cast<std::uint64_t>(_mm_movemask_epi8(bytes)) << i;
  }
  return matches;
}

inline std::uint64_t Matches(const std::uint16_t* entries, std::uint32_t count, std::uint16_t wanted) {
  const __m128i all = _mm_set1_epi16(static_cast<short>(wanted));
  std::uint64_t matches = 0;
  for (std::uint32_t i = 0; i < count; i += kWaysPerStep) {
    const __m128i equal = _mm_cmpeq_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(entries + i)), all);
    matches |= static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()))) << i;
  }
  return matches;
}

/// The first of the least of `bytes`, of which there are 64 at most.
inline std::uint32_t FirstLeast(const std::uint8_t* bytes, std::uint32_t count) {
  constexpr int kPlaceBits = 6;
  __m128i least = _mm_set1_epi16(-1), places = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::uint32_t i = 0; i < count; i += kWaysPerStep) {
    const __m128i eight = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i)));
    least = _mm_min_epu16(least, _mm_or_si128(_mm_slli_epi16(eight, kPlaceBits), places));
    places = _mm_add_epi16(places, _mm_set1_epi16(kWaysPerStep));
  }
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(least))) & ((1u << kPlaceBits) - 1);
}

/// Uses of a set's ways are numbered by a clock in the lowest bits of a byte each; 0: never used. The highest bit is
/// the owner's.
inline constexpr std::uint8_t kLatestUse = 0x7f;

/// When the clock of a set has come to kLatestUse: numbers the uses of its first `ways` places anew, from 1 on; their
/// order and the highest bits stay. Returns the clock, which goes on behind all of them. `count` places are in the
/// array, in steps of kWaysPerStep.
inline std::uint8_t NumberByAge(std::uint8_t* used, std::uint32_t count, std::uint32_t ways) {
  constexpr std::uint32_t kMaxWays = 64;
  std::array<std::uint8_t, kMaxWays> old{};
  std::uint32_t never = 0;
  for (std::uint32_t way = 0; way < count; ++way) {
    old[way] = way < ways ? used[way] & kLatestUse : kLatestUse;
    never += old[way] == 0;
  }
  for (std::uint32_t way = 0; way < ways; ++way) {
    if (old[way] == 0) continue;
    const __m128i own = _mm_set1_epi8(static_cast<char>(old[way]));
    int earlier = 0;
    for (std::uint32_t i = 0; i < count; i += kWaysPerStep) {
      const __m128i step = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(old.data() + i));
      earlier += std::popcount(static_cast<unsigned>(_mm_movemask_epi8(_mm_cmplt_epi8(step, own)) & 0xff));
    }
    const std::uint32_t number = 1 + static_cast<std::uint32_t>(earlier) - never;
    used[way] = static_cast<std::uint8_t>(number | (used[way] & ~kLatestUse & 0xff));
  }
  return static_cast<std::uint8_t>(ways);
}

}  // namespace gridloom::timing
