#include "tests/bench/kernels/matmul.h"

namespace bench {

GL_BENCHMARK(matmul_tiled) { return MatMul(scale, "matmul_tiled", "MatMulTiled"); }

}  // namespace bench
