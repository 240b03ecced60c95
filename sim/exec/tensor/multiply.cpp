#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {

void MultiplyFragments(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                       const FragmentRegister* d) {
  if (imm.is_quad_pair()) return MultiplyQuadPairs(imm, a, b, c, d);
  if (imm.a() == MatrixType::kF64) return MultiplyDouble(imm, a, b, c, d);
  if (imm.a() == MatrixType::kB1) return MultiplyBits(imm, a, b, c, d);
  if (IsIntegerMatrix(imm.a())) return MultiplyInteger(imm, a, b, c, d);
  MultiplyFloat(imm, a, b, c, d);
}

}  // namespace gridloom::exec
