// Conversions between integers and floats: all rounding modes, saturation at the ends, NaN, narrow types.
#include <cfenv>
#include <limits>

#include "app.h"

constexpr int kI = 16, kF = 12;

__global__ void FromFloat(const double* in, long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double d = in[i];
  const float f = static_cast<float>(d);
  long long* o = out + i * kI;
  o[0] = __float2int_rn(f), o[1] = __float2int_rz(f), o[2] = __float2int_ru(f), o[3] = __float2int_rd(f);
  o[4] = __float2uint_rz(f), o[5] = __float2ll_rn(f), o[6] = __float2ull_rz(f);
  o[7] = __double2int_rn(d), o[8] = __double2uint_rz(d), o[9] = __double2ll_rd(d), o[10] = __double2ull_ru(d);
  unsigned byte, half_word;
  asm("{.reg .u8 t; cvt.rzi.u8.f32 t, %1; cvt.u32.u8 %0, t;}" : "=r"(byte) : "f"(f));
  asm("{.reg .s16 t; cvt.rni.s16.f32 t, %1; cvt.s32.s16 %0, t;}" : "=r"(half_word) : "f"(f));
  o[11] = byte, o[12] = static_cast<int>(half_word);
  o[13] = __float_as_int(truncf(f)), o[14] = __float_as_int(rintf(f)), o[15] = __double_as_longlong(floor(d) + ceil(d));
}
__global__ void FromInt(const long long* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const long long v = in[i];
  double* o = out + i * kF;
  o[0] = __ll2float_rn(v), o[1] = __ll2float_rz(v), o[2] = __ll2float_ru(v), o[3] = __ll2float_rd(v),
  o[4] = __ull2float_rn(v);
  o[5] = __ll2double_rn(v), o[6] = __ll2double_rd(v), o[7] = __ull2double_ru(v),
  o[8] = __int2float_rz(static_cast<int>(v));
  o[9] = __uint2float_rn(static_cast<unsigned>(v)), o[10] = __double2float_ru(static_cast<double>(v) * 0.1);
  o[11] = __double2float_rd(static_cast<double>(v) * 0.1);
}

template <class I>
I Clamp(double v) {
  if (std::isnan(v)) return sizeof(I) == 8 ? I(1) << 63 : I(0);
  const double low = static_cast<double>(std::numeric_limits<I>::min()),
               high = static_cast<double>(std::numeric_limits<I>::max());
  if (v <= low) return std::numeric_limits<I>::min();
  if (v >= high) return std::numeric_limits<I>::max();
  return static_cast<I>(v);
}
template <class To, class From>
__attribute__((noinline, optimize("rounding-math"))) double Rounded(int mode, From v) {
  std::fesetround(mode);
  volatile From in = v;
  volatile To r = static_cast<To>(in);
  std::fesetround(FE_TONEAREST);
  return r;
}

int main() {
  const double edge[] = {
      0,     -0.0,   0.5,     -0.5,   1.5,      2.5,          -2.5,         254.9,         255.5,
      300,   -1,     32767.4, 40000,  -40000,   2147483647.0, 2147483648.0, -2147483649.0, 4294967295.0,
      4.3e9, 9.3e18, -9.3e18, 1.9e19, INFINITY, -INFINITY,    NAN,          1e-300,        0.4999999};
  const int n = 1200;
  std::vector<double> in(n);
  std::vector<long long> ints(n);
  Random random(12);
  for (int i = 0; i < n; ++i) {
    in[i] = i < 27 ? edge[i] : std::ldexp(random.Uniform(-1, 1), static_cast<int>(random.Next() % 66));
    ints[i] = i < 4 ? (i - 1) : static_cast<long long>(random.Next64() >> (random.Next() % 60));
    if (i == 5) ints[i] = INT64_MIN;
  }
  Buffer<double> din(in), fo(n * kF);
  Buffer<long long> dints(ints), io(n * kI);
  FromFloat<<<10, 128>>>(din, io, n);
  FromInt<<<10, 128>>>(dints, fo, n);
  CU_LAUNCHED();
  const auto g = io.Read();
  const auto h = fo.Read();
  for (int i = 0; i < n; ++i) {
    const double d = in[i];
    const float f = static_cast<float>(d), t = std::trunc(f), r = std::rint(f);
    const double fc = std::floor(d) + std::ceil(d);
    int ti, ri;
    long long di;
    std::memcpy(&ti, &t, 4), std::memcpy(&ri, &r, 4), std::memcpy(&di, &fc, 8);
    const long long want[kI] = {Clamp<int>(std::rint(f)),
                                Clamp<int>(f),
                                Clamp<int>(std::ceil(f)),
                                Clamp<int>(std::floor(f)),
                                Clamp<unsigned>(t),
                                Clamp<long long>(std::rint(f)),
                                (long long)Clamp<unsigned long long>(t),
                                std::isnan(d) ? INT32_MIN : Clamp<int>(std::rint(d)),
                                std::isnan(d) ? 0x80000000u : Clamp<unsigned>(std::trunc(d)),
                                Clamp<long long>(std::floor(d)),
                                (long long)Clamp<unsigned long long>(std::ceil(d)),
                                Clamp<std::uint8_t>(t),
                                Clamp<std::int16_t>(std::rint(f)),
                                ti,
                                ri,
                                di};
    for (int k = 0; k < kI; ++k)
      if (!std::isnan(d)) Same("to int", i * 100 + k, g[i * kI + k], want[k]);
    const long long v = ints[i];
    const double x = static_cast<double>(v) * 0.1;
    using U = unsigned long long;
    const double wf[kF] = {Rounded<float>(FE_TONEAREST, v),       Rounded<float>(FE_TOWARDZERO, v),
                           Rounded<float>(FE_UPWARD, v),          Rounded<float>(FE_DOWNWARD, v),
                           Rounded<float>(FE_TONEAREST, U(v)),    Rounded<double>(FE_TONEAREST, v),
                           Rounded<double>(FE_DOWNWARD, v),       Rounded<double>(FE_UPWARD, U(v)),
                           Rounded<float>(FE_TOWARDZERO, int(v)), Rounded<float>(FE_TONEAREST, unsigned(v)),
                           Rounded<float>(FE_UPWARD, x),          Rounded<float>(FE_DOWNWARD, x)};
    for (int k = 0; k < kF; ++k) Same("from int", i * 100 + k, h[i * kF + k], wf[k]);
  }
  return Verdict();
}
