// Block-scaled products of a warp (PTX ISA 9.4, 9.7.16.3): fragments as those of bytes and of 4 bits. Two neighbouring
// threads of a quad give the scales of its two rows of A, one thread those of its column of B.
#include <cmath>
#include <limits>

#include "sim/exec/tensor/elements.h"
#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kRows = 16, kColumns = 8, kMostDepth = 64, kMostScales = 4, kThreadsOfQuad = 4;

/// A row of A or a column of B.
struct ScaledLine {
  float element[kMostDepth];
  double scale[kMostScales];
};

double ScaleOf(const ScaledMmaImm& imm, unsigned byte) {
  if (imm.unsigned_e4m3) return static_cast<double>(SmallFloatTable(MatrixType::kE4M3)[byte & 0x7f]);
  return byte == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(byte) - 127);
}

const std::uint32_t* WordsOf(const FragmentRegister* registers, unsigned i) {
  return static_cast<const std::uint32_t*>(registers[i]);
}

/// Elements that lie in register `first` and those `step` registers further on, of threads of quad `quad`.
void ReadElements(const ScaledMmaImm& imm, MatrixType type, const FragmentRegister* registers, unsigned first,
                  unsigned step, unsigned quad, ScaledLine& line) {
  const std::array<float, 256>& table = SmallFloatTable(type);
  const unsigned of_word = imm.four_bits ? 8 : 4;
  for (unsigned k = 0; k < imm.k(); ++k) {
    const unsigned half = k / (of_word * kThreadsOfQuad), thread = k / of_word % kThreadsOfQuad, at = k % of_word;
    const std::uint32_t word = WordsOf(registers, first + half * step)[quad * kThreadsOfQuad + thread];
    // 4 bits alone in a byte are in its middle.
    line.element[k] = imm.four_bits ? table[word >> 4 * at << 2 & 0x3c] : table[word >> 8 * at & 0xff];
  }
}

/// The scales that lie from the selected byte on in the word of the selected thread, or the one `neighbour` further on.
void ReadScales(const ScaledMmaImm& imm, const std::uint32_t* words, const std::uint32_t* selectors,
                unsigned threads_of_group, unsigned neighbour, unsigned quad, ScaledLine& line) {
  const std::uint32_t selector = selectors[quad * kThreadsOfQuad];
  const unsigned thread = ((selector >> 16) * threads_of_group + neighbour) % kThreadsOfQuad;
  const std::uint32_t word = words[quad * kThreadsOfQuad + thread];
  const unsigned byte = imm.scales == 4 ? 0 : selector & (imm.scales == 2 ? 2 : 3);
  for (unsigned i = 0; i < imm.scales; ++i) line.scale[i] = ScaleOf(imm, word >> 8 * (byte + i) & 0xff);
}

float ElementOf(const ScaledMmaImm& imm, const ScaledLine& row, const ScaledLine& column, float c) {
  const unsigned block = imm.k() / imm.scales;
  double sum = static_cast<double>(c);
  for (unsigned i = 0; i < imm.scales; ++i) {
    double products = 0;
    for (unsigned k = i * block; k < (i + 1) * block; ++k)
      products += static_cast<double>(row.element[k]) * static_cast<double>(column.element[k]);
    sum += products * row.scale[i] * column.scale[i];
  }
  return CanonicalFloat(static_cast<float>(sum));
}

}  // namespace

void MultiplyScaled(const ScaledMmaImm& imm, const FragmentRegister* in, const FragmentRegister* d) {
  const FragmentRegister *const a = in, *const b = in + 4, *const c = in + 6, *const scales = in + 10;
  ScaledLine rows[kRows], columns[kColumns];
  for (unsigned row = 0; row < kRows; ++row) {
    ReadElements(imm, imm.a, a, row / 8, 2, row % 8, rows[row]);
    ReadScales(imm, WordsOf(scales, 0), WordsOf(scales, 1), 2, row / 8, row % 8, rows[row]);
  }
  for (unsigned column = 0; column < kColumns; ++column) {
    ReadElements(imm, imm.b, b, 0, 1, column, columns[column]);
    ReadScales(imm, WordsOf(scales, 2), WordsOf(scales, 3), 1, 0, column, columns[column]);
  }
  for (unsigned i = 0; i < 4; ++i) {
    const float* const from = static_cast<const float*>(c[i]);
    float* const to = static_cast<float*>(d[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const ScaledLine &row = rows[lane / 4 + i / 2 * 8], &column = columns[lane % 4 * 2 + (i & 1)];
      to[lane] = ElementOf(imm, row, column, from[lane]);
    }
  }
}

}  // namespace gridloom::exec
