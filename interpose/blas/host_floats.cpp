// 16-bit floats on the host, eight at a time where the processor can.
#include <immintrin.h>

#include "interpose/blas/host_matrix.h"

namespace gridloom::blas {
namespace {

__attribute__((target("f16c"))) std::size_t WidenEights(const std::uint16_t* from, std::size_t count, float* to) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  return i;
}

__attribute__((target("f16c"))) std::size_t NarrowEights(const float* from, std::size_t count, std::uint16_t* to) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  return i;
}

bool HasEights() {
  static const bool has = __builtin_cpu_supports("f16c");
  return has;
}

}  // namespace

void WidenF16(const void* from, std::size_t count, float* to) {
  std::size_t i = HasEights() ? WidenEights(static_cast<const std::uint16_t*>(from), count, to) : 0;
  for (; i < count; ++i) to[i] = static_cast<float>(static_cast<const _Float16*>(from)[i]);
}

void NarrowF16(const float* from, std::size_t count, void* to) {
  std::size_t i = HasEights() ? NarrowEights(from, count, static_cast<std::uint16_t*>(to)) : 0;
  for (; i < count; ++i) static_cast<_Float16*>(to)[i] = static_cast<_Float16>(from[i]);
}

}  // namespace gridloom::blas
