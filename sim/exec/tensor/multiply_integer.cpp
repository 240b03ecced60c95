// Products of 8-, 4- and 1-bit integer matrices with i32 accumulators.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "sim/exec/simd.h"
#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kMostRows = 32, kMostColumns = 32, kMostDepth = 128;

struct alignas(64) Operands {
  std::int32_t a[kMostRows][kMostDepth];
  std::int32_t b[kMostDepth][kMostColumns];
  std::int32_t sum[kMostRows][kMostColumns];
};

/// Element i of a row of a block.
GL_INLINE std::int32_t ElementAt(MatrixType type, const std::uint8_t* row, unsigned i) {
  switch (type) {
    case MatrixType::kS8: return static_cast<std::int8_t>(row[i]);
    case MatrixType::kU8: return row[i];
    default: break;
  }
  const std::uint32_t nibble = row[i / 2] >> i % 2 * 4 & 15u;
  return type == MatrixType::kS4 ? static_cast<std::int32_t>(nibble ^ 8) - 8 : static_cast<std::int32_t>(nibble);
}

GL_INLINE void ReadFactors(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, Operands& to) {
  const unsigned step = 128 / BitsOf(imm.a()), depth_a = imm.has(MmaImm::kSparse) ? imm.k / 2 : imm.k;
  unsigned r = 0;
  for (unsigned k = 0; k < depth_a; k += step) {
    for (unsigned row = 0; row < imm.m; row += 8, ++r) {
      const auto* const from = static_cast<const std::uint8_t*>(a[r]);
      for (unsigned i = 0; i < 8; ++i) {
        for (unsigned j = 0; j < step; ++j) to.a[row + i][k + j] = ElementAt(imm.a(), from + i * 16, j);
      }
    }
  }
  r = 0;
  for (unsigned column = 0; column < imm.n; column += 8) {
    for (unsigned k = 0; k < imm.k; k += step, ++r) {
      const auto* const from = static_cast<const std::uint8_t*>(b[r]);
      for (unsigned i = 0; i < 8; ++i) {
        for (unsigned j = 0; j < step; ++j) to.b[k + j][column + i] = ElementAt(imm.b(), from + i * 16, j);
      }
    }
  }
}

GL_INLINE std::uint32_t Add(std::uint32_t c, std::int32_t sum, bool saturate) {
  if (!saturate) return c + static_cast<std::uint32_t>(sum);
  const std::int64_t exact = std::int64_t{static_cast<std::int32_t>(c)} + sum;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(exact, std::numeric_limits<std::int32_t>::min(),
                                                             std::numeric_limits<std::int32_t>::max()));
}

/// Adds the sums to the accumulators' registers.
GL_INLINE void Finish(const MmaImm& imm, const Operands& operands, const FragmentRegister* c,
                      const FragmentRegister* d) {
  unsigned r = 0;
  for (unsigned column = 0; column < imm.n; column += 8) {
    for (unsigned row = 0; row < imm.m; row += 8) {
      for (unsigned odd = 0; odd < 2; ++odd, ++r) {
        const auto* const from = static_cast<const std::uint32_t*>(c[r]);
        auto* const to = static_cast<std::uint32_t*>(d[r]);
        for (unsigned lane = 0; lane < kWarpSize; ++lane) {
          to[lane] =
              Add(from[lane], operands.sum[row + lane / 4][column + lane % 4 * 2 + odd], imm.has(MmaImm::kSaturate));
        }
      }
    }
  }
}

template <unsigned kColumns>
GL_INLINE void Accumulate(unsigned rows, unsigned depth, Operands& m) {
  for (unsigned row = 0; row < rows; ++row) {
    std::int32_t sum[kColumns] = {};
    for (unsigned k = 0; k < depth; ++k) {
      const std::int32_t a = m.a[row][k];
      for (unsigned j = 0; j < kColumns; ++j) sum[j] += a * m.b[k][j];  // at most 64 * 255 * 255
    }
    for (unsigned j = 0; j < kColumns; ++j) m.sum[row][j] = sum[j];
  }
}

/// The same with the elements of A that are stored; n is 8.
GL_INLINE void AccumulateSparse(unsigned rows, unsigned stored, const SparsePositions& positions, Operands& m) {
  for (unsigned row = 0; row < rows; ++row) {
    std::int32_t sum[8] = {};
    for (unsigned i = 0; i < stored; ++i) {
      const std::int32_t* const b = m.b[positions.k[row][i]];
      for (unsigned j = 0; j < 8; ++j) sum[j] += m.a[row][i] * b[j];
    }
    for (unsigned j = 0; j < 8; ++j) m.sum[row][j] = sum[j];
  }
}

GL_INLINE void MultiplyBody(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b,
                            const FragmentRegister* c, const SparsePositions* positions, const FragmentRegister* d) {
  Operands operands;
  ReadFactors(imm, a, b, operands);
  if (positions) {
    AccumulateSparse(imm.m, imm.k / 2, *positions, operands);
    return Finish(imm, operands, c, d);
  }
  switch (imm.n) {
    case 8: Accumulate<8>(imm.m, imm.k, operands); break;
    case 16: Accumulate<16>(imm.m, imm.k, operands); break;
    default: Accumulate<32>(imm.m, imm.k, operands); break;
  }
  Finish(imm, operands, c, d);
}

}  // namespace

GL_SIMD_FUNCTION(MultiplyInteger, MultiplyBody,
                 (const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                  const SparsePositions* positions, const FragmentRegister* d),
                 (imm, a, b, c, positions, d))

// d = c + popc(a op b) over k bits; a register is 8 rows of 128 bits.
void MultiplyBits(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                  const FragmentRegister* d) {
  const unsigned row_blocks = imm.m / 8u, depth_blocks = imm.k / 128u;
  for (unsigned block = 0; block < row_blocks; ++block) {
    std::uint32_t sum[8][8] = {};
    for (unsigned kb = 0; kb < depth_blocks; ++kb) {
      const auto* const rows = static_cast<const std::uint32_t*>(a[kb * row_blocks + block]);
      const auto* const columns = static_cast<const std::uint32_t*>(b[kb]);
      for (unsigned i = 0; i < 8; ++i) {
        for (unsigned j = 0; j < 8; ++j) {
          for (unsigned w = 0; w < 4; ++w) {
            const std::uint32_t x = rows[i * 4 + w], y = columns[j * 4 + w];
            sum[i][j] += static_cast<std::uint32_t>(std::popcount(imm.has(MmaImm::kAndPopc) ? x & y : x ^ y));
          }
        }
      }
    }
    for (unsigned odd = 0; odd < 2; ++odd) {
      const auto* const from = static_cast<const std::uint32_t*>(c[block * 2 + odd]);
      auto* const to = static_cast<std::uint32_t*>(d[block * 2 + odd]);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) to[lane] = from[lane] + sum[lane / 4][lane % 4 * 2 + odd];
    }
  }
}

}  // namespace gridloom::exec
