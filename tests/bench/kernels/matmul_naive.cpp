#include "tests/bench/kernels/matmul.h"

namespace bench {

GL_BENCHMARK(matmul_naive) { return MatMul(scale, "matmul_naive", "MatMulNaive"); }

}  // namespace bench
