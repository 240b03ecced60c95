// Integer, floating and half arithmetic with every rounding and saturation the headers offer.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void Integers(int* out, int a, int b, unsigned u, long long l, unsigned long long m) {
  out[0] = a / b + a % b + __mul24(a, b) + __umul24(u, u) + __mulhi(a, b) + __umulhi(u, u);
  out[1] = __clz(a) + __popc(u) + __ffs(b) + __brev(u) + __byte_perm(a, b, 0x5410) + __sad(a, b, u) + __usad(u, u, u);
  out[2] = __funnelshift_l(a, b, 5) + __funnelshift_rc(a, b, 40) + __dp4a(a, b, 3) + __dp2a_lo(a, b, 4) + __hadd(a, b);
  out[3] = min(a, b) + max(u, 7u) + abs(a) + (a >> 3) + (u >> 3) + (a << b);
  out[4] =
      static_cast<int>(l / 7 + m % 9 + __mul64hi(l, l) + __umul64hi(m, m) + __clzll(l) + __popcll(m) + __brevll(m));
  out[5] = __vadd2(a, b) + __vabsdiffu4(a, b) + __vmaxs2(a, b) + __vcmpgtu4(u, u) + __vsetles2(a, b) +
           __viaddmax_s32(a, b, 3);
  __int128 w = static_cast<__int128>(l) * m;
  out[6] = static_cast<int>(w >> 70) + static_cast<signed char>(a) + static_cast<unsigned short>(b);
}

__global__ void Floats(float* out, float a, float b, float c, double x, double y) {
  out[0] = __fadd_rn(a, b) + __fmul_rz(a, b) + __fmaf_ru(a, b, c) + __fdiv_rd(a, b) + __fsqrt_rn(c) + __frcp_rz(a) +
           __frsqrt_rn(b);
  out[1] = sinf(a) + cosf(b) + tanf(c) + expf(a) + logf(b) + powf(a, b) + erff(c) + tgammaf(a) + fmodf(a, b) +
           remainderf(a, b);
  out[2] = __sinf(a) + __cosf(b) + __expf(c) + __logf(a) + __powf(a, b) + __fdividef(a, b) + __saturatef(a) + tanhf(b);
  out[3] =
      floorf(a) + ceilf(b) + truncf(c) + rintf(a) + roundf(b) + copysignf(a, b) + fminf(a, b) + fmaxf(b, c) + fabsf(a);
  out[4] = isnan(a) + isinf(b) + signbit(c) + isfinite(a) + __float2int_rn(a) + __float2uint_rz(b) + __int2float_ru(3) +
           __float_as_int(c);
  out[5] = static_cast<float>(__dadd_ru(x, y) + __dmul_rd(x, y) + __fma_rn(x, y, x) + __ddiv_rz(x, y) + __dsqrt_rn(x) +
                              sin(x) + exp(y) + log(x) + pow(x, y));
  out[6] = __double2float_rd(x) + __double2hiint(y) + __double2ll_rn(x) + __ll2float_rn(5) +
           static_cast<float>(__double_as_longlong(y));
}

__global__ void Halves(__half* out, __half2* out2, __half a, __half b, __half2 c, __half2 d, __nv_bfloat16 e,
                       __nv_bfloat162 f, float* g) {
  out[0] = __hadd(a, b) * __hfma_sat(a, b, a) - hsqrt(a) / hexp(b) + __float2half_rz(*g) + __hmax(a, b) + __habs(a);
  out2[0] = __hfma2(c, d, c) + __hmul2_sat(c, d) + h2sin(c) + __hmin2(c, d) + __floats2half2_rn(*g, 2.f) + __hneg2(d);
  out[1] = __hlt(a, b) ? __int2half_rn(3) : __ushort2half_ru(7);
  g[1] = __bfloat162float(e * e + hlog2(e)) + __low2float(f * f) + __half2float(a) + __hisnan(a) + __hbgt2(c, d);
}
