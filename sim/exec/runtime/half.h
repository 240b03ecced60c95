// Conversions between half, bfloat16 and wider floats in plain integer arithmetic, round to nearest even, NaN stays
// NaN. For the runtime's slow paths: it is built without F16C.
#pragma once

#include <bit>
#include <cstdint>

namespace gridloom::exec {

inline float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = (half >> 10) & 31u;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  // Subnormal: mantissa * 2^-24, exact in a float.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// Rounds the finite or infinite double `value` to a format with `mantissa_bits` and `exponent_bits`; returns its bits.
inline std::uint16_t RoundToSmallFloat(double value, int mantissa_bits, int exponent_bits) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000u);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto infinity = static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 1024) {
    if (fraction == 0) return static_cast<std::uint16_t>(sign | infinity);
    return static_cast<std::uint16_t>(infinity | ((1 << mantissa_bits) - 1));  // PTX: the canonical NaN
  }
  if (exponent == -1023) return sign;  // zero, or a double subnormal: far below half the smallest value
  const std::uint64_t significand = fraction | std::uint64_t{1} << 52;
  const int smallest = 1 - bias;
  int drop = 52 - mantissa_bits;
  int field = exponent + bias;
  if (exponent < smallest) {
    drop += smallest - exponent;
    field = 0;
    if (drop > 53) return sign;
  }
  std::uint64_t kept = significand >> drop;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // A normal value's hidden bit is 1 << mantissa_bits, so adding carries into the exponent field as it should.
  const std::uint64_t result = field == 0 ? kept : kept + (static_cast<std::uint64_t>(field - 1) << mantissa_bits);
  return static_cast<std::uint16_t>(sign | (result >= infinity ? infinity : result));
}

inline std::uint16_t DoubleToHalf(double value) { return RoundToSmallFloat(value, 10, 5); }
inline std::uint16_t DoubleToBfloat(double value) { return RoundToSmallFloat(value, 7, 8); }
inline std::uint16_t FloatToHalf(float value) { return DoubleToHalf(static_cast<double>(value)); }
inline std::uint16_t FloatToBfloat(float value) { return DoubleToBfloat(static_cast<double>(value)); }
inline float BfloatToFloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

}  // namespace gridloom::exec
