// Products of rows with vectors of 16 floats.
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
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2,prefer-vector-width=512")
#endif
#include "sim/exec/tensor/row_products_body.h"

namespace gridloom::exec {
namespace {

#include "sim/exec/tensor/row_products_lines256.h"

struct Avx512 : Lines256 {
  using Floats = __m512;
  using Doubles = __m512d;
  static constexpr unsigned kWidth = 16;

  template <bool>
  static Floats MultiplyAdd(const Floats& a, const Floats& b, const Floats& c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  static Doubles MultiplyAdd(const Doubles& a, const Doubles& b, const Doubles& c) { return _mm512_fmadd_pd(a, b, c); }
  static Floats Canonical(const Floats& floats) {
    // Four bits for each class of numbers, those that are none first: 0 keeps what was there, 1 takes the number.
    const __m512i takes_numbers = _mm512_set1_epi32(0x11111100);
    return _mm512_fixupimm_ps(_mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff)), floats, takes_numbers, 0);
  }
  static Floats RepeatFour(const float* from) { return _mm512_broadcast_f32x4(_mm_loadu_ps(from)); }
  template <unsigned kElement>
  static Floats RepeatElement(const Floats& floats) {
    return _mm512_permute_ps(floats, kElement * 0x55);
  }
  static Floats WidenHalves(const void* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
  }
  static __m512i Words8(const void* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  }
  static __m512i Words16(const void* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
  }
  template <unsigned kBytes, int kQuad>
  static void GatherQuads(const std::uint8_t* rows, std::uint8_t* to) {
    const __m512i all = _mm512_loadu_si512(rows);
    if constexpr (kBytes == 2) {
      const __m512i from = _mm512_setr_epi64(kQuad, kQuad + 2, kQuad + 4, kQuad + 6, 0, 0, 0, 0);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(_mm512_permutexvar_epi64(from, all)));
    } else {
      const __m512i from =
          _mm512_setr_epi32(kQuad, kQuad + 4, kQuad + 8, kQuad + 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(_mm512_permutexvar_epi32(from, all)));
    }
  }
  static void NarrowToHalves(const float* from, std::uint16_t* to) {
    const __m512 floats = _mm512_loadu_ps(from);
    const __m256i halves = _mm512_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT);
    const __mmask16 numbers = _mm512_cmp_ps_mask(floats, floats, _CMP_ORD_Q);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_mask_mov_epi16(_mm256_set1_epi16(0x7fff), numbers, halves));
  }
};

}  // namespace

void MultiplyRowsAvx512(const RowProduct& product) { RowProducts<Avx512>::Multiply(product); }
void MultiplyDoublesAvx512(DoubleProduct& product) { RowProducts<Avx512>::MultiplyDoubles(product); }

}  // namespace gridloom::exec
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
