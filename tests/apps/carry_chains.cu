// add.cc / addc / sub.cc / subc / mad.cc / madc: 128-bit arithmetic from 32-bit pieces, and quotients as nvcc computes
// them.
#include "app.h"

struct Wide {
  unsigned v[4];
};

__device__ Wide Add(Wide a, Wide b) {
  Wide r;
  asm("add.cc.u32 %0,%4,%8; addc.cc.u32 %1,%5,%9; addc.cc.u32 %2,%6,%10; addc.u32 %3,%7,%11;"
      : "=r"(r.v[0]), "=r"(r.v[1]), "=r"(r.v[2]), "=r"(r.v[3])
      : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[0]), "r"(b.v[1]), "r"(b.v[2]), "r"(b.v[3]));
  return r;
}
__device__ Wide Sub(Wide a, Wide b) {
  Wide r;
  asm("sub.cc.u32 %0,%4,%8; subc.cc.u32 %1,%5,%9; subc.cc.u32 %2,%6,%10; subc.u32 %3,%7,%11;"
      : "=r"(r.v[0]), "=r"(r.v[1]), "=r"(r.v[2]), "=r"(r.v[3])
      : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[0]), "r"(b.v[1]), "r"(b.v[2]), "r"(b.v[3]));
  return r;
}
// 64 x 64 -> 128 by the school method with carries.
__device__ Wide Mul(const unsigned* a, const unsigned* b) {
  Wide r;
  asm("{ mul.lo.u32 %0,%4,%6; mul.hi.u32 %1,%4,%6; mad.lo.cc.u32 %1,%5,%6,%1; madc.hi.u32 %2,%5,%6,0;"
      "  mad.lo.cc.u32 %1,%4,%7,%1; madc.hi.cc.u32 %2,%4,%7,%2; addc.u32 %3,0,0;"
      "  mad.lo.cc.u32 %2,%5,%7,%2; madc.hi.u32 %3,%5,%7,%3; }"
      : "=&r"(r.v[0]), "=&r"(r.v[1]), "=&r"(r.v[2]), "=&r"(r.v[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
  return r;
}
__global__ void Kernel(const Wide* a, const Wide* b, Wide* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[3 * i] = Add(a[i], b[i]), out[3 * i + 1] = Sub(a[i], b[i]), out[3 * i + 2] = Mul(a[i].v, b[i].v);
}

using U128 = unsigned __int128;
__host__ __device__ U128 Value(Wide w) {
  U128 v = 0;
  for (int k = 3; k >= 0; --k) v = (v << 32) | w.v[k];
  return v;
}

// nvcc's division of 128-bit numbers reads the flag of a subtraction by addc.
__global__ void Divide(const Wide* a, const Wide* b, __int128* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __int128 x = Value(a[i]), y = static_cast<__int128>(Value(b[i])) >> (i % 100) | 1;
  out[4 * i] = x / y, out[4 * i + 1] = x % y;
  out[4 * i + 2] = Value(a[i]) / static_cast<U128>(y), out[4 * i + 3] = Value(a[i]) % static_cast<U128>(y);
}

int main() {
  const int n = 333;
  std::vector<Wide> a(n), b(n);
  Random random(9);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 4; ++k)
      a[i].v[k] = i % 4 ? random.Next() : 0xffffffffu, b[i].v[k] = i % 3 ? random.Next() : (k == 0);
  }
  Buffer<Wide> da(a), db(b), out(3 * n);
  Kernel<<<3, 128>>>(da, db, out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    True("add", Value(got[3 * i]) == Value(a[i]) + Value(b[i]));
    True("sub", Value(got[3 * i + 1]) == Value(a[i]) - Value(b[i]));
    True("mul", Value(got[3 * i + 2]) == U128(std::uint64_t(Value(a[i]))) * std::uint64_t(Value(b[i])));
  }
  Buffer<__int128> quotients(4 * n);
  Divide<<<3, 128>>>(da, db, quotients, n);
  CU_LAUNCHED();
  const auto divided = quotients.Read();
  for (int i = 0; i < n; ++i) {
    const __int128 x = Value(a[i]), y = static_cast<__int128>(Value(b[i])) >> (i % 100) | 1;
    True("signed quotient", divided[4 * i] == x / y && divided[4 * i + 1] == x % y);
    True("unsigned quotient", static_cast<U128>(divided[4 * i + 2]) == Value(a[i]) / static_cast<U128>(y) &&
                                  static_cast<U128>(divided[4 * i + 3]) == Value(a[i]) % static_cast<U128>(y));
  }
  return Verdict();
}
