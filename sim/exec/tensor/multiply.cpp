#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {

void MultiplyFragments(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                       const void* metadata, const FragmentRegister* d) {
  if (imm.is_quad_pair()) return MultiplyQuadPairs(imm, a, b, c, d);
  if (imm.a() == MatrixType::kF64) return MultiplyDouble(imm, a, b, c, d);
  if (imm.a() == MatrixType::kB1) return MultiplyBits(imm, a, b, c, d);
  SparsePositions positions;
  const bool sparse = imm.has(MmaImm::kSparse);
  if (sparse) positions = PositionsOf(imm, metadata);
  const auto multiply = IsIntegerMatrix(imm.a()) ? MultiplyInteger : MultiplyFloat;
  multiply(imm, a, b, c, sparse ? &positions : nullptr, d);
}

// Metadata of a quad g: of rows g and g + 8. Types of 16 and 32 bits have 16 bits of a row in a thread, row g in the lower half, and the
// next thread goes on along k. Types of 8 and 4 bits have 32: rows take turns, thread by thread (PTX ISA, 9.7.14.6.1, the figures).
SparsePositions PositionsOf(const MmaImm& imm, const void* metadata) {
  SparsePositions positions{};
  const auto* const words = static_cast<const std::uint32_t*>(metadata);
  const unsigned bits = BitsOf(imm.a()), threads = MetadataThreads(imm);
  const bool halves = bits >= 16;
  const unsigned group = bits == 32 ? 2 : bits == 4 ? 8 : 4;  // elements that 4 bits describe
  const unsigned groups_of_word = halves ? 4 : 8;
  for (unsigned row = 0; row < imm.m; ++row) {
    for (unsigned n = 0; n < imm.k / group; ++n) {
      const unsigned word = n / groups_of_word, at = n % groups_of_word * 4;
      const unsigned thread = imm.selector() * threads + (halves ? word : word * 2 + row / 8);
      const std::uint32_t code = words[row % 8 * 4 + thread] >> (halves ? at + row / 8 * 16 : at) & 15;
      const unsigned first = code & 3, second = code >> 2, k = n * group;
      std::uint8_t* const to = positions.k[row] + n * group / 2;
      const auto place = [&](unsigned i) { return static_cast<std::uint8_t>(k + i); };
      if (group == 2) {
        to[0] = place(first / 2);
      } else if (group == 4) {
        to[0] = place(first), to[1] = place(second);
      } else {
        to[0] = place(first * 2), to[1] = place(first * 2 + 1), to[2] = place(second * 2), to[3] = place(second * 2 + 1);
      }
    }
  }
  return positions;
}

}  // namespace gridloom::exec
