// The 8-, 6- and 4-bit floats of PTX ISA 5.2.3: e5m2 with infinities, e4m3 with one NaN, the smaller ones finite. The
// 6-bit ones lie in the low bits of a byte, the 4-bit one in its middle (9.7.14.5.14, .kind::f8f6f4).
#include <cmath>
#include <limits>

#include "sim/exec/tensor/elements.h"

namespace gridloom::exec {
namespace {

struct Format {
  int exponent_bits, mantissa_bits, shift;
};

float Decode(const Format& format, MatrixType type, unsigned byte) {
  const unsigned bits = byte >> format.shift;
  const unsigned mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const unsigned exponent = bits >> format.mantissa_bits & ((1u << format.exponent_bits) - 1);
  const bool negative = bits >> (format.mantissa_bits + format.exponent_bits) & 1;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - bias - format.mantissa_bits)
                              : std::ldexp(static_cast<float>(mantissa | 1u << format.mantissa_bits),
                                           static_cast<int>(exponent) - bias - format.mantissa_bits);
  if (type == MatrixType::kE5M2 && exponent == 31)
    value = mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  if (type == MatrixType::kE4M3 && exponent == 15 && mantissa == 7) value = std::numeric_limits<float>::quiet_NaN();
  return negative ? -value : value;
}

std::array<float, 256> MakeTable(const Format& format, MatrixType type) {
  std::array<float, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) table[byte] = Decode(format, type, byte);
  return table;
}

}  // namespace

const std::array<float, 256>& SmallFloatTable(MatrixType type) {
  static const std::array<float, 256> e4m3 = MakeTable({4, 3, 0}, MatrixType::kE4M3);
  static const std::array<float, 256> e5m2 = MakeTable({5, 2, 0}, MatrixType::kE5M2);
  static const std::array<float, 256> e3m2 = MakeTable({3, 2, 0}, MatrixType::kE3M2);
  static const std::array<float, 256> e2m3 = MakeTable({2, 3, 0}, MatrixType::kE2M3);
  static const std::array<float, 256> e2m1 = MakeTable({2, 1, 2}, MatrixType::kE2M1);
  switch (type) {
    case MatrixType::kE5M2: return e5m2;
    case MatrixType::kE3M2: return e3m2;
    case MatrixType::kE2M3: return e2m3;
    case MatrixType::kE2M1: return e2m1;
    default: return e4m3;
  }
}

}  // namespace gridloom::exec
