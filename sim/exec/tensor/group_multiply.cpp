#include "sim/exec/tensor/group_multiply.h"

#include <bit>
#include <cstring>

namespace gridloom::exec {
namespace {

typedef std::uint16_t Halfwords8 __attribute__((vector_size(16)));

inline void Interleave(const Halfwords8& a, const Halfwords8& b, Halfwords8& low, Halfwords8& high) {
  low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

inline void InterleaveAll(const Halfwords8 (&in)[8], Halfwords8 (&out)[8]) {
  for (unsigned i = 0; i < 4; ++i) Interleave(in[i], in[i + 4], out[2 * i], out[2 * i + 1]);
}

/// 64 bits of a line.
std::uint64_t WordOf(const EightLines* lines, unsigned line, unsigned byte) {
  std::uint64_t word;
  std::memcpy(
      &word,
      lines[line / kLinesOfChunk].chunk[byte / kChunkBytes] + line % kLinesOfChunk * kChunkBytes + byte % kChunkBytes,
      sizeof word);
  return word;
}

// d {+}= popc(a & b) over 256 bits.
void MultiplyBits(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d) {
  for (unsigned row = 0; row < kGroupRows; ++row) {
    for (unsigned column = 0; column < imm.columns(); ++column) {
      unsigned sum = 0;
      for (unsigned at = 0; at < kGroupDepthBytes; at += sizeof(std::uint64_t))
        sum += static_cast<unsigned>(std::popcount(WordOf(operands.a, row, at) & WordOf(operands.b, column, at)));
      const unsigned lane = row % 8 * 4 + column % 8 / 2;
      auto* const to = static_cast<std::uint32_t*>(d[column / 8 * 4 + row / 8 * 2 + column % 2]) + lane;
      *to = (accumulates ? *to : 0) + sum;
    }
  }
}

}  // namespace

void MultiplyGroup(const GroupMmaImm& imm, const GroupOperands& operands, bool accumulates, const FragmentRegister* d) {
  if (imm.a() == MatrixType::kB1) return MultiplyBits(imm, operands, accumulates, d);
  const unsigned registers = imm.accumulator == MatrixType::kF16 ? 2 : 4;
  MultiplyRows({.type_a = imm.a(),
                .type_b = imm.b(),
                .type_c = imm.accumulator,
                .type_d = imm.accumulator,
                .groups = imm.columns8,
                .negates = imm.has(GroupMmaImm::kNegateA) != imm.has(GroupMmaImm::kNegateB),
                .saturates = imm.has(GroupMmaImm::kSaturate),
                .a = {operands.a[0], operands.a[1]},
                .b = operands.b,
                .c = accumulates ? d : nullptr,
                .d = d,
                .step_c = registers,
                .step_d = registers});
}

void TransposeHalfwords(const std::uint8_t* from, std::uint8_t* to) {
  Halfwords8 in[8], x[8], y[8], out[8];
  std::memcpy(in, from, sizeof in);
  InterleaveAll(in, x), InterleaveAll(x, y), InterleaveAll(y, out);
  std::memcpy(to, out, sizeof out);
}

}  // namespace gridloom::exec
