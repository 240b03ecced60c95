// Elements of floating-point matrices as floats. All conversions to float are exact and free of branches.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/runtime/half.h"
#include "sim/exec/simd.h"

namespace gridloom::exec {

GL_INLINE float WidenHalf(std::uint16_t half) {
  const std::uint32_t magnitude = std::uint32_t{half & 0x7fffu} << 13;
  // Moves the exponent and makes subnormals normal; infinity and NaN keep theirs.
  const std::uint32_t moved = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  return std::bit_cast<float>(sign | (magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : moved));
}
GL_INLINE float WidenBfloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
/// The 13 low bits do not count.
GL_INLINE float WidenTf32(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); }

/// What is no number as 0x7fffffff.
GL_INLINE float CanonicalFloat(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }

/// Small formats by table: 256 values each.
const std::array<float, 256>& SmallFloatTable(MatrixType type);

}  // namespace gridloom::exec
