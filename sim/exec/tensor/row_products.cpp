#include "sim/exec/tensor/row_products.h"

#include "sim/exec/simd.h"
#include "sim/exec/tensor/row_products_levels.h"

namespace gridloom::exec {

bool HasRowProduct(MatrixType factor) {
  return factor == MatrixType::kF16 || factor == MatrixType::kBF16 || factor == MatrixType::kTF32 ||
         BitsOf(factor) == 8;
}

void MultiplyRows(const RowProduct& product) {
#if defined(__x86_64__)
  if (UsableSimd() == SimdLevel::kAvx512) return MultiplyRowsAvx512(product);
  if (UsableSimd() == SimdLevel::kAvx2) return MultiplyRowsAvx2(product);
#endif
  MultiplyRowsBaseline(product);
}

void MultiplyDoubles(DoubleProduct& product) {
#if defined(__x86_64__)
  if (UsableSimd() == SimdLevel::kAvx512) return MultiplyDoublesAvx512(product);
  if (UsableSimd() == SimdLevel::kAvx2) return MultiplyDoublesAvx2(product);
#endif
  MultiplyDoublesBaseline(product);
}

}  // namespace gridloom::exec
