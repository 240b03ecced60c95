// Searches in one set of a cache: the ways are compared several at a time and without branches, which no processor could predict. With the
// instructions that every x86-64 processor has.
#pragma once

#include <emmintrin.h>

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

/// The first of the least of `bytes`.
inline std::uint32_t FirstLeast(const std::uint8_t* bytes, std::uint32_t count) {
  const auto step = [&](std::uint32_t i) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i)); };
  __m128i least = step(0);
  for (std::uint32_t i = kWaysPerStep; i < count; i += kWaysPerStep) least = _mm_min_epu8(least, step(i));
  // The least of the eight, in all of them.
  least = _mm_min_epu8(least, _mm_shuffle_epi32(least, 0xe1));
  least = _mm_min_epu8(least, _mm_shufflelo_epi16(least, 0xb1));
  least = _mm_min_epu8(least, _mm_or_si128(_mm_srli_epi16(least, 8), _mm_slli_epi16(least, 8)));
  std::uint64_t where = 0;
  for (std::uint32_t i = 0; i < count; i += kWaysPerStep) {
    where |= static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(step(i), least)) & 0xff) << i;
  }
  return static_cast<std::uint32_t>(std::countr_zero(where));
}

}  // namespace gridloom::timing
