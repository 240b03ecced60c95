// Bit counting, reversal, fields, byte permutation, funnel shifts, three-input logic; PTX shifts by too much.
#include "app.h"

constexpr int kRows = 20;

__global__ void Kernel(const unsigned* a, const unsigned* b, unsigned* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned x = a[i], y = b[i];
  const unsigned long long w = (static_cast<unsigned long long>(x) << 32) | y;
  unsigned* o = out + i * kRows;
  o[0] = __popc(x), o[1] = __popcll(w), o[2] = __clz(x), o[3] = __clzll(w), o[4] = __ffs(x), o[5] = __ffsll(w);
  o[6] = __brev(x), o[7] = static_cast<unsigned>(__brevll(w) >> 32);
  o[8] = __byte_perm(x, y, y & 0x7777);
  o[9] = __funnelshift_l(x, y, y & 63), o[10] = __funnelshift_r(x, y, y & 63);
  o[11] = __funnelshift_lc(x, y, y & 63), o[12] = __funnelshift_rc(x, y, y & 63);
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(o[13]) : "r"(x), "r"(y & 31), "r"((y >> 8) & 63));
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(o[14]) : "r"(x), "r"(y & 31), "r"((y >> 8) & 63));
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(o[15]) : "r"(x), "r"(~x), "r"(y & 31), "r"((y >> 8) & 31));
  asm("bfind.u32 %0, %1;" : "=r"(o[16]) : "r"(x));
  asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(o[17]) : "r"(x), "r"(y), "r"(x * 31 + y));
  asm("shl.b32 %0, %1, %2;" : "=r"(o[18]) : "r"(x), "r"(y & 63));
  asm("shr.s32 %0, %1, %2;" : "=r"(o[19]) : "r"(x), "r"(y & 63));
}

unsigned Reverse(unsigned v) {
  unsigned r = 0;
  for (int k = 0; k < 32; ++k) r |= ((v >> k) & 1) << (31 - k);
  return r;
}
unsigned Perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = (std::uint64_t{y} << 32) | x;
  unsigned r = 0;
  for (int k = 0; k < 4; ++k) r |= static_cast<unsigned>((bytes >> (8 * ((selector >> (4 * k)) & 7))) & 255) << (8 * k);
  return r;
}
unsigned Field(unsigned x, unsigned position, unsigned length, bool is_signed) {
  unsigned r = 0;
  if (length == 0) return 0;
  const unsigned last = position + length - 1 > 31 ? 31 : position + length - 1;
  for (unsigned k = 0; k < 32; ++k) {
    if (k < length && position + k < 32) r |= ((x >> (position + k)) & 1) << k;
    else if (is_signed) r |= ((x >> last) & 1) << k;
  }
  return r;
}

int main() {
  const int n = 777;
  std::vector<unsigned> a(n), b(n);
  Random random(11);
  for (int i = 0; i < n; ++i)
    a[i] = i < 34 ? (i == 0 ? 0 : 1u << ((i - 1) & 31)) : random.Next(), b[i] = i % 9 ? random.Next() : 0;
  Buffer<unsigned> da(a), db(b), out(n * kRows);
  Kernel<<<(n + 63) / 64, 64>>>(da, db, out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    const unsigned x = a[i], y = b[i], s = y & 63, s32 = s & 31, clamped = s > 32 ? 32 : s;
    const std::uint64_t w = (std::uint64_t{x} << 32) | y, pair = (std::uint64_t{y} << 32) | x;
    const unsigned z = x * 31 + y, p = y & 31, len = (y >> 8) & 63, ilen = (y >> 8) & 31;
    const unsigned mask = (ilen == 0 ? 0u : static_cast<unsigned>((std::uint64_t{1} << ilen) - 1)) << p;
    const unsigned want[kRows] = {unsigned(__builtin_popcount(x)),
                                  unsigned(__builtin_popcountll(w)),
                                  x ? unsigned(__builtin_clz(x)) : 32,
                                  w ? unsigned(__builtin_clzll(w)) : 64,
                                  unsigned(__builtin_ffs(x)),
                                  unsigned(__builtin_ffsll(w)),
                                  Reverse(x),
                                  Reverse(y),
                                  Perm(x, y, y),
                                  unsigned((pair << s32) >> 32),
                                  unsigned(pair >> s32),
                                  clamped == 32 ? x : unsigned((pair << clamped) >> 32),
                                  unsigned(pair >> clamped),
                                  Field(x, p, len, false),
                                  Field(x, p, len, true),
                                  (~x & ~mask) | ((x << p) & mask),
                                  x ? 31u - __builtin_clz(x) : 0xffffffffu,
                                  (x & y) | (x & z) | (y & z),
                                  s > 31 ? 0 : x << s,
                                  unsigned(static_cast<int>(x) >> (s > 31 ? 31 : s))};
    for (int k = 0; k < kRows; ++k) Same("bits", i * 100 + k, got[i * kRows + k], want[k]);
  }
  return Verdict();
}
