// Packed 8- and 16-bit arithmetic, dot products, and the scalar video instructions of PTX.
#include "app.h"

constexpr int kRows = 14;

__global__ void Kernel(const unsigned* a, const unsigned* b, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned x = a[i], y = b[i];
  unsigned* o = out + i * kRows;
  o[0] = __vadd4(x, y), o[1] = __vaddus4(x, y), o[2] = __vsubss2(x, y), o[3] = __vabsdiffu4(x, y);
  o[4] = __vmaxs2(x, y), o[5] = __vcmpgtu4(x, y), o[6] = __vavgu4(x, y), o[7] = __vsadu4(x, y);
  o[8] = __dp4a(static_cast<int>(x), static_cast<int>(y), 7), o[9] = __dp4a(x, y, 7u);
  o[10] = __dp2a_lo(static_cast<int>(x), static_cast<int>(y), -3), o[11] = __dp2a_hi(x, y, 3u);
  asm("vadd.s32.s32.s32.sat %0, %1, %2;" : "=r"(o[12]) : "r"(x), "r"(y));
  asm("vabsdiff.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(o[13]) : "r"(x), "r"(y), "r"(1000));
}

int U8(unsigned v, int k) { return (v >> (8 * k)) & 255; }
int S8(unsigned v, int k) { return static_cast<signed char>(v >> (8 * k)); }
int S16(unsigned v, int k) { return static_cast<short>(v >> (16 * k)); }
int Clamp(long long v, long long low, long long high) { return static_cast<int>(v < low ? low : v > high ? high : v); }

int main() {
  const int n = 999;
  std::vector<unsigned> a(n), b(n);
  Random random(5);
  for (int i = 0; i < n; ++i) a[i] = i ? random.Next() : 0x80007fffu, b[i] = i ? random.Next() : 0x7fff8000u;
  Buffer<unsigned> da(a), db(b), out(n * kRows);
  Kernel<<<(n + 95) / 96, 96>>>(da, db, out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    const unsigned x = a[i], y = b[i];
    unsigned w[kRows] = {};
    int dot_s = 7, dot_u = 7, sad = 0;
    for (int k = 0; k < 4; ++k) {
      const int p = U8(x, k), q = U8(y, k);
      w[0] |= unsigned((p + q) & 255) << (8 * k);
      w[1] |= unsigned(Clamp(p + q, 0, 255)) << (8 * k);
      w[3] |= unsigned(std::abs(p - q)) << (8 * k);
      w[5] |= (p > q ? 255u : 0u) << (8 * k);
      w[6] |= unsigned((p + q + 1) >> 1) << (8 * k);
      sad += std::abs(p - q);
      dot_s += S8(x, k) * S8(y, k), dot_u += p * q;
    }
    for (int k = 0; k < 2; ++k) {
      w[2] |= unsigned(Clamp(S16(x, k) - S16(y, k), -32768, 32767) & 0xffff) << (16 * k);
      w[4] |= unsigned((S16(x, k) > S16(y, k) ? S16(x, k) : S16(y, k)) & 0xffff) << (16 * k);
    }
    w[7] = sad, w[8] = dot_s, w[9] = dot_u;
    w[10] = S16(x, 0) * S8(y, 0) + S16(x, 1) * S8(y, 1) - 3;
    w[11] = (x & 0xffff) * U8(y, 2) + (x >> 16) * U8(y, 3) + 3;
    w[12] = Clamp(static_cast<long long>(static_cast<int>(x)) + static_cast<int>(y), INT32_MIN, INT32_MAX);
    w[13] = (x > y ? x - y : y - x) + 1000;
    for (int k = 0; k < kRows; ++k) Same("video", i * 100 + k, got[i * kRows + k], w[k]);
  }
  return Verdict();
}
