#include "sim/exec/tensor/group_multiply.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "sim/exec/simd.h"
#include "sim/exec/tensor/elements.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kMostDepth = 32, kBlock = 8;

typedef float Floats16 __attribute__((vector_size(64)));
typedef std::uint16_t Halfwords8 __attribute__((vector_size(16)));

/// A as registers of 32 lanes want it: lane 4g + t has row g, or g + 8.
struct alignas(64) SpreadA {
  float lanes[2][kMostDepth][kWarpSize];
};
/// Eight columns of B, even ones first, then odd ones: lane 4g + t has columns 2t and 2t + 1.
struct alignas(64) BlockOfB {
  float column[kMostDepth + 1][kBlock];  ///< read two rows at a time
};
/// The registers of eight columns: rows g (first two) and g + 8, even and odd columns.
struct alignas(64) Sums {
  float lanes[4][kWarpSize];
};

constexpr unsigned PlaceOfColumn(unsigned column) { return column / 2 + column % 2 * 4; }

GL_INLINE void Interleave(const Halfwords8& a, const Halfwords8& b, Halfwords8& low, Halfwords8& high) {
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

GL_INLINE void Transpose8x8(const Halfwords8 (&in)[8], Halfwords8 (&out)[8]) {
  Halfwords8 x[8], y[8];
  for (unsigned i = 0; i < 4; ++i) Interleave(in[i], in[i + 4], x[2 * i], x[2 * i + 1]);
  for (unsigned i = 0; i < 4; ++i) Interleave(x[i], x[i + 4], y[2 * i], y[2 * i + 1]);
  for (unsigned i = 0; i < 4; ++i) Interleave(y[i], y[i + 4], out[2 * i], out[2 * i + 1]);
}

/// One element of a row of A or a column of B; 8-bit integers are exact as floats, and so are sums of 32 of their products.
GL_INLINE float ElementAt(MatrixType type, const std::uint8_t* row, unsigned i, const float* table) {
  switch (type) {
    case MatrixType::kF16:
    case MatrixType::kBF16: {
      std::uint16_t bits;
      std::memcpy(&bits, row + i * 2, sizeof bits);
      return type == MatrixType::kF16 ? WidenHalf(bits) : WidenBfloat(bits);
    }
    case MatrixType::kTF32: {
      std::uint32_t bits;
      std::memcpy(&bits, row + i * 4, sizeof bits);
      return WidenTf32(bits);
    }
    case MatrixType::kS8: return static_cast<std::int8_t>(row[i]);
    case MatrixType::kU8: return row[i];
    default: return table[row[i]];
  }
}

const float* TableOf(MatrixType type) {
  return type == MatrixType::kE4M3 || type == MatrixType::kE5M2 ? SmallFloatTable(type).data() : nullptr;
}

template <MatrixType type>
GL_INLINE void Spread(const GroupOperands& operands, unsigned depth, bool negate, const float* table, SpreadA& to) {
  for (unsigned row = 0; row < kGroupRows; ++row) {
    for (unsigned k = 0; k < depth; ++k) {
      const float value = ElementAt(type, operands.a[row], k, table);
      float* const lanes = to.lanes[row / 8][k] + row % 8 * 4;
      for (unsigned t = 0; t < 4; ++t) lanes[t] = negate ? -value : value;
    }
  }
}

template <MatrixType type>
GL_INLINE void ReadColumns(const GroupOperands& operands, unsigned first, unsigned depth, const float* table, BlockOfB& to) {
  if constexpr (type == MatrixType::kF16 || type == MatrixType::kBF16) {
    std::uint16_t bits[16][kBlock];
    for (unsigned half = 0; half < 2; ++half) {
      Halfwords8 in[8], out[8];
      for (unsigned i = 0; i < kBlock; ++i) std::memcpy(&in[PlaceOfColumn(i)], operands.b[first + i] + half * 16, 16);
      Transpose8x8(in, out);
      std::memcpy(bits[half * 8], out, sizeof out);
    }
    const std::uint16_t* const from = bits[0];
    float* const floats = to.column[0];
    for (unsigned i = 0; i < 16 * kBlock; ++i) floats[i] = type == MatrixType::kF16 ? WidenHalf(from[i]) : WidenBfloat(from[i]);
  } else {
    for (unsigned i = 0; i < kBlock; ++i) {
      for (unsigned k = 0; k < depth; ++k) to.column[k][PlaceOfColumn(i)] = ElementAt(type, operands.b[first + i], k, table);
    }
  }
}

/// Spread: the first and the next four columns, again and again. Vectors as wide as the instruction set's: shuffles of wider ones would go
/// element by element.
struct Wide {
  typedef Floats16 Floats;
  [[gnu::always_inline]] static void Spread(const Floats& columns, Floats& first, Floats& next) {
    first = __builtin_shufflevector(columns, columns, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    next = __builtin_shufflevector(columns, columns, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
  }
};
struct Narrow {
  typedef float Floats __attribute__((vector_size(32)));
  [[gnu::always_inline]] static void Spread(const Floats& columns, Floats& first, Floats& next) {
    first = __builtin_shufflevector(columns, columns, 0, 1, 2, 3, 0, 1, 2, 3);
    next = __builtin_shufflevector(columns, columns, 4, 5, 6, 7, 4, 5, 6, 7);
  }
};

/// sums += a b, k ascending. Rows g and g + 8 one after the other: what both need at once would not fit the registers of AVX2.
template <typename Vectors>
GL_INLINE void AddProducts(const SpreadA& a, const BlockOfB& b, unsigned depth, Sums& sums) {
  typedef typename Vectors::Floats Floats;
  constexpr unsigned kWidth = sizeof(Floats) / sizeof(float), kParts = kWarpSize / kWidth;
  for (unsigned half = 0; half < 2; ++half) {
    Floats even_sums[kParts], odd_sums[kParts];
    std::memcpy(even_sums, sums.lanes[half * 2], sizeof even_sums);
    std::memcpy(odd_sums, sums.lanes[half * 2 + 1], sizeof odd_sums);
    for (unsigned k = 0; k < depth; ++k) {
      Floats columns, even, odd;  // each column group, as often as the vector holds it
      std::memcpy(&columns, b.column[k], sizeof columns);
      Vectors::Spread(columns, even, odd);
      for (unsigned part = 0; part < kParts; ++part) {
        Floats rows;
        std::memcpy(&rows, a.lanes[half][k] + part * kWidth, sizeof rows);
        even_sums[part] += rows * even;
        odd_sums[part] += rows * odd;
      }
    }
    std::memcpy(sums.lanes[half * 2], even_sums, sizeof even_sums);
    std::memcpy(sums.lanes[half * 2 + 1], odd_sums, sizeof odd_sums);
  }
}

// The registers of eight columns of D: four of f32 and s32; two of f16, whose words hold an even and an odd column.

GL_INLINE void ReadSums(MatrixType type, const FragmentRegister* d, Sums& sums) {
  if (type == MatrixType::kF32) {
    for (unsigned i = 0; i < 4; ++i) std::memcpy(sums.lanes[i], d[i], sizeof sums.lanes[i]);
    return;
  }
  for (unsigned half = 0; half < 2; ++half) {
    const auto* const from = static_cast<const std::uint16_t*>(d[half]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      sums.lanes[half * 2][lane] = WidenHalf(from[lane * 2]);
      sums.lanes[half * 2 + 1][lane] = WidenHalf(from[lane * 2 + 1]);
    }
  }
}

GL_INLINE void WriteSums(MatrixType type, const Sums& sums, const FragmentRegister* d) {
  if (type == MatrixType::kF32) {
    for (unsigned i = 0; i < 4; ++i) std::memcpy(d[i], sums.lanes[i], sizeof sums.lanes[i]);
    return;
  }
  for (unsigned half = 0; half < 2; ++half) {
    auto* const to = static_cast<std::uint16_t*>(d[half]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      to[lane * 2] = FloatToHalf(sums.lanes[half * 2][lane]);
      to[lane * 2 + 1] = FloatToHalf(sums.lanes[half * 2 + 1][lane]);
    }
  }
}

/// The sums of one product, added to what was there: exact, then wrapped or saturated.
GL_INLINE void AddIntegerSums(const GroupMmaImm& imm, bool accumulates, const Sums& sums, const FragmentRegister* d) {
  for (unsigned i = 0; i < 4; ++i) {
    auto* const to = static_cast<std::int32_t*>(d[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const auto sum = static_cast<std::int32_t>(sums.lanes[i][lane]);
      const std::int64_t exact = (accumulates ? std::int64_t{to[lane]} : 0) + sum;
      to[lane] = imm.has(GroupMmaImm::kSaturate)
                     ? static_cast<std::int32_t>(std::clamp<std::int64_t>(exact, std::numeric_limits<std::int32_t>::min(),
                                                                          std::numeric_limits<std::int32_t>::max()))
                     : static_cast<std::int32_t>(exact);
    }
  }
}

template <typename Vectors, MatrixType type_a, MatrixType type_b>
GL_INLINE void MultiplyTypes(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d) {
  constexpr bool kIntegers = IsIntegerMatrix(type_a);
  constexpr unsigned kDepth = kGroupDepthBytes * 8 / BitsOf(type_a);
  const float* const table_b = TableOf(type_b);
  SpreadA a;
  Spread<type_a>(operands, kDepth, imm.has(GroupMmaImm::kNegateA) != imm.has(GroupMmaImm::kNegateB), TableOf(type_a), a);
  const unsigned registers = imm.accumulator == MatrixType::kF16 ? 2 : 4;
  for (unsigned column = 0; column < imm.columns(); column += kBlock, d += registers) {
    BlockOfB b;
    ReadColumns<type_b>(operands, column, kDepth, table_b, b);
    Sums sums;
    if (kIntegers || !accumulates) std::memset(&sums, 0, sizeof sums);
    else ReadSums(imm.accumulator, d, sums);
    AddProducts<Vectors>(a, b, kDepth, sums);
    if constexpr (kIntegers) AddIntegerSums(imm, accumulates, sums, d);
    else WriteSums(imm.accumulator, sums, d);
  }
}

template <typename Vectors, MatrixType type_a>
GL_INLINE void MultiplyMixed(const GroupMmaImm& imm, MatrixType one, const GroupOperands& operands, bool accumulates,
                             const FragmentRegister* d) {
  constexpr bool kIntegers = IsIntegerMatrix(type_a);
  constexpr MatrixType kFirst = kIntegers ? MatrixType::kS8 : MatrixType::kE4M3;
  constexpr MatrixType kSecond = kIntegers ? MatrixType::kU8 : MatrixType::kE5M2;
  if (one == kFirst) return MultiplyTypes<Vectors, type_a, kFirst>(imm, operands, accumulates, d);
  MultiplyTypes<Vectors, type_a, kSecond>(imm, operands, accumulates, d);
}

template <typename Vectors>
GL_INLINE void MultiplyBody(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d) {
  switch (imm.a()) {
    case MatrixType::kF16: return MultiplyTypes<Vectors, MatrixType::kF16, MatrixType::kF16>(imm, operands, accumulates, d);
    case MatrixType::kBF16: return MultiplyTypes<Vectors, MatrixType::kBF16, MatrixType::kBF16>(imm, operands, accumulates, d);
    case MatrixType::kTF32: return MultiplyTypes<Vectors, MatrixType::kTF32, MatrixType::kTF32>(imm, operands, accumulates, d);
    case MatrixType::kE4M3: return MultiplyMixed<Vectors, MatrixType::kE4M3>(imm, imm.b(), operands, accumulates, d);
    case MatrixType::kE5M2: return MultiplyMixed<Vectors, MatrixType::kE5M2>(imm, imm.b(), operands, accumulates, d);
    case MatrixType::kS8: return MultiplyMixed<Vectors, MatrixType::kS8>(imm, imm.b(), operands, accumulates, d);
    default: return MultiplyMixed<Vectors, MatrixType::kU8>(imm, imm.b(), operands, accumulates, d);
  }
}

GL_SIMD_FUNCTION_OF_TWO(MultiplyElements, MultiplyBody<Wide>, MultiplyBody<Narrow>,
                        (const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d),
                        (imm, operands, accumulates, d))

// d {+}= popc(a & b) over 256 bits.
void MultiplyBits(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d) {
  for (unsigned row = 0; row < kGroupRows; ++row) {
    for (unsigned column = 0; column < imm.columns(); ++column) {
      unsigned sum = 0;
      for (unsigned at = 0; at < kGroupDepthBytes; at += 8) {
        std::uint64_t x, y;
        std::memcpy(&x, operands.a[row] + at, sizeof x);
        std::memcpy(&y, operands.b[column] + at, sizeof y);
        sum += static_cast<unsigned>(std::popcount(x & y));
      }
      const unsigned lane = row % 8 * 4 + column % 8 / 2;
      auto* const to = static_cast<std::uint32_t*>(d[column / 8 * 4 + row / 8 * 2 + column % 2]) + lane;
      *to = (accumulates ? *to : 0) + sum;
    }
  }
}

}  // namespace

void MultiplyGroup(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d) {
  if (imm.a() == MatrixType::kB1) return MultiplyBits(imm, operands, accumulates, d);
  MultiplyElements(imm, operands, accumulates, d);
}

void TransposeHalfwords(const std::uint8_t* from, std::size_t from_pitch, std::uint8_t* to, std::size_t to_pitch) {
  Halfwords8 in[8], out[8];
  for (unsigned i = 0; i < 8; ++i) std::memcpy(&in[i], from + i * from_pitch, 16);
  Transpose8x8(in, out);
  for (unsigned i = 0; i < 8; ++i) std::memcpy(to + i * to_pitch, &out[i], 16);
}

}  // namespace gridloom::exec
