// IEEE arithmetic in all four rounding modes, f32 and f64, against the host's own rounding modes. Bit-exact.
#include <cfenv>

#include "app.h"

struct Mode {
  static constexpr int kHost[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
};
constexpr int kOps = 6;  // add, mul, fma, div, rcp, sqrt

#define ROW(mode, f, d)                                                                                              \
  f[0] = __fadd_##mode(x, y), f[1] = __fmul_##mode(x, y), f[2] = __fmaf_##mode(x, y, z), f[3] = __fdiv_##mode(x, y), \
  f[4] = __frcp_##mode(y), f[5] = __fsqrt_##mode(fabsf(x));                                                          \
  d[0] = __dadd_##mode(u, v), d[1] = __dmul_##mode(u, v), d[2] = __fma_##mode(u, v, w), d[3] = __ddiv_##mode(u, v),  \
  d[4] = __drcp_##mode(v), d[5] = __dsqrt_##mode(fabs(u));

__global__ void Kernel(const double* in, float* fo, double* dout, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double u = in[3 * i], v = in[3 * i + 1], w = in[3 * i + 2];
  const float x = u, y = v, z = w;
  float* f = fo + i * 4 * kOps;
  double* d = dout + i * 4 * kOps;
  ROW(rn, (f + 0 * kOps), (d + 0 * kOps));
  ROW(rz, (f + 1 * kOps), (d + 1 * kOps));
  ROW(ru, (f + 2 * kOps), (d + 2 * kOps));
  ROW(rd, (f + 3 * kOps), (d + 3 * kOps));
}

template <class T>
__attribute__((noinline, optimize("rounding-math"))) void Host(int mode, T x, T y, T z, T* r) {
  std::fesetround(mode);
  volatile T a = x, b = y, c = z, one = 1;
  volatile T out[kOps] = {a + b, a * b, T(std::fma(T(a), T(b), T(c))), a / b, one / b, T(std::sqrt(std::fabs(T(a))))};
  for (int k = 0; k < kOps; ++k) r[k] = out[k];
  std::fesetround(FE_TONEAREST);
}
template <class T>
void Compare(const char* name, long index, T got, T want) {
  if (std::isnan(want)) True(name, std::isnan(got));
  else Same(name, index, got, want);
}

int main() {
  const int n = 2003;
  const double edge[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-40, -3e-42, 3e38, 1e-310, 1.7e308, 0.1};
  std::vector<double> in(3 * n);
  Random random(21);
  for (std::size_t k = 0; k < in.size(); ++k) {
    in[k] = k < 600 ? edge[random.Next() % 13]
                    : std::ldexp(random.Uniform(-2, 2), static_cast<int>(random.Next() % 60) - 30);
    if (k % 3 == 2 && k >= 600) in[k] = -in[k - 1] * in[k - 2] * (1 + 1e-9);  // fma with cancellation
  }
  Buffer<double> din(in), dd(n * 4 * kOps);
  Buffer<float> df(n * 4 * kOps);
  Kernel<<<(n + 127) / 128, 128>>>(din, df, dd, n);
  CU_LAUNCHED();
  const auto f = df.Read();
  const auto d = dd.Read();
  for (int i = 0; i < n; ++i) {
    for (int m = 0; m < 4; ++m) {
      float wf[kOps];
      double wd[kOps];
      Host<float>(Mode::kHost[m], float(in[3 * i]), float(in[3 * i + 1]), float(in[3 * i + 2]), wf);
      Host<double>(Mode::kHost[m], in[3 * i], in[3 * i + 1], in[3 * i + 2], wd);
      for (int k = 0; k < kOps; ++k) {
        Compare("f32", i * 100 + m * 10 + k, f[(i * 4 + m) * kOps + k], wf[k]);
        Compare("f64", i * 100 + m * 10 + k, d[(i * 4 + m) * kOps + k], wd[k]);
      }
    }
  }
  return Verdict();
}
