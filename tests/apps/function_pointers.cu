// Calls through pointers: tables in constant memory, pointers fetched by the host, divergent targets, struct returns.
#include "app.h"

using Op = float (*)(float, float);
__device__ __noinline__ float Plus(float a, float b) { return a + b; }
__device__ __noinline__ float Minus(float a, float b) { return a - b; }
__device__ __noinline__ float Times(float a, float b) { return a * b; }
__device__ __noinline__ float Collatz(float a, float b) {
  int n = static_cast<int>(fabsf(a)) + 1, steps = 0;
  while (n != 1) n = n & 1 ? 3 * n + 1 : n / 2, ++steps;
  return steps + b;
}
__device__ Op g_table[4] = {Plus, Minus, Times, Collatz};
__device__ Op g_times = Times;

struct Pair {
  double first;
  int second[3];
};
using Maker = Pair (*)(int, Pair);
__device__ __noinline__ Pair MakeA(int i, Pair p) { return {p.first + i, {i, p.second[0], p.second[1]}}; }
__device__ __noinline__ Pair MakeB(int i, Pair p) { return {p.first * 2, {p.second[2], -i, 9}}; }
__device__ Maker g_makers[2] = {MakeA, MakeB};

__global__ void Divergent(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = g_table[(i * 7 + i / 5) & 3](a[i], b[i]);
}
__global__ void ByHost(Op op, const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = op(a[i], b[i]);
}
__global__ void Structs(double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const Pair p = g_makers[(i >> 1) & 1](i, Pair{0.5, {1, 2, 3}});
  out[i] = p.first + p.second[0] * 1e3 + p.second[1] * 1e6 + p.second[2] * 1e9;
}

int main() {
  const int n = 1234;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = i * 0.5f - 100, b[i] = i % 17;
  Buffer<float> da(a), db(b), out(n);
  Divergent<<<(n + 99) / 100, 100>>>(da, db, out, n);
  CU_LAUNCHED();
  auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    float want = 0;
    switch ((i * 7 + i / 5) & 3) {
      case 0: want = a[i] + b[i]; break;
      case 1: want = a[i] - b[i]; break;
      case 2: want = a[i] * b[i]; break;
      default: {
        int k = static_cast<int>(std::fabs(a[i])) + 1, steps = 0;
        while (k != 1) k = k & 1 ? 3 * k + 1 : k / 2, ++steps;
        want = steps + b[i];
      }
    }
    Same("divergent", i, got[i], want);
  }
  Op times = nullptr;
  CU(cudaMemcpyFromSymbol(&times, g_times, sizeof times));
  ByHost<<<(n + 99) / 100, 100>>>(times, da, db, out, n);
  CU_LAUNCHED();
  got = out.Read();
  for (int i = 0; i < n; ++i) Same("by host", i, got[i], a[i] * b[i]);
  Buffer<double> structs(n);
  Structs<<<(n + 99) / 100, 100>>>(structs, n);
  CU_LAUNCHED();
  const auto s = structs.Read();
  for (int i = 0; i < n; ++i)
    Near("structs", i, s[i], (i >> 1) & 1 ? 1.0 + 3e3 - i * 1e6 + 9e9 : 0.5 + i + i * 1e3 + 1e6 + 2e9, 1e-14);
  return Verdict();
}
