// cuBLAS operations on vectors: their kernels are in the library as PTX for compute capability 12.0.
#include <cublas_v2.h>

#include "app.h"

#define BLAS(call)                                                                        \
  do {                                                                                    \
    const cublasStatus_t blas_status = (call);                                            \
    if (blas_status != CUBLAS_STATUS_SUCCESS) {                                           \
      std::printf("FAIL %s:%d: %s: status %d\n", __FILE__, __LINE__, #call, blas_status); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

int main() {
  const int n = 5000;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = (i % 17 - 8) * 0.25f, y[i] = (i % 5) * 0.5f;
  double dot = 0, sum = 0;
  for (int i = 0; i < n; ++i) {
    dot += (3.0 * y[i] + 2.0 * x[i]) * x[i];
    sum += std::fabs(x[i]);
  }
  Buffer<float> dx(x), dy(y), copy(n);
  cublasHandle_t handle;
  BLAS(cublasCreate(&handle));
  const float two = 2, three = 3;
  BLAS(cublasSscal(handle, n, &three, dy, 1));
  BLAS(cublasSaxpy(handle, n, &two, dx, 1, dy, 1));
  BLAS(cublasScopy(handle, n, dy, 1, copy, 1));
  const auto got = copy.Read();
  for (int i = 0; i < n; ++i) Same("axpy", i, got[i], 3 * y[i] + 2 * x[i]);
  float result = 0;
  BLAS(cublasSdot(handle, n, dx, 1, dy, 1, &result));
  Near("dot", 0, result, dot, 1e-5);
  BLAS(cublasSasum(handle, n, dx, 1, &result));
  Near("asum", 0, result, sum, 1e-5);
  BLAS(cublasDestroy(handle));
  return Verdict();
}
