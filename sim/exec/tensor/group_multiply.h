// The part of one warp in a product of a warp group (PTX ISA, 9.7.15: wgmma.mma_async): 16 rows of A times all columns of B. Fragments,
// order and rounding are those of mma (multiply.h).
#pragma once

#include <cstdint>

#include "sim/exec/contract/tensor_immediates.h"
#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {

/// Rows of A and columns of B, along k: 16 half-precision elements, 32 bytes, 8 words or 256 bits each.
struct GroupOperands {
  alignas(64) std::uint8_t a[kGroupRows][kGroupDepthBytes];
  alignas(64) std::uint8_t b[kMostGroupColumns][kGroupDepthBytes];
};

/// d = a b, plus d where `accumulates`. D may not overlap the operands.
void MultiplyGroup(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d);

/// 8 x 8 halfwords: to[i][j] = from[j][i], rows `from_pitch` and `to_pitch` bytes apart.
void TransposeHalfwords(const std::uint8_t* from, std::size_t from_pitch, std::uint8_t* to, std::size_t to_pitch);

}  // namespace gridloom::exec
