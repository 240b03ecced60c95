// y = a x + y in double precision, with a grid-stride loop.
#include "device.h"

extern "C" __global__ void Daxpy(double a, const double* x, double* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = Fma(a, x[i], y[i]);
}
