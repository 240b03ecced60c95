// Products of rows for any processor, four floats at a time.
#include "sim/exec/runtime/half.h"
#include "sim/exec/tensor/elements.h"
#include "sim/exec/tensor/row_products_body.h"
#include "sim/exec/tensor/row_products_levels.h"

namespace gridloom::exec {
namespace {

struct Baseline {
  typedef float Floats __attribute__((vector_size(16)));
  typedef double Doubles __attribute__((vector_size(16)));
  typedef std::uint32_t Words __attribute__((vector_size(16)));
  typedef std::uint8_t Lines __attribute__((vector_size(16)));
  static constexpr unsigned kWidth = 4, kLanes = 1;

  /// Factors have at most 12 bits of mantissa, so a product has 24 and is exact as a double. The sum of two numbers of
  /// 24 bits is inexact as a double only where the larger one outweighs the other by far, and is then rounded to that
  /// one, as it would be at once.
  template <bool kExact>
  static Floats MultiplyAdd(const Floats& a, const Floats& b, const Floats& c) {
    if constexpr (kExact) return a * b + c;
    Floats sum;
    for (unsigned i = 0; i < kWidth; ++i) sum[i] = static_cast<float>(double{a[i]} * double{b[i]} + double{c[i]});
    return sum;
  }
  static Doubles MultiplyAdd(const Doubles& a, const Doubles& b, const Doubles& c) {
    return Doubles{std::fma(a[0], b[0], c[0]), std::fma(a[1], b[1], c[1])};
  }
  static Floats Canonical(const Floats& floats) {
    Floats numbers;
    for (unsigned i = 0; i < kWidth; ++i)
      numbers[i] = floats[i] == floats[i] ? floats[i] : std::bit_cast<float>(0x7fffffffu);
    return numbers;
  }
  static Floats RepeatFour(const float* from) {
    Floats four;
    std::memcpy(&four, from, sizeof four);
    return four;
  }
  template <unsigned kElement>
  static Floats RepeatElement(const Floats& floats) {
    return Floats{} + floats[kElement];
  }
  static Words Words8(const void* from) { return WordsOf<std::uint8_t>(from); }
  static Words Words16(const void* from) { return WordsOf<std::uint16_t>(from); }
  template <unsigned kBytes, unsigned kQuad>
  static void GatherQuads(const std::uint8_t* rows, std::uint8_t* to) {
    std::memcpy(to, rows + kQuad * kWidth * kBytes, kWidth * kBytes);
  }
  static Lines LoadLines(const std::uint8_t* chunk, const std::uint8_t*) {
    Lines lines;
    std::memcpy(&lines, chunk, sizeof lines);
    return lines;
  }
  template <unsigned kBytes>
  static void Interleave(const Lines& a, const Lines& b, Lines& low, Lines& high) {
    if constexpr (kBytes == 1) {
      low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      high = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    } else if constexpr (kBytes == 2) {
      low = __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
      high = __builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
    } else {
      low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
      high = __builtin_shufflevector(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    }
  }
  static Floats WidenHalves(const void* from) {
    std::uint16_t halves[kWidth];
    std::memcpy(halves, from, sizeof halves);
    Floats floats;
    for (unsigned i = 0; i < kWidth; ++i) floats[i] = WidenHalf(halves[i]);
    return floats;
  }
  static void NarrowToHalves(const float* from, std::uint16_t* to) {
    for (unsigned i = 0; i < kWidth; ++i) to[i] = FloatToHalf(from[i]);
  }

 private:
  template <typename Element>
  static Words WordsOf(const void* from) {
    Element elements[kWidth];
    std::memcpy(elements, from, sizeof elements);
    return Words{elements[0], elements[1], elements[2], elements[3]};
  }
};

}  // namespace

void MultiplyRowsBaseline(const RowProduct& product) { RowProducts<Baseline>::Multiply(product); }
void MultiplyDoublesBaseline(DoubleProduct& product) { RowProducts<Baseline>::MultiplyDoubles(product); }

}  // namespace gridloom::exec
