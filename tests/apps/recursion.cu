// Recursive device functions: Ackermann, quicksort with an explicit depth, mutual recursion, divergent depths.
#include "app.h"

__device__ __noinline__ unsigned Ackermann(unsigned m, unsigned n) {
  if (m == 0) return n + 1;
  return n == 0 ? Ackermann(m - 1, 1) : Ackermann(m - 1, Ackermann(m, n - 1));
}
__device__ __noinline__ void QuickSort(int* v, int low, int high) {
  if (low >= high) return;
  const int pivot = v[(low + high) / 2];
  int i = low, j = high;
  while (i <= j) {
    while (v[i] < pivot) ++i;
    while (v[j] > pivot) --j;
    if (i <= j) {
      const int swap = v[i];
      v[i++] = v[j], v[j--] = swap;
    }
  }
  QuickSort(v, low, j), QuickSort(v, i, high);
}
__device__ int IsOdd(unsigned n);
__device__ __noinline__ int IsEven(unsigned n) { return n == 0 ? 1 : IsOdd(n - 1); }
__device__ __noinline__ int IsOdd(unsigned n) { return n == 0 ? 0 : IsEven(n - 1); }

__global__ void Kernel(unsigned* ackermann, int* sorted, int* even, int length) {
  const int t = threadIdx.x;
  ackermann[t] = Ackermann(t % 3, t % 5);
  QuickSort(sorted + t * length, 0, length - 1 - t % 4);
  even[t] = IsEven(t % 23);
}

int main() {
  const int threads = 45, length = 37;
  CU(cudaDeviceSetLimit(cudaLimitStackSize, 16 * 1024));
  std::vector<int> v(threads * length);
  Random random(77);
  for (auto& x : v) x = static_cast<int>(random.Next() % 1000);
  Buffer<int> dv(v), even(threads);
  Buffer<unsigned> ackermann(threads);
  Kernel<<<1, threads>>>(ackermann, dv, even, length);
  CU_LAUNCHED();
  const auto a = ackermann.Read();
  const auto s = dv.Read(), e = even.Read();
  for (int t = 0; t < threads; ++t) {
    const unsigned m = t % 3, n = t % 5;
    Same("ackermann", t, a[t], m == 0 ? n + 1 : m == 1 ? n + 2 : 2 * n + 3);
    Same("even", t, e[t], t % 23 % 2 == 0 ? 1 : 0);
    long sum = 0, want = 0;
    for (int k = 0; k < length; ++k) sum += s[t * length + k], want += v[t * length + k];
    for (int k = 1; k < length - t % 4; ++k) True("ordered", s[t * length + k - 1] <= s[t * length + k]);
    Same("sum", t, sum, want);
  }
  return Verdict();
}
