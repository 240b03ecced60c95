// Integer arithmetic of all widths: add, sub, mul (low, high, wide, 24 bit), div, rem, min, max, shifts, sad, average.
#include <type_traits>

#include "app.h"

template <class T>
struct Row {
  T add, sub, mul, quot, rem, low, high, left, right, neg, inv, absolute;
};
template <class T>
__host__ __device__ Row<T> Compute(T a, T b) {
  const T d = b == 0 ? T(7) : b;
  const int shift = static_cast<int>(b) & (sizeof(T) * 8 - 1);
  Row<T> r{};
  using W = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;  // wraps without undefined behaviour
  r.add = T(W(a) + W(b)), r.sub = T(W(a) - W(b)), r.mul = T(W(a) * W(b));
  const bool overflow = std::is_signed_v<T> && d == T(-1);
  r.quot = overflow ? T(0) : T(a / d), r.rem = overflow ? T(0) : T(a % d);
  r.low = a < b ? a : b, r.high = a > b ? a : b;
  r.left = T(W(a) << shift), r.right = T(a >> shift);
  r.neg = T(0 - W(a)), r.inv = T(~a), r.absolute = r.neg;
  if constexpr (std::is_signed_v<T>) r.absolute = a < 0 ? r.neg : a;
  return r;
}
template <class T>
__global__ void Kernel(const T* a, const T* b, Row<T>* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Compute(a[i], b[i]);
}
template <class T>
void Test(const char* name) {
  const int n = 1001;
  std::vector<T> a(n), b(n);
  Random random(sizeof(T));
  const T edge[] = {T(0), T(1), T(-1), T(T(1) << (sizeof(T) * 8 - 1)), T(~(T(1) << (sizeof(T) * 8 - 1))), T(2), T(100)};
  for (int i = 0; i < n; ++i) {
    a[i] = i < 49 ? edge[i % 7] : T(random.Next64());
    b[i] = i < 49 ? edge[i / 7] : T(i % 3 ? random.Next64() : random.Next64() & 63);
  }
  Buffer<T> da(a), db(b);
  Buffer<Row<T>> out(n);
  Kernel<T><<<(n + 127) / 128, 128>>>(da, db, out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    const Row<T> want = Compute(a[i], b[i]);
    True(name, std::memcmp(&got[i], &want, sizeof want) == 0);
  }
}

__global__ void Intrinsics(const unsigned* a, const unsigned* b, unsigned long long* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned x = a[i], y = b[i];
  const int sx = static_cast<int>(x), sy = static_cast<int>(y);
  const unsigned long long wide_x = (static_cast<unsigned long long>(x) << 32) | y, wide_y = ~wide_x * 3;
  unsigned long long* row = out + i * 12;
  row[0] = __umulhi(x, y), row[1] = static_cast<unsigned>(__mulhi(sx, sy));
  row[2] = __umul64hi(wide_x, wide_y), row[3] = __mul64hi(wide_x, wide_y);
  row[4] = __umul24(x, y), row[5] = static_cast<unsigned>(__mul24(sx, sy));
  row[6] = __usad(x, y, 5u), row[7] = __sad(sx, sy, 9u);
  row[8] = __uhadd(x, y), row[9] = __urhadd(x, y), row[10] = static_cast<unsigned>(__hadd(sx, sy));
  row[11] = static_cast<unsigned long long>(x) * y + static_cast<long long>(sx) * sy;
}
long long Sext24(unsigned v) { return static_cast<int>(v << 8) >> 8; }

int main() {
  Test<std::int8_t>("s8"), Test<std::uint8_t>("u8"), Test<std::int16_t>("s16"), Test<std::uint16_t>("u16");
  Test<std::int32_t>("s32"), Test<std::uint32_t>("u32"), Test<std::int64_t>("s64"), Test<std::uint64_t>("u64");

  const int n = 500;
  std::vector<unsigned> a(n), b(n);
  Random random(3);
  for (int i = 0; i < n; ++i) a[i] = random.Next(), b[i] = i % 5 ? random.Next() : 0x80000000u;
  Buffer<unsigned> da(a), db(b);
  Buffer<unsigned long long> out(n * 12);
  Intrinsics<<<4, 128>>>(da, db, out, n);
  CU_LAUNCHED();
  const auto got = out.Read();
  for (int i = 0; i < n; ++i) {
    using U64 = unsigned long long;
    const unsigned x = a[i], y = b[i];
    const long long sx = static_cast<int>(x), sy = static_cast<int>(y);
    const U64 wx = (U64{x} << 32) | y, wy = ~wx * 3;
    const U64 want[12] = {
        (U64{x} * y) >> 32,
        static_cast<unsigned>((sx * sy) >> 32),
        static_cast<U64>((static_cast<unsigned __int128>(wx) * wy) >> 64),
        static_cast<U64>((static_cast<__int128>(static_cast<long long>(wx)) * static_cast<long long>(wy)) >> 64),
        static_cast<unsigned>(U64{x & 0xffffff} * (y & 0xffffff)),
        static_cast<unsigned>(Sext24(x) * Sext24(y)),
        static_cast<unsigned>((x > y ? x - y : y - x) + 5),
        static_cast<unsigned>((sx > sy ? sx - sy : sy - sx) + 9),
        (U64{x} + y) >> 1,
        (U64{x} + y + 1) >> 1,
        static_cast<unsigned>((sx + sy) >> 1),
        U64{x} * y + static_cast<U64>(sx * sy)};
    for (int k = 0; k < 12; ++k) Same("intrinsic", i * 12 + k, got[i * 12 + k], want[k]);
  }
  return Verdict();
}
