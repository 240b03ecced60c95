// Products of 16 rows of A with groups of eight columns of B, which mma and wgmma are made of (numerics: multiply.h).
//
// Lines are rows of A and columns of B; both run along k. A chunk is 16 bytes of each of eight lines, one after the
// other: what a fragment register of all lanes holds, and what a core matrix of wgmma is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/exec/contract/tensor_immediates.h"

namespace gridloom::exec {

inline constexpr unsigned kLinesOfChunk = 8, kChunkBytes = 16, kMostChunks = 2;

/// Eight lines along k: their chunks, each of kLinesOfChunk * kChunkBytes bytes.
struct EightLines {
  const std::uint8_t* chunk[kMostChunks] = {};
};

/// D = A B + C, all of them in fragments.
struct RowProduct {
  MatrixType type_a = MatrixType::kF16, type_b = MatrixType::kF16;  ///< f16, bf16, tf32, small floats, s8, u8
  MatrixType type_c = MatrixType::kF32, type_d = MatrixType::kF32;  ///< f32, f16; s32
  unsigned chunks = kMostChunks;                                    ///< along k
  unsigned groups = 1;                                              ///< of eight columns
  bool rows16 = true;                                               ///< else eight: those of a[0]
  bool negates = false;                                             ///< the product counts negatively
  bool saturates = false;                                           ///< s32
  EightLines a[2] = {};
  const EightLines* b = nullptr;  ///< one for each group
  /// Registers of the first group: rows 0 to 7 before the others; even columns before odd ones where a register has one
  /// column. Those of the next group come `step_c` and `step_d` later. No C: zeros. D may be the registers of C.
  void* const* c = nullptr;
  void* const* d = nullptr;
  unsigned step_c = 4, step_d = 4;
};

/// Whether there is such a product of these types.
bool HasRowProduct(MatrixType factor);
void MultiplyRows(const RowProduct& product);

/// c += a b in the rounding that the processor is set to, each product and sum rounded once.
struct DoubleProduct {
  static constexpr unsigned kMostRows = 16, kColumns = 8, kMostDepth = 16;
  unsigned rows = 0, depth = 0;  ///< multiples of four
  double a[kMostRows][kMostDepth];
  double b[kMostDepth][kColumns];
  double c[kMostRows][kColumns];
};
void MultiplyDoubles(DoubleProduct& product);

}  // namespace gridloom::exec
