// f32 and f64 elementary functions against the host's libm within the documented error, fast intrinsics more loosely.
#include "app.h"

constexpr int kF = 24, kD = 16, kFast = 9;

__global__ void Kernel(const float* in, float* f, double* d, float* q, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i], p = fabsf(x) + 1e-3f;
  f += i * kF, d += i * kD, q += i * kFast;
  f[0] = sinf(x), f[1] = cosf(x), f[2] = tanf(x), f[3] = expf(x), f[4] = exp2f(x), f[5] = expm1f(x), f[6] = logf(p);
  f[7] = log2f(p), f[8] = log10f(p), f[9] = log1pf(p), f[10] = powf(p, 1.7f), f[11] = cbrtf(x), f[12] = atanf(x);
  f[13] = asinf(x / 41), f[14] = acosf(x / 41), f[15] = atan2f(x, p - 2), f[16] = sinhf(x / 4), f[17] = tanhf(x);
  f[18] = erff(x), f[19] = tgammaf(p), f[20] = hypotf(x, 3), f[21] = fmodf(x, 0.7f), f[22] = rsqrtf(p),
  f[23] = lgammaf(p);
  const double y = x, r = fabs(y) + 1e-3;
  d[0] = sin(y), d[1] = cos(y), d[2] = tan(y), d[3] = exp(y), d[4] = log(r), d[5] = pow(r, 1.7), d[6] = cbrt(y),
  d[7] = atan(y);
  d[8] = sinh(y / 4), d[9] = tanh(y), d[10] = erf(y), d[11] = tgamma(r), d[12] = hypot(y, 3.0), d[13] = fmod(y, 0.7);
  d[14] = rsqrt(r), d[15] = remainder(y, 0.7);
  q[0] = __sinf(x), q[1] = __cosf(x), q[2] = __expf(x), q[3] = __logf(p), q[4] = __log2f(p), q[5] = __powf(p, 1.7f);
  q[6] = __fdividef(x, p), q[7] = __saturatef(x), q[8] = __exp10f(x / 4);
}

int main() {
  const int n = 4001;
  std::vector<float> in(n);
  Random random(31);
  for (int i = 0; i < n; ++i) in[i] = i < 81 ? (i - 40) : random.Uniform(-40, 40);
  Buffer<float> din(in), df(n * kF), dq(n * kFast);
  Buffer<double> dd(n * kD);
  Kernel<<<(n + 255) / 256, 256>>>(din, df, dd, dq, n);
  CU_LAUNCHED();
  const auto f = df.Read(), q = dq.Read();
  const auto d = dd.Read();
  for (int i = 0; i < n; ++i) {
    const float xf = in[i], pf = std::fabs(xf) + 1e-3f;
    const double x = xf, p = pf, y = xf, r = std::fabs(y) + 1e-3;
    const double wf[kF] = {std::sin(x),
                           std::cos(x),
                           std::tan(x),
                           std::exp(x),
                           std::exp2(x),
                           std::expm1(x),
                           std::log(p),
                           std::log2(p),
                           std::log10(p),
                           std::log1p(p),
                           std::pow(p, double(1.7f)),
                           std::cbrt(x),
                           std::atan(x),
                           std::asin(double(xf / 41)),
                           std::acos(double(xf / 41)),
                           std::atan2(x, double(pf - 2)),
                           std::sinh(double(xf / 4)),
                           std::tanh(x),
                           std::erf(x),
                           std::tgamma(p),
                           std::hypot(x, 3),
                           std::fmod(xf, 0.7f),
                           1 / std::sqrt(p),
                           std::lgamma(p)};
    for (int k = 0; k < kF; ++k)
      Near("f32", i * 100 + k, f[i * kF + k], std::fabs(wf[k]) > 3.4e38 ? INFINITY : wf[k], k == 19 ? 1.5e-6 : 1e-6,
           k == 23 ? 2e-6 : 1e-37);
    const double wd[kD] = {std::sin(y),      std::cos(y),       std::tan(y),      std::exp(y),
                           std::log(r),      std::pow(r, 1.7),  std::cbrt(y),     std::atan(y),
                           std::sinh(y / 4), std::tanh(y),      std::erf(y),      std::tgamma(r),
                           std::hypot(y, 3), std::fmod(y, 0.7), 1 / std::sqrt(r), std::remainder(y, 0.7)};
    for (int k = 0; k < kD; ++k) Near("f64", i * 100 + k, d[i * kD + k], wd[k], 4e-15, 1e-300);
    const double wq[kFast] = {std::sin(x),        std::cos(x),      std::exp(x), std::log(p),
                              std::log2(p),       std::pow(p, 1.7), x / p,       x < 0 ? 0 : x > 1 ? 1 : x,
                              std::pow(10, x / 4)};
    for (int k = 0; k < kFast; ++k)
      Near("fast", i * 100 + k, q[i * kFast + k], wq[k], k < 2 ? 0 : 2e-5, k < 2 ? 2e-5 : 1e-6);
  }
  return Verdict();
}
