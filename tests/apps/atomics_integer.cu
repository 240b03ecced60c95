// Integer atomics of every operation on 32 and 64 bits, global and shared, with and without contention, all scopes, old
// values.
#include "app.h"

template <class T>
__global__ void All(T* g, T* old, int n) {
  __shared__ T s[12];
  if (threadIdx.x < 12) s[threadIdx.x] = threadIdx.x == 6 ? ~T(0) : threadIdx.x == 4 ? T(1) << (sizeof(T) * 8 - 2) : 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const T v = T(i);
    for (T* p : {g, s}) {
      const T before = atomicAdd(&p[0], v);
      if (p == g) old[i] = before;
      atomicMax(&p[3], v * 3), atomicMin(&p[4], T(n) - v);
      atomicOr(&p[5], T(1) << (i % 31)), atomicAnd(&p[6], ~(T(1) << (i % 29))), atomicXor(&p[7], v * v);
      atomicExch(&p[8], T(5));
      T seen = p[9], expected;  // add by compare-and-swap
      do {
        expected = seen;
        seen = atomicCAS(&p[9], expected, expected + 2);
      } while (seen != expected);
    }
    atomicAdd_system(&g[10], T(1)), atomicAdd_block(&s[10], T(1));
  }
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd(&g[11], s[0]), atomicAdd(&g[12], s[9]), atomicMax(&g[13], s[3]), atomicOr(&g[14], s[5]),
        atomicAdd(&g[15], s[10]), atomicXor(&g[16], s[7]);
}
__global__ void Only32(unsigned* g, int* s, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicSub(&g[0], 3u), atomicInc(&g[1], 99u), atomicDec(&g[2], 40u);
  atomicMin(&s[0], -i), atomicMax(&s[1], i - 50);
  atomicAdd(&s[2], i % 2 ? i : -i);
  atomicCAS(reinterpret_cast<unsigned short*>(s) + 6, static_cast<unsigned short>(0),
            static_cast<unsigned short>(i + 1));
}

template <class T>
void Test(const char* name) {
  const int n = 1000;
  std::vector<T> init(20);
  init[4] = T(1) << (sizeof(T) * 8 - 2), init[6] = ~T(0);
  Buffer<T> g(init), old(n);
  All<T><<<9, 113>>>(g, old, n);
  CU_LAUNCHED();
  const auto got = g.Read();
  T sum = 0, ors = 0, ands = ~T(0), xors = 0;
  for (int i = 0; i < n; ++i) sum += i, ors |= T(1) << (i % 31), ands &= ~(T(1) << (i % 29)), xors ^= T(i) * T(i);
  const T want[17] = {sum,  0,   0,        T(3 * (n - 1)), 1,   ors,  ands, xors, 5, T(2 * n),
                      T(n), sum, T(2 * n), T(3 * (n - 1)), ors, T(n), xors};
  for (int k = 0; k < 17; ++k) Same(name, k, got[k], want[k]);
  // Old values of a sum of distinct increments: each is another one's old value plus its increment.
  auto before = old.Read();
  std::vector<T> after(n);
  for (int i = 0; i < n; ++i) after[i] = before[i] + T(i);
  long zero = 0;
  for (int i = 0; i < n; ++i) zero += before[i] == 0, True("old", before[i] <= sum && after[i] <= sum);
  True("one starts", zero >= 1 && zero <= 2);  // the thread that adds zero leaves it unchanged
}

int main() {
  Test<unsigned>("u32"), Test<unsigned long long>("u64");
  const int n = 777;
  Buffer<unsigned> g(4);
  Buffer<int> s(4);
  Only32<<<7, 111>>>(g, s, n);
  CU_LAUNCHED();
  const auto u = g.Read();
  const auto v = s.Read();
  Same("sub", 0, u[0], 0u - 3u * n), Same("inc", 0, u[1], unsigned(n % 100)),
      Same("dec", 0, u[2], 41u - unsigned((n - 1) % 41) - 1);
  int alternating = 0;
  for (int i = 0; i < n; ++i) alternating += i % 2 ? i : -i;
  Same("min", 0, v[0], -(n - 1)), Same("max", 0, v[1], n - 51), Same("add", 0, v[2], alternating);
  True("cas16", v[3] >= 1 && v[3] <= n);
  return Verdict();
}
