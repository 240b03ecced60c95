#include "sim/exec/tensor/multiply.h"

#include "sim/exec/tensor/row_products.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kMostGroups = 4;

/// Sixteen rows at a time. Registers of A: down the rows, then along k; of B: along k first; of accumulators: down the
/// rows first.
void MultiplyDense(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                   const FragmentRegister* d) {
  const unsigned blocks = imm.m / kLinesOfChunk;  // down the rows
  const auto registers = [](MatrixType type) {
    return type == MatrixType::kF16 ? 1u : 2u;
  };  // of a block of accumulators
  RowProduct product{.type_a = imm.a(), .type_b = imm.b(), .type_c = imm.c(), .type_d = imm.d()};
  product.chunks = imm.k * BitsOf(imm.a()) / (kChunkBytes * 8);
  product.groups = imm.n / kLinesOfChunk;
  product.saturates = imm.has(MmaImm::kSaturate);
  product.step_c = blocks * registers(imm.c()), product.step_d = blocks * registers(imm.d());
  EightLines columns[kMostGroups];
  for (unsigned group = 0; group < product.groups; ++group) {
    for (unsigned chunk = 0; chunk < product.chunks; ++chunk)
      columns[group].chunk[chunk] = static_cast<const std::uint8_t*>(b[group * product.chunks + chunk]);
  }
  product.b = columns;
  for (unsigned block = 0; block < blocks; block += 2) {
    product.rows16 = blocks > 1;
    for (unsigned half = 0; half < (product.rows16 ? 2u : 1u); ++half) {
      for (unsigned chunk = 0; chunk < product.chunks; ++chunk)
        product.a[half].chunk[chunk] = static_cast<const std::uint8_t*>(a[chunk * blocks + block + half]);
    }
    product.c = c + block * registers(imm.c()), product.d = d + block * registers(imm.d());
    MultiplyRows(product);
  }
}

}  // namespace

void MultiplyFragments(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b,
                       const FragmentRegister* c, const void* metadata, const FragmentRegister* d) {
  if (imm.is_quad_pair()) return MultiplyQuadPairs(imm, a, b, c, d);
  if (imm.a() == MatrixType::kF64) return MultiplyDouble(imm, a, b, c, d);
  if (imm.a() == MatrixType::kB1) return MultiplyBits(imm, a, b, c, d);
  const bool sparse = imm.has(MmaImm::kSparse);
  if (!sparse && HasRowProduct(imm.a())) return MultiplyDense(imm, a, b, c, d);
  SparsePositions positions;
  if (sparse) positions = PositionsOf(imm, metadata);
  if (IsIntegerMatrix(imm.a())) return MultiplyInteger(imm, a, b, c, sparse ? &positions : nullptr, d);
  MultiplySparse(imm, a, b, c, positions, d);
}

// Metadata of a quad g: of rows g and g + 8. Types of 16 and 32 bits have 16 bits of a row in a thread, row g in the
// lower half, and the next thread goes on along k. Types of 8 and 4 bits have 32: rows take turns, thread by thread
// (PTX ISA, 9.7.14.6.1, the figures).
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
        to[0] = place(first * 2), to[1] = place(first * 2 + 1), to[2] = place(second * 2),
        to[3] = place(second * 2 + 1);
      }
    }
  }
  return positions;
}

}  // namespace gridloom::exec
