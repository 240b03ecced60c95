// f16 and f16x2 arithmetic, comparisons, conversions. Basic operations must be correctly rounded.
#include <cuda_fp16.h>

#include "app.h"

constexpr int kRows = 12;

__global__ void Scalar(const __half* a, const __half* b, const __half* c, __half* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half* o = out + i * kRows;
  o[0] = __hadd(a[i], b[i]), o[1] = __hsub(a[i], b[i]), o[2] = __hmul(a[i], b[i]), o[3] = __hfma(a[i], b[i], c[i]);
  o[4] = __hneg(a[i]), o[5] = __habs(a[i]), o[6] = __hmin(a[i], b[i]), o[7] = __hmax(a[i], b[i]);
  o[8] = __hadd_sat(a[i], b[i]), o[9] = __float2half_rz(__half2float(a[i]) * 1.0001f);
  o[10] = __int2half_rn(__half2int_rz(a[i])), o[11] = __hlt(a[i], b[i]) ? __half(1.0f) : __half(0.0f);
}
__global__ void Packed(const __half2* a, const __half2* b, __half2* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[2 * i] = __hfma2(a[i], b[i], __hadd2(a[i], b[i])), out[2 * i + 1] = __lowhigh2highlow(__hmul2(a[i], b[i]));
}
__global__ void Functions(const __half* a, __half* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half p = __habs(a[i]);
  out[4 * i] = hexp(__hmul(a[i], __half(0.1f))), out[4 * i + 1] = hsqrt(p), out[4 * i + 2] = hsin(a[i]),
          out[4 * i + 3] = hrcp(__hadd(p, __half(1.0f)));
}

double D(__half h) { return static_cast<double>(__half2float(h)); }
// One rounding from the exact double (products and sums of two f16 are exact in f64; fma nearly always is).
__half R(double v) { return __double2half(v); }
unsigned short Bits(__half h) {
  unsigned short u;
  std::memcpy(&u, &h, 2);
  return u;
}

int main() {
  const int n = 1024 + 7;
  std::vector<__half> a(n), b(n), c(n);
  Random random(4);
  for (int i = 0; i < n; ++i) {
    a[i] = __float2half(random.Uniform(-30, 30)), b[i] = __float2half(random.Uniform(-8, 8));
    c[i] = __float2half(i % 5 == 0 ? 3e-6f : random.Uniform(-100, 100));
  }
  a[0] = __float2half(65504), b[0] = __float2half(65504), a[1] = __float2half(6e-8f), b[1] = __float2half(0.5f);
  Buffer<__half> da(a), db(b), dc(c), out(n * kRows), out2(2 * n), out3(4 * n);
  Scalar<<<9, 128>>>(da, db, dc, out, n);
  Packed<<<5, 128>>>(reinterpret_cast<__half2*>(static_cast<__half*>(da)),
                     reinterpret_cast<__half2*>(static_cast<__half*>(db)),
                     reinterpret_cast<__half2*>(static_cast<__half*>(out2)), n / 2);
  Functions<<<9, 128>>>(da, out3, n);
  CU_LAUNCHED();
  const auto got = out.Read(), got2 = out2.Read(), got3 = out3.Read();
  for (int i = 0; i < n; ++i) {
    const double x = D(a[i]), y = D(b[i]), z = D(c[i]), sum = x + y;
    const __half want[kRows] = {R(sum),
                                R(x - y),
                                R(x * y),
                                R(x * y + z),
                                R(-x),
                                R(std::fabs(x)),
                                x < y ? a[i] : b[i],
                                x > y ? a[i] : b[i],
                                R(sum < 0   ? 0
                                  : sum > 1 ? 1
                                            : sum),
                                __float2half_rz(float(x) * 1.0001f),
                                R(std::trunc(x) + 0.0),
                                R(x < y)};
    for (int k = 0; k < kRows; ++k) Same("half", i * 100 + k, Bits(got[i * kRows + k]), Bits(want[k]));
    Near("hexp", i, D(got3[4 * i]), std::exp(D(R(x * D(R(0.1f))))), 2e-3),
        Near("hsqrt", i, D(got3[4 * i + 1]), std::sqrt(std::fabs(x)), 1e-3, 1e-7);
    if (std::fabs(x) < 100) Near("hsin", i, D(got3[4 * i + 2]), std::sin(x), 2e-3, 2e-3);
    Near("hrcp", i, D(got3[4 * i + 3]), 1 / D(R(std::fabs(x) + 1)), 1e-3);
  }
  for (int i = 0; i < n / 2 * 2; ++i) {
    const double x = D(a[i]), y = D(b[i]);
    const int pair = i / 2 * 4, lane = i & 1;
    Same("fma2", i, Bits(got2[pair + lane]), Bits(R(x * y + D(R(x + y)))));
    Same("swap", i, Bits(got2[pair + 2 + (1 - lane)]), Bits(R(x * y)));
  }
  return Verdict();
}
