// The tests' own idea of floating point: exact values as __float128, one rounding into any binary format, host
// arithmetic under a given rounding mode. Shares nothing with the code under test.
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace gridloom::exec::reference {

__extension__ using Quad = __float128;
__extension__ using Bits128 = unsigned __int128;

enum class Mode { kNearest, kZero, kDown, kUp, kAway };

struct Format {
  int mantissa;  ///< stored bits
  int exponent;  ///< stored bits
  int bias;
  bool has_infinity = true;
};
inline constexpr Format kF16{10, 5, 15}, kBF16{7, 8, 127}, kF32{23, 8, 127}, kTF32{10, 8, 127}, kE5M2{2, 5, 15},
    kE4M3{3, 4, 7, false}, kE2M1{1, 2, 1, false}, kE2M3{3, 2, 1, false}, kE3M2{2, 3, 3, false};

/// |n| up to 16000.
inline Quad PowerOf2(int n) { return static_cast<Quad>(std::ldexp(1.0L, n)); }

/// Value of a code; NaN and infinities where the format has them (E4M3: only the all-ones code is NaN).
inline double Decode(std::uint64_t code, const Format& f) {
  const int sign_at = f.mantissa + f.exponent;
  const double sign = (code >> sign_at & 1) != 0 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(code >> f.mantissa & ((1u << f.exponent) - 1));
  const double fraction =
      static_cast<double>(code & ((std::uint64_t{1} << f.mantissa) - 1)) / std::ldexp(1.0, f.mantissa);
  if (f.has_infinity && exponent == (1 << f.exponent) - 1) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - f.bias);
  return sign * std::ldexp(1.0 + fraction, exponent - f.bias);
}

/// Rounds to the format. Overflow goes to infinity or, towards zero, to the largest number; without infinities always
/// to the largest number. NaN and zero signs are the caller's business.
inline std::uint64_t Round(Quad value, bool negative, const Format& f, Mode mode) {
  const std::uint64_t sign = std::uint64_t{negative} << (f.mantissa + f.exponent);
  const int top_field = (1 << f.exponent) - 1;
  // E4M3 uses its top exponent but for the code that is NaN; the formats below 8 bits use every code.
  const std::uint64_t largest = f.has_infinity    ? (static_cast<std::uint64_t>(top_field) << f.mantissa) - 1
                                : f.exponent == 4 ? 0x7e
                                                  : (std::uint64_t{1} << (f.mantissa + f.exponent)) - 1;
  const std::uint64_t infinity = f.has_infinity ? largest + 1 : largest;
  Quad magnitude = value < 0 ? -value : value;
  if (magnitude == 0) return sign;
  if (magnitude > PowerOf2(2000)) return sign | (f.has_infinity ? infinity : largest);
  // The conversion may round up to the next power of two.
  int e = std::ilogb(static_cast<long double>(magnitude));
  if (magnitude < PowerOf2(e)) --e;
  if (e < 1 - f.bias) e = 1 - f.bias;
  // In units of the last place at exponent e.
  const Quad units = magnitude * PowerOf2(f.mantissa - e);
  auto whole = static_cast<std::uint64_t>(units);
  const Quad rest = units - static_cast<Quad>(whole);
  bool up = false;
  switch (mode) {
    case Mode::kNearest: up = rest > Quad(0.5) || (rest == Quad(0.5) && (whole & 1) != 0); break;
    case Mode::kAway: up = rest >= Quad(0.5); break;
    case Mode::kZero: break;
    case Mode::kDown: up = negative && rest > 0; break;
    case Mode::kUp: up = !negative && rest > 0; break;
  }
  if (up) ++whole;
  // Below the hidden bit the code is the number of units; above, the exponent field follows.
  const std::uint64_t hidden = std::uint64_t{1} << f.mantissa;
  std::uint64_t code = whole < hidden ? whole : whole - hidden + (static_cast<std::uint64_t>(e + f.bias) << f.mantissa);
  if (code > largest) {
    const bool to_largest =
        mode == Mode::kZero || (mode == Mode::kDown && !negative) || (mode == Mode::kUp && negative);
    code = to_largest ? largest : infinity;
  }
  return sign | code;
}

/// a + b rounded to odd: towards zero, with the last of 113 bits set where anything is lost, so that rounding to a
/// small format is right.
inline Quad StickySum(Quad a, Quad b) {
  const Quad sum = a + b;
  const Quad bb = sum - a;
  const Quad error = (a - (sum - bb)) + (b - bb);
  if (error == 0) return sum;
  auto bits = std::bit_cast<Bits128>(sum);
  if ((error > 0) != (sum > 0)) --bits;  // the sum was rounded away from zero
  return std::bit_cast<Quad>(bits | 1);
}

inline int HostMode(Mode mode) {
  switch (mode) {
    case Mode::kZero: return FE_TOWARDZERO;
    case Mode::kDown: return FE_DOWNWARD;
    case Mode::kUp: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}

/// Evaluates f(a, b, c) with the host rounding in that mode. f must be plain arithmetic on its arguments.
template <typename T, typename F>
T Rounded(Mode mode, F f, T x, T y = 0, T z = 0) {
  volatile T a = x, b = y, c = z, result;
  const int before = std::fegetround();
  std::fesetround(HostMode(mode));
  result = f(a, b, c);
  std::fesetround(before);
  return result;
}

template <typename T>
T Flush(T x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T(0), x) : x;
}

}  // namespace gridloom::exec::reference
