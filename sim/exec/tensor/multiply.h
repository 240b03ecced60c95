// Matrix products of a warp (PTX ISA, 9.7.14: wmma.mma, mma). A fragment register of all 32 lanes, as it lies in
// memory, is a block of 8 rows of 16 bytes: lanes 4g to 4g + 3 hold row g. For A rows run along k; for B a row is a
// column of B, along k too. Blocks of A follow each other down the rows first, then along k; of B along k first; of an
// accumulator down the rows, then along the columns, with two 32-bit registers (columns 2t and 2t + 1 of lane t of a
// row) to a block. That is what the ISA gives for every shape of mma but m8n8k4 of halves; wmma's fragments, which it
// leaves open, are laid out alike.
//
// Sparse products (9.7.14.6): of each four elements of a row of A (two of tf32, four pairs of 4 bits) two (one; two
// pairs) are stored, and metadata say which. A's fragment is that of a product half as deep. What is not stored is not
// multiplied: it is no zero that an infinity in B would turn into a NaN.
//
// Numerics. Floating point: products are exact for f16, bf16, tf32 and the 8-bit kinds; an element is
// ((c + a0 b0) + a1 b1) + …, k ascending, each sum rounded to nearest f32; an f16 result is rounded once more at the
// end. What is no number is 0x7fffffff, or 0x7fff. f64: a chain of fused multiply-adds with the instruction's rounding.
// Integers: exact, then wrapped or saturated once. The ISA leaves order and intermediate precision of all but f64 and
// integers open.
#pragma once

#include <cstdint>

#include "sim/exec/contract/abi.h"
#include "sim/exec/contract/tensor_immediates.h"

namespace gridloom::exec {

/// Registers of 32 lanes, uint32_t or (f64) uint64_t.
using FragmentRegister = void*;

/// D may be the registers of C. All lanes are written. `metadata`: of a sparse product, a register of words.
void MultiplyFragments(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b,
                       const FragmentRegister* c, const void* metadata, const FragmentRegister* d);

/// Block-scaled products: an element is c plus the products of each block times its two scales, summed in f64 and
/// rounded to f32 once. `in` as ScaledMmaImm says.
void MultiplyScaled(const ScaledMmaImm& imm, const FragmentRegister* in, const FragmentRegister* d);

/// Which k the stored elements of each row of a sparse A have.
struct SparsePositions {
  std::uint8_t k[16][64];
};
SparsePositions PositionsOf(const MmaImm& imm, const void* metadata);

// One function per kind of arithmetic that is not made of products of rows (row_products.h).
void MultiplySparse(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                    const SparsePositions& positions, const FragmentRegister* d);  ///< floats
void MultiplyDouble(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                    const FragmentRegister* d);
/// `positions`: of a sparse A, else null, which only 4-bit types are here.
void MultiplyInteger(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                     const SparsePositions* positions, const FragmentRegister* d);
void MultiplyBits(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                  const FragmentRegister* d);
void MultiplyQuadPairs(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b,
                       const FragmentRegister* c, const FragmentRegister* d);

}  // namespace gridloom::exec
