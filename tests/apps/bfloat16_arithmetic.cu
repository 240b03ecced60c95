// bf16 and bf16x2 arithmetic and conversions (sm_80 instructions).
#include <cuda_bf16.h>

#include "app.h"

using B = __nv_bfloat16;
constexpr int kRows = 8;

__global__ void Kernel(const B* a, const B* b, const B* c, B* out, float* wide, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  B* o = out + i * kRows;
  o[0] = __hadd(a[i], b[i]), o[1] = __hmul(a[i], b[i]), o[2] = __hfma(a[i], b[i], c[i]), o[3] = __hmin(a[i], b[i]);
  o[4] = __hmax(a[i], b[i]), o[5] = __hneg(a[i]), o[6] = __float2bfloat16_rz(__bfloat162float(a[i]) * 1.37f);
  const __nv_bfloat162 pair = __hmul2(__halves2bfloat162(a[i], b[i]), __halves2bfloat162(b[i], c[i]));
  o[7] = __high2bfloat16(pair);
  wide[i] = __bfloat162float(a[i]) + (__hlt(a[i], b[i]) ? 1 : 0);
}

double D(B v) { return static_cast<double>(__bfloat162float(v)); }
unsigned short Bits(B v) {
  unsigned short u;
  std::memcpy(&u, &v, 2);
  return u;
}
// f64 to bf16 with one rounding: round to odd in f32 first.
B R(double v) {
  float f = static_cast<float>(v);
  if (std::isfinite(f) && static_cast<double>(f) != v) {
    std::uint32_t u;
    if (std::fabs(static_cast<double>(f)) > std::fabs(v)) f = std::nextafterf(f, 0);
    std::memcpy(&u, &f, 4);
    u |= 1;
    std::memcpy(&f, &u, 4);
  }
  return __float2bfloat16(f);
}

int main() {
  const int n = 1501;
  std::vector<B> a(n), b(n), c(n);
  Random random(6);
  for (int i = 0; i < n; ++i) {
    a[i] = __float2bfloat16(random.Uniform(-300, 300)), b[i] = __float2bfloat16(random.Uniform(-3, 3));
    c[i] = __float2bfloat16(i % 4 ? random.Uniform(-900, 900) : 1e-3f);
  }
  Buffer<B> da(a), db(b), dc(c), out(n * kRows);
  Buffer<float> wide(n);
  Kernel<<<(n + 255) / 256, 256>>>(da, db, dc, out, wide, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  const auto w = wide.Read();
  for (int i = 0; i < n; ++i) {
    const double x = D(a[i]), y = D(b[i]), z = D(c[i]);
    const B want[kRows] = {R(x + y),
                           R(x * y),
                           R(x * y + z),
                           x < y ? a[i] : b[i],
                           x > y ? a[i] : b[i],
                           R(-x),
                           __float2bfloat16_rz(float(x) * 1.37f),
                           R(y * z)};
    for (int k = 0; k < kRows; ++k) Same("bf16", i * 100 + k, Bits(got[i * kRows + k]), Bits(want[k]));
    Same("f32", i, w[i], float(x) + (x < y ? 1 : 0));
  }
  return Verdict();
}
