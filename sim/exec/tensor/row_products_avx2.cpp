// Products of rows with vectors of 8 floats.
#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "sim/exec/tensor/row_products.h"
#include "sim/exec/tensor/row_products_levels.h"
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,bmi2"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,bmi2")
#endif
#include "sim/exec/tensor/row_products_body.h"

namespace gridloom::exec {
namespace {

#include "sim/exec/tensor/row_products_lines256.h"

struct Avx2 : Lines256 {
  using Floats = __m256;
  using Doubles = __m256d;
  static constexpr unsigned kWidth = 8;

  template <bool>
  static Floats MultiplyAdd(const Floats& a, const Floats& b, const Floats& c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  static Doubles MultiplyAdd(const Doubles& a, const Doubles& b, const Doubles& c) { return _mm256_fmadd_pd(a, b, c); }
  static Floats Canonical(const Floats& floats) {
    return _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)), floats,
                            _mm256_cmp_ps(floats, floats, _CMP_ORD_Q));
  }
  static Floats RepeatFour(const float* from) { return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from)); }
  template <unsigned kElement>
  static Floats RepeatElement(const Floats& floats) {
    return _mm256_permute_ps(floats, kElement * 0x55);
  }
  static __m256i Words8(const void* from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from)));
  }
  static __m256i Words16(const void* from) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  template <unsigned kBytes, int kQuad>
  static void GatherQuads(const std::uint8_t* rows, std::uint8_t* to) {
    const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows));
    if constexpr (kBytes == 2) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                       _mm256_castsi256_si128(_mm256_permute4x64_epi64(all, kQuad | (kQuad + 2) << 2)));
    } else {
      const __m256i from = _mm256_setr_epi32(kQuad, kQuad + 4, 0, 0, 0, 0, 0, 0);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(all, from)));
    }
  }
  static Floats WidenHalves(const void* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static void NarrowToHalves(const float* from, std::uint16_t* to) {
    const __m256 floats = _mm256_loadu_ps(from);
    const __m256i unordered = _mm256_castps_si256(_mm256_cmp_ps(floats, floats, _CMP_UNORD_Q));
    const __m128i none = _mm_packs_epi32(_mm256_castsi256_si128(unordered), _mm256_extracti128_si256(unordered, 1));
    const __m128i halves = _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_blendv_epi8(halves, _mm_set1_epi16(0x7fff), none));
  }
};

}  // namespace

void MultiplyRowsAvx2(const RowProduct& product) { RowProducts<Avx2>::Multiply(product); }
void MultiplyDoublesAvx2(DoubleProduct& product) { RowProducts<Avx2>::MultiplyDoubles(product); }

}  // namespace gridloom::exec
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
