// The part of one warp in a product of a warp group (PTX ISA, 9.7.15: wgmma.mma_async): 16 rows of A times all columns
// of B. Fragments, order and rounding are those of mma (multiply.h).
#pragma once

#include <cstdint>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/tensor/multiply.h"
#include "sim/exec/tensor/row_products.h"

namespace gridloom::exec {

/// Rows of A and columns of B, along k: 16 half-precision elements, 32 bytes, 8 words or 256 bits each.
struct GroupOperands {
  EightLines a[kGroupRows / kLinesOfChunk];
  EightLines b[kMostGroupColumns / kLinesOfChunk];
};

/// d = a b, plus d where `accumulates`. D may not overlap the operands.
void MultiplyGroup(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d);

/// A chunk of halfwords, eight lines of eight: line i of `to` has element i of each line of `from`, whose lines are
/// kChunkBytes apart.
void TransposeHalfwords(const std::uint8_t* from, std::uint8_t* to);

}  // namespace gridloom::exec
