// What AVX2 and AVX-512 have in common: the lines of two chunks as a vector of 32 bytes. Included by
// row_products_{avx2,avx512}.cpp within their instruction sets and their unnamed namespaces, so that each has its own.

struct Lines256 {
  using Lines = __m256i;
  static constexpr unsigned kLanes = 2;

  static Lines LoadLines(const std::uint8_t* chunk, const std::uint8_t* next) {
    return _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(next), reinterpret_cast<const __m128i*>(chunk));
  }
  template <unsigned kBytes>
  static void Interleave(const Lines& a, const Lines& b, Lines& low, Lines& high) {
    if constexpr (kBytes == 1) low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    else if constexpr (kBytes == 2) low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
    else low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
  }
};
