// cuBLAS operations on vectors: their kernels are in the library as PTX for compute capability 12.0.
#include <cublas_v2.h>

#include <thread>

#include "app.h"

#define BLAS(call)                                                                        \
  do {                                                                                    \
    const cublasStatus_t blas_status = (call);                                            \
    if (blas_status != CUBLAS_STATUS_SUCCESS) {                                           \
      std::printf("FAIL %s:%d: %s: status %d\n", __FILE__, __LINE__, #call, blas_status); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)

/// A thread whose first call is a product: it has no context yet.
void MultiplyInThread() {
  constexpr int kSize = 5;
  double *a, *x, *y;
  CU(cudaMallocManaged(&a, kSize * kSize * sizeof(double)));
  CU(cudaMallocManaged(&x, kSize * sizeof(double)));
  CU(cudaMallocManaged(&y, kSize * sizeof(double)));
  for (int i = 0; i < kSize * kSize; ++i) a[i] = i;
  for (int i = 0; i < kSize; ++i) x[i] = 1 + i;
  cublasHandle_t handle;
  Same("handle", 0, cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
  std::thread([&] {
    const double one = 1, zero = 0;
    Same("product in a thread", 0, cublasDgemv(handle, CUBLAS_OP_N, kSize, kSize, &one, a, kSize, x, 1, &zero, y, 1),
         CUBLAS_STATUS_SUCCESS);
  }).join();
  CU(cudaDeviceSynchronize());
  for (int i = 0; i < kSize; ++i) {
    double want = 0;
    for (int j = 0; j < kSize; ++j) want += a[j * kSize + i] * x[j];
    Same("product", i, y[i], want);
  }
  Same("handle", 1, cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
  CU(cudaFree(a));
  CU(cudaFree(x));
  CU(cudaFree(y));
}

int main() {
  MultiplyInThread();
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
