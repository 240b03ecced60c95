// Products of f64 matrices: fused multiply-adds with any rounding.
#include <cfenv>
#include <cmath>
#include <cstring>

#include "sim/exec/tensor/multiply.h"

namespace gridloom::exec {
namespace {

constexpr unsigned kMostRows = 16, kColumns = 8, kMostDepth = 16;

struct Operands {
  double a[kMostRows][kMostDepth];
  double b[kColumns][kMostDepth];  ///< by column
  double c[kMostRows][kColumns];
};

int HostRounding(MatrixRounding rounding) {
  switch (rounding) {
    case MatrixRounding::kZero: return FE_TOWARDZERO;
    case MatrixRounding::kDown: return FE_DOWNWARD;
    case MatrixRounding::kUp: return FE_UPWARD;
    case MatrixRounding::kNearest: break;
  }
  return FE_TONEAREST;
}

// Not inlined: the rounding mode is set around this call.
[[gnu::noinline]] void Accumulate(unsigned rows, unsigned depth, Operands& m) {
  for (unsigned i = 0; i < rows; ++i) {
    for (unsigned j = 0; j < kColumns; ++j) {
      double sum = m.c[i][j];
      for (unsigned k = 0; k < depth; ++k) sum = std::fma(m.a[i][k], m.b[j][k], sum);
      m.c[i][j] = sum;
    }
  }
}

}  // namespace

// A register of doubles is a block of 8 rows of 4.
void MultiplyDouble(const MmaImm& imm, const FragmentRegister* a, const FragmentRegister* b, const FragmentRegister* c,
                    const FragmentRegister* d) {
  Operands operands;
  unsigned r = 0;
  for (unsigned k = 0; k < imm.k; k += 4) {
    for (unsigned row = 0; row < imm.m; row += 8, ++r) {
      const auto* const from = static_cast<const double*>(a[r]);
      for (unsigned lane = 0; lane < kWarpSize; ++lane) operands.a[row + lane / 4][k + lane % 4] = from[lane];
    }
    const auto* const from = static_cast<const double*>(b[k / 4]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) operands.b[lane / 4][k + lane % 4] = from[lane];
  }
  for (unsigned i = 0; i < imm.m / 4u; ++i) {
    const auto* const from = static_cast<const double*>(c[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) operands.c[i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2] = from[lane];
  }
  const int before = std::fegetround();
  if (imm.rounding != MatrixRounding::kNearest) std::fesetround(HostRounding(imm.rounding));
  Accumulate(imm.m, imm.k, operands);
  if (imm.rounding != MatrixRounding::kNearest) std::fesetround(before);
  for (unsigned i = 0; i < imm.m / 4u; ++i) {
    auto* const to = static_cast<double*>(d[i]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) to[lane] = operands.c[i / 2 * 8 + lane / 4][lane % 4 * 2 + i % 2];
  }
}

}  // namespace gridloom::exec
