// Matrices of a Product as the host sees them: device memory is memory of this process.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "interpose/blas/call.h"
#include "interpose/blas/device/product.h"

namespace gridloom::blas {

template <typename Value>
inline constexpr bool kIsComplex = !std::is_arithmetic_v<Value>;

inline float FromBf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

inline std::uint16_t ToBf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename Value>
Value ReadElement(const void* data, Index at, Element element) {
  if constexpr (std::is_same_v<Value, float>) {
    if (element == Element::kF16) return static_cast<float>(static_cast<const _Float16*>(data)[at]);
    if (element == Element::kBf16) return FromBf16(static_cast<const std::uint16_t*>(data)[at]);
  }
  return static_cast<const Value*>(data)[at];
}

template <typename Value>
void WriteElement(void* data, Index at, Element element, Value value) {
  if constexpr (std::is_same_v<Value, float>) {
    if (element == Element::kF16) return void(static_cast<_Float16*>(data)[at] = static_cast<_Float16>(value));
    if (element == Element::kBf16) return void(static_cast<std::uint16_t*>(data)[at] = ToBf16(value));
  }
  static_cast<Value*>(data)[at] = value;
}

// 16-bit floats that lie behind each other: a compiler for any processor makes calls of them, one for each.
void WidenF16(const void* from, std::size_t count, float* to);
void NarrowF16(const float* from, std::size_t count, void* to);

/// `count` elements behind each other from index `at` on.
template <typename Value>
void ReadLine(const void* data, Index at, Element element, Index count, Value* to) {
  if constexpr (std::is_same_v<Value, float>) {
    if (element == Element::kF16)
      return WidenF16(static_cast<const _Float16*>(data) + at, static_cast<std::size_t>(count), to);
  }
  for (Index i = 0; i < count; ++i) to[i] = ReadElement<Value>(data, at + i, element);
}
template <typename Value>
void WriteLine(void* data, Index at, Element element, Index count, const Value* from) {
  if constexpr (std::is_same_v<Value, float>) {
    if (element == Element::kF16)
      return NarrowF16(from, static_cast<std::size_t>(count), static_cast<_Float16*>(data) + at);
  }
  for (Index i = 0; i < count; ++i) WriteElement<Value>(data, at + i, element, from[i]);
}

/// One matrix of a batch.
struct HostMatrix {
  const Matrix* of;
  void* data;  ///< of the element at `start`
  Index start;

  HostMatrix(const Matrix& matrix, Index batch)
      : of(&matrix),
        data(matrix.by_pointer ? reinterpret_cast<void**>(matrix.address)[batch]
                               : reinterpret_cast<void*>(matrix.address)),
        start(matrix.start + (matrix.by_pointer ? 0 : batch * matrix.batch_stride)) {}

  Index At(Index row, Index column) const { return start + row * of->row_stride + column * of->column_stride; }

  /// Element (row, column), whether it is stored or follows from others (device/product.cu, ReadAt).
  template <typename Value>
  Value Read(Index row, Index column) const {
    bool conjugate = of->conjugate, diagonal = row == column;
    if (of->stored != Triangle::kFull) {
      if (diagonal && of->unit_diagonal) return Value(1);
      if (of->stored == Triangle::kLower ? row < column : row > column) {
        if (of->outside == Outside::kZero) return Value{};
        std::swap(row, column);
        if (of->outside == Outside::kConjugated) conjugate = !conjugate;
      }
    }
    Value value = ReadElement<Value>(data, At(row, column), of->element);
    if constexpr (kIsComplex<Value>) {
      if (conjugate) value = std::conj(value);
      if (of->stored != Triangle::kFull && of->outside == Outside::kConjugated && diagonal) value = value.real();
    }
    return value;
  }
};

/// A factor as the BLAS takes it: where it lies, or a copy.
template <typename Value>
struct BlasFactor {
  const Value* data = nullptr;
  int leading = 1;
  char op = 'N';
  std::vector<Value> copy;
};

/// Whether columns (rows, where `transposed`) of a matrix lie as the BLAS wants them.
inline bool LiesAs(const Matrix& matrix, Index rows, Index columns, bool transposed) {
  const Index step = transposed ? matrix.column_stride : matrix.row_stride,
              leading = transposed ? matrix.row_stride : matrix.column_stride;
  const Index least = transposed ? columns : rows;
  return step == 1 && leading >= std::max<Index>(least, 1) && leading <= INT32_MAX;
}

template <typename Value>
bool HasType(Element element) {
  if constexpr (std::is_same_v<Value, float>) return element == Element::kF32;
  else if constexpr (std::is_same_v<Value, double>) return element == Element::kF64;
  else if constexpr (std::is_same_v<Value, std::complex<float>>) return element == Element::kC32;
  else return element == Element::kC64;
}

template <typename Value>
BlasFactor<Value> FactorFor(const HostMatrix& matrix, Index rows, Index columns) {
  BlasFactor<Value> factor;
  const Matrix& of = *matrix.of;
  if (HasType<Value>(of.element) && of.stored == Triangle::kFull) {
    factor.data = static_cast<const Value*>(matrix.data) + matrix.start;
    if (!of.conjugate && LiesAs(of, rows, columns, false))
      return factor.leading = static_cast<int>(of.column_stride), factor;
    factor.op = of.conjugate ? 'C' : 'T';
    if (LiesAs(of, rows, columns, true)) return factor.leading = static_cast<int>(of.row_stride), factor;
  }
  factor.copy.resize(static_cast<std::size_t>(rows * columns));
  const bool transposed = LiesAs(of, rows, columns, true);
  if (of.stored == Triangle::kFull && (transposed || LiesAs(of, rows, columns, false))) {  // another type
    const Index lines = transposed ? rows : columns, length = transposed ? columns : rows;
    factor.op = transposed ? 'T' : 'N';
    factor.leading = static_cast<int>(std::max<Index>(length, 1));
    for (Index line = 0; line < lines; ++line) {
      ReadLine(matrix.data, transposed ? matrix.At(line, 0) : matrix.At(0, line), of.element, length,
               factor.copy.data() + line * length);
    }
    if constexpr (kIsComplex<Value>) {
      if (of.conjugate)
        std::ranges::transform(factor.copy, factor.copy.begin(), [](Value value) { return std::conj(value); });
    }
    factor.data = factor.copy.data();
    return factor;
  }
  factor.op = 'N';
  factor.leading = static_cast<int>(std::max<Index>(rows, 1));
  // Along what lies together in memory.
  const bool by_rows = std::abs(of.column_stride) < std::abs(of.row_stride);
  for (Index outer = 0; outer < (by_rows ? rows : columns); ++outer) {
    for (Index inner = 0; inner < (by_rows ? columns : rows); ++inner) {
      const Index row = by_rows ? outer : inner, column = by_rows ? inner : outer;
      factor.copy[static_cast<std::size_t>(column * rows + row)] = matrix.Read<Value>(row, column);
    }
  }
  factor.data = factor.copy.data();
  return factor;
}

}  // namespace gridloom::blas
