// Floating-point atomics: f32, f64, f16x2 and bf16x2 addition in global and shared memory, exchange, vector-free sums.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "app.h"

__global__ void Kernel(float* f, double* d, __half2* h, __nv_bfloat162* b, __half* h1, int n) {
  __shared__ float sf;
  __shared__ double sd;
  if (threadIdx.x == 0) sf = 0, sd = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(f, 0.25f * (i & 7)), atomicAdd(d, 0.125 * i);
    atomicAdd(&sf, 1.0f), atomicAdd(&sd, 0.5);
    atomicAdd(h + i % 16, __floats2half2_rn(1, 0.5f)), atomicAdd(b + i % 64, __floats2bfloat162_rn(1, 2));
    atomicAdd(h1 + i % 33, __half(1.0f));
    atomicExch(f + 2, 7.5f);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(f + 1, sf), atomicAdd(d + 1, sd);
}

int main() {
  const int n = 1600;
  Buffer<float> f(3);
  Buffer<double> d(2);
  Buffer<__half2> h(16);
  Buffer<__nv_bfloat162> b(64);
  Buffer<__half> h1(33);
  Kernel<<<17, 96>>>(f, d, h, b, h1, n);
  CU_LAUNCHED();
  float want_f = 0;
  double want_d = 0;
  for (int i = 0; i < n; ++i) want_f += 0.25f * (i & 7), want_d += 0.125 * i;
  const auto gf = f.Read();
  const auto gd = d.Read();
  Same("f32", 0, gf[0], want_f), Same("f64", 0, gd[0], want_d);  // sums are exact, whatever the order
  Same("shared f32", 0, gf[1], float(n)), Same("shared f64", 0, gd[1], 0.5 * n), Same("exchange", 0, gf[2], 7.5f);
  const auto gh = h.Read();
  for (int k = 0; k < 16; ++k)
    Same("f16x2", k, __low2float(gh[k]), 100.0f), Same("f16x2 high", k, __high2float(gh[k]), 50.0f);
  const auto gb = b.Read();
  for (int k = 0; k < 64; ++k)
    Same("bf16x2", k, __low2float(gb[k]), 25.0f), Same("bf16x2 high", k, __high2float(gb[k]), 50.0f);
  const auto g1 = h1.Read();
  for (int k = 0; k < 33; ++k) Same("f16", k, __half2float(g1[k]), float(n / 33 + (k < n % 33)));
  return Verdict();
}
