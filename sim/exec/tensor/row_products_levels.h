// Products of rows as each instruction set makes them; row_products.cpp chooses.
#pragma once

#include "sim/exec/tensor/row_products.h"

namespace gridloom::exec {

void MultiplyRowsBaseline(const RowProduct& product);
void MultiplyDoublesBaseline(DoubleProduct& product);
#if defined(__x86_64__)
void MultiplyRowsAvx2(const RowProduct& product);
void MultiplyRowsAvx512(const RowProduct& product);
void MultiplyDoublesAvx2(DoubleProduct& product);
void MultiplyDoublesAvx512(DoubleProduct& product);
#endif

}  // namespace gridloom::exec
