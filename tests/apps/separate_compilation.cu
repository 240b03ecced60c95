// Relocatable device code: functions, variables and constants of another file (separate_compilation_other.cu).
#include "app.h"

extern __device__ int g_shared_counter;
extern __constant__ float kShared[4];
extern __device__ float (*g_picked)(float);
extern __device__ float Curve(float x);
struct Base {
  __device__ virtual float Value(float x) const = 0;
};
extern __device__ Base* MakeOther(float scale);
void LaunchOther(float* out, int n);
static __device__ float Local(float x) { return x + 1; }  // the other file has its own of that name

__global__ void Kernel(float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Base* base = i % 32 == 0 ? MakeOther(2) : nullptr;
  out[i] = Curve(i) + kShared[i % 4] + g_picked(i) + Local(i) + (base ? base->Value(i) : 0);
  delete base;
  atomicAdd(&g_shared_counter, 1);
}

int main() {
  const int n = 300;
  const float constants[4] = {1, 2, 3, 4};
  CU(cudaMemcpyToSymbol(kShared, constants, sizeof constants));
  Buffer<float> out(n);
  Kernel<<<3, 128>>>(out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i)
    Same("kernel", i, got[i], float(i) * i + constants[i % 4] + i * 3.0f + (i + 1) + (i % 32 ? 0 : 2.0f * i));
  LaunchOther(out, n);
  CU_LAUNCHED();
  const auto other = out.Read();
  for (int i = 0; i < n; ++i) Same("other", i, other[i], i - 1 + constants[3]);
  int counter = 0;
  CU(cudaMemcpyFromSymbol(&counter, g_shared_counter, sizeof counter));
  Same("counter", 0, counter, 2 * n + 1000);
  return Verdict();
}
