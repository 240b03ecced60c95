// Sparse products of f16, bf16, tf32 and 8-bit floats with f32 or f16 accumulators.
#include <cstring>

#include "sim/exec/tensor/elements.h"
#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kMostRows = 16, kMostColumns = 8, kMostDepth = 64;

struct alignas(64) Operands {
  float a[kMostRows][kMostDepth];
  float b[kMostDepth][kMostColumns];
  float c[kMostRows][kMostColumns];
};

/// One register of all lanes as rows of floats: store(row, column, value).
template <typename Store>
GL_INLINE void ReadBlock(MatrixType type, const FragmentRegister from, Store&& store) {
  const auto* const halves = static_cast<const std::uint16_t*>(from);
  const auto* const words = static_cast<const std::uint32_t*>(from);
  switch (type) {
    case MatrixType::kF16:
      for (unsigned row = 0; row < 8; ++row) {
        for (unsigned i = 0; i < 8; ++i) store(row, i, WidenHalf(halves[row * 8 + i]));
      }
      break;
    case MatrixType::kBF16:
      for (unsigned row = 0; row < 8; ++row) {
        for (unsigned i = 0; i < 8; ++i) store(row, i, WidenBfloat(halves[row * 8 + i]));
      }
      break;
    case MatrixType::kTF32:
      for (unsigned row = 0; row < 8; ++row) {
        for (unsigned i = 0; i < 4; ++i) store(row, i, WidenTf32(words[row * 4 + i]));
      }
      break;
    default: {
      const auto* const bytes = static_cast<const std::uint8_t*>(from);
      const std::array<float, 256>& table = SmallFloatTable(type);
      for (unsigned row = 0; row < 8; ++row) {
        for (unsigned i = 0; i < 16; ++i) store(row, i, table[bytes[row * 16 + i]]);
      }
    }
  }
}

GL_INLINE void ReadFactors(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, Operands& to) {
  const unsigned step_a = 128 / BitsOf(imm.a()), step_b = 128 / BitsOf(imm.b());
  const unsigned depth_a = imm.k / 2;
  unsigned r = 0;
  for (unsigned k = 0; k < depth_a; k += step_a) {
    for (unsigned row = 0; row < imm.m; row += 8, ++r) {
      ReadBlock(imm.a(), a[r], [&](unsigned i, unsigned j, float value) { to.a[row + i][k + j] = value; });
    }
  }
  r = 0;
  for (unsigned column = 0; column < imm.n; column += 8) {
    for (unsigned k = 0; k < imm.k; k += step_b, ++r) {
      ReadBlock(imm.b(), b[r], [&](unsigned i, unsigned j, float value) { to.b[k + j][column + i] = value; });
    }
  }
}

GL_INLINE void ReadAccumulators(const MmaImm& imm, const FragmentRegister* c, Operands& to) {
  unsigned r = 0;
  for (unsigned column = 0; column < imm.n; column += 8) {
    for (unsigned row = 0; row < imm.m; row += 8) {
      if (imm.c() == MatrixType::kF16) {
        ReadBlock(MatrixType::kF16, c[r++],
                  [&](unsigned i, unsigned j, float value) { to.c[row + i][column + j] = value; });
        continue;
      }
      for (unsigned odd = 0; odd < 2; ++odd, ++r) {
        const auto* const from = static_cast<const float*>(c[r]);
        for (unsigned i = 0; i < 8; ++i) {
          for (unsigned t = 0; t < 4; ++t) to.c[row + i][column + 2 * t + odd] = from[i * 4 + t];
        }
      }
    }
  }
}

GL_INLINE void WriteAccumulators(const MmaImm& imm, const Operands& from, const FragmentRegister* d) {
  unsigned r = 0;
  for (unsigned column = 0; column < imm.n; column += 8) {
    for (unsigned row = 0; row < imm.m; row += 8) {
      if (imm.d() == MatrixType::kF16) {
        auto* const to = static_cast<std::uint16_t*>(d[r++]);
        for (unsigned i = 0; i < 8; ++i) {
          for (unsigned j = 0; j < 8; ++j) to[i * 8 + j] = FloatToHalf(from.c[row + i][column + j]);
        }
        continue;
      }
      for (unsigned odd = 0; odd < 2; ++odd, ++r) {
        auto* const to = static_cast<float*>(d[r]);
        for (unsigned i = 0; i < 8; ++i) {
          for (unsigned t = 0; t < 4; ++t) to[i * 4 + t] = CanonicalFloat(from.c[row + i][column + 2 * t + odd]);
        }
      }
    }
  }
}

/// c += a b with the elements of A that are stored; n is 8.
GL_INLINE void AccumulateSparse(unsigned rows, unsigned stored, const SparsePositions& positions, Operands& m) {
  for (unsigned row = 0; row < rows; ++row) {
    float sum[8];
    std::memcpy(sum, m.c[row], sizeof sum);
    for (unsigned i = 0; i < stored; ++i) {
      const float* const b = m.b[positions.k[row][i]];
      for (unsigned j = 0; j < 8; ++j) sum[j] += m.a[row][i] * b[j];
    }
    std::memcpy(m.c[row], sum, sizeof sum);
  }
}

GL_INLINE void MultiplyBody(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b,
                            const FragmentRegister* c, const SparsePositions& positions, const FragmentRegister* d) {
  Operands operands;
  ReadFactors(imm, a, b, operands);
  ReadAccumulators(imm, c, operands);
  AccumulateSparse(imm.m, imm.k / 2, positions, operands);
  WriteAccumulators(imm, operands, d);
}

}  // namespace

GL_SIMD_FUNCTION(MultiplySparse, MultiplyBody,
                 (const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                  const SparsePositions& positions, const FragmentRegister* d),
                 (imm, a, b, c, positions, d))

}  // namespace gridloom::exec
