// Products of f64 matrices: fused multiply-adds with any rounding.
#include <cfenv>

#include "sim/exec/tensor/multiply.h"
#include "sim/exec/tensor/row_products.h"

namespace gridloom::exec {
namespace {

int HostRounding(MatrixRounding rounding) {
  switch (rounding) {
    case MatrixRounding::kZero: return FE_TOWARDZERO;
    case MatrixRounding::kDown: return FE_DOWNWARD;
    case MatrixRounding::kUp: return FE_UPWARD;
    case MatrixRounding::kNearest: break;
  }
  return FE_TONEAREST;
}

}  // namespace

// A register of doubles is a block of 8 rows of 4.
void MultiplyDouble(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                    const FragmentRegister* d) {
  DoubleProduct operands;
  operands.rows = imm.m, operands.depth = imm.k;
  unsigned r = 0;
  for (unsigned k = 0; k < imm.k; k += 4) {
    for (unsigned row = 0; row < imm.m; row += 8, ++r) {
      const auto* const from = static_cast<const double*>(a[r]);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) operands.a[row + lane / 4][k + lane % 4] = from[lane];
    }
    const auto* const from = static_cast<const double*>(b[k / 4]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) operands.b[k + lane % 4][lane / 4] = from[lane];
  }
  for (unsigned i = 0; i < imm.m / 4u; ++i) {
    const auto* const from = static_cast<const double*>(c[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      operands.c[i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2] = from[lane];
  }
  const int before = std::fegetround();
  if (imm.rounding != MatrixRounding::kNearest) std::fesetround(HostRounding(imm.rounding));
  MultiplyDoubles(operands);
  if (imm.rounding != MatrixRounding::kNearest) std::fesetround(before);
  for (unsigned i = 0; i < imm.m / 4u; ++i) {
    auto* const to = static_cast<double*>(d[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) to[lane] = operands.c[i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2];
  }
}

}  // namespace gridloom::exec
