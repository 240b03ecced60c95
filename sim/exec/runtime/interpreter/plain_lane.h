// One lane of plain computation: what plain_steps.h does for 32 of them, and the types of their values. Included as
// that is.
#pragma once

namespace gridloom::exec {

template <int Level>
struct PlainLane {
  __extension__ typedef unsigned __int128 U128;
  __extension__ typedef __int128 S128;
  struct Half {
    std::uint16_t bits;
  };
  /// The C++ type of a lane's value, by ByteType; kI1 has none.
  using Lanes = std::tuple<void, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, U128, Half, float, double>;
  template <ByteType type>
  using Of = std::tuple_element_t<static_cast<std::size_t>(type), Lanes>;

  template <typename T>
  static constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, double>;
  template <typename T>
  static constexpr bool kIsInt = !std::is_void_v<T> && !kIsFloat<T> && !std::is_same_v<T, Half>;
  template <typename T>
  using Signed = std::conditional_t<
      sizeof(T) == 1, std::int8_t,
      std::conditional_t<
          sizeof(T) == 2, std::int16_t,
          std::conditional_t<sizeof(T) == 4, std::int32_t, std::conditional_t<sizeof(T) == 8, std::int64_t, S128>>>>;
  template <typename T>
  static constexpr unsigned kBits = sizeof(T) * 8;

  /// The second operand of what may be commuted: of two NaNs in f64 a processor passes on its first operand, and which
  /// one that is, compilers choose. In f32 all NaNs are the same in the end (lift_nan.h).
  template <typename T>
  [[gnu::always_inline]] static T BehindNan(T first, T second) {
    if constexpr (std::is_same_v<T, double>) return __builtin_isunordered(first, first) ? first : second;
    else return second;
  }

  template <ByteCode code, typename T>
  [[gnu::always_inline]] static T Binary(T a, T b) {
    if constexpr (kIsFloat<T>) {
      if constexpr (code == ByteCode::kFAdd) return a + BehindNan(a, b);
      else if constexpr (code == ByteCode::kFSub) return a - b;
      else if constexpr (code == ByteCode::kFMul) return a * BehindNan(a, b);
      else if constexpr (code == ByteCode::kFDiv) return a / b;
      else if constexpr (std::is_same_v<T, float>) return __builtin_copysignf(a, b);
      else return __builtin_copysign(a, b);
    } else {
      using S = Signed<T>;
      const S sa = static_cast<S>(a), sb = static_cast<S>(b);
      const unsigned distance = static_cast<unsigned>(b) & (kBits<T> - 1);
      if constexpr (code == ByteCode::kAdd) return static_cast<T>(a + b);
      else if constexpr (code == ByteCode::kSub) return static_cast<T>(a - b);
      else if constexpr (code == ByteCode::kMul) return static_cast<T>(Wide(a) * Wide(b));
      else if constexpr (code == ByteCode::kUDiv)
        return b == 0 ? T{0} : static_cast<T>(a / b);  // lanes that are off may divide by 0
      else if constexpr (code == ByteCode::kURem) return b == 0 ? T{0} : static_cast<T>(a % b);
      else if constexpr (code == ByteCode::kSDiv)
        return b == 0 ? T{0} : sb == -1 ? static_cast<T>(T{0} - a) : static_cast<T>(sa / sb);
      else if constexpr (code == ByteCode::kSRem) return b == 0 || sb == -1 ? T{0} : static_cast<T>(sa % sb);
      else if constexpr (code == ByteCode::kShl) return static_cast<T>(a << distance);
      else if constexpr (code == ByteCode::kLShr) return static_cast<T>(a >> distance);
      else if constexpr (code == ByteCode::kAShr) return static_cast<T>(sa >> distance);
      else if constexpr (code == ByteCode::kAnd) return a & b;
      else if constexpr (code == ByteCode::kOr) return a | b;
      else if constexpr (code == ByteCode::kXor) return a ^ b;
      else if constexpr (code == ByteCode::kUMin) return a < b ? a : b;
      else if constexpr (code == ByteCode::kUMax) return a > b ? a : b;
      else if constexpr (code == ByteCode::kSMin) return sa < sb ? a : b;
      else if constexpr (code == ByteCode::kSMax) return sa > sb ? a : b;
      else if constexpr (code == ByteCode::kUAddSat)
        return static_cast<T>(a + b) < a ? static_cast<T>(~T{0}) : static_cast<T>(a + b);
      else if constexpr (code == ByteCode::kUSubSat) return a < b ? T{0} : static_cast<T>(a - b);
      else {
        constexpr T kLeast = static_cast<T>(T{1} << (kBits<T> - 1));
        const T bound = static_cast<T>(sa < 0 ? kLeast : static_cast<T>(~kLeast));
        const T sum = static_cast<T>(code == ByteCode::kSAddSat ? a + b : a - b);
        const T differ =
            code == ByteCode::kSAddSat ? static_cast<T>((a ^ sum) & (b ^ sum)) : static_cast<T>((a ^ b) & (a ^ sum));
        return static_cast<S>(differ) < 0 ? bound : sum;
      }
    }
  }
  /// Products of small types must not become products of int, which overflow.
  template <typename T>
  static auto Wide(T value) {
    if constexpr (sizeof(T) < sizeof(unsigned)) return static_cast<unsigned>(value);
    else return value;
  }

  template <ByteCode code, typename T>
  [[gnu::always_inline]] static T Unary(T a) {
    if constexpr (kIsFloat<T>) {
      constexpr bool kSingle = std::is_same_v<T, float>;
      if constexpr (code == ByteCode::kFNeg) return -a;
      else if constexpr (code == ByteCode::kFAbs)
        return kSingle ? static_cast<T>(__builtin_fabsf(static_cast<float>(a))) : static_cast<T>(__builtin_fabs(a));
      else if constexpr (code == ByteCode::kSqrt)
        return kSingle ? static_cast<T>(__builtin_sqrtf(static_cast<float>(a))) : static_cast<T>(__builtin_sqrt(a));
      else if constexpr (code == ByteCode::kFloor)
        return kSingle ? static_cast<T>(__builtin_floorf(static_cast<float>(a))) : static_cast<T>(__builtin_floor(a));
      else if constexpr (code == ByteCode::kCeil)
        return kSingle ? static_cast<T>(__builtin_ceilf(static_cast<float>(a))) : static_cast<T>(__builtin_ceil(a));
      else if constexpr (code == ByteCode::kTruncate)
        return kSingle ? static_cast<T>(__builtin_truncf(static_cast<float>(a))) : static_cast<T>(__builtin_trunc(a));
      else
        return kSingle ? static_cast<T>(__builtin_nearbyintf(static_cast<float>(a)))
                       : static_cast<T>(__builtin_nearbyint(a));
    } else {
      if constexpr (code == ByteCode::kIAbs) return static_cast<Signed<T>>(a) < 0 ? static_cast<T>(T{0} - a) : a;
      else if constexpr (code == ByteCode::kPopCount) {
        if constexpr (sizeof(T) == 16)
          return static_cast<T>(__builtin_popcountll(static_cast<std::uint64_t>(a)) +
                                __builtin_popcountll(static_cast<std::uint64_t>(a >> 64)));
        else return static_cast<T>(__builtin_popcountll(a));
      } else if constexpr (code == ByteCode::kCountLeading) {
        if (a == 0) return static_cast<T>(kBits<T>);
        if constexpr (sizeof(T) == 16) {
          const auto high = static_cast<std::uint64_t>(a >> 64);
          return static_cast<T>(high != 0 ? __builtin_clzll(high)
                                          : 64 + __builtin_clzll(static_cast<std::uint64_t>(a)));
        } else {
          return static_cast<T>(static_cast<unsigned>(__builtin_clzll(a)) - (64 - kBits<T>));
        }
      } else if constexpr (code == ByteCode::kCountTrailing) {
        if (a == 0) return static_cast<T>(kBits<T>);
        if constexpr (sizeof(T) == 16) {
          const auto low = static_cast<std::uint64_t>(a);
          return static_cast<T>(low != 0 ? __builtin_ctzll(low)
                                         : 64 + __builtin_ctzll(static_cast<std::uint64_t>(a >> 64)));
        } else {
          return static_cast<T>(__builtin_ctzll(a));
        }
      } else if constexpr (code == ByteCode::kReverseBits) {
        T out = 0;
        for (unsigned i = 0; i < kBits<T>; ++i)
          out = static_cast<T>(out | static_cast<T>((a >> i & 1) << (kBits<T> - 1 - i)));
        return out;
      } else {
        T out = 0;
        for (unsigned i = 0; i < sizeof(T); ++i)
          out = static_cast<T>(out | static_cast<T>((a >> (8 * i) & 0xff) << (kBits<T> - 8 - 8 * i)));
        return out;
      }
    }
  }

  template <ByteCode code, typename T>
  [[gnu::always_inline]] static bool Compare(T a, T b) {
    if constexpr (kIsFloat<T>) {
      const bool unordered = __builtin_isunordered(a, b);
      if constexpr (code == ByteCode::kFOEq) return a == b;
      else if constexpr (code == ByteCode::kFOLt) return a < b;
      else if constexpr (code == ByteCode::kFOLe) return a <= b;
      else if constexpr (code == ByteCode::kFONe) return !unordered && a != b;
      else if constexpr (code == ByteCode::kFOrd) return !unordered;
      else if constexpr (code == ByteCode::kFUEq) return unordered || a == b;
      else if constexpr (code == ByteCode::kFULt) return !(a >= b);
      else if constexpr (code == ByteCode::kFULe) return !(a > b);
      else if constexpr (code == ByteCode::kFUNe) return a != b;
      else return unordered;
    } else {
      using S = Signed<T>;
      if constexpr (code == ByteCode::kEq) return a == b;
      else if constexpr (code == ByteCode::kNe) return a != b;
      else if constexpr (code == ByteCode::kULt) return a < b;
      else if constexpr (code == ByteCode::kULe) return a <= b;
      else if constexpr (code == ByteCode::kSLt) return static_cast<S>(a) < static_cast<S>(b);
      else return static_cast<S>(a) <= static_cast<S>(b);
    }
  }

  template <ByteCode code, typename To, typename From>
  [[gnu::always_inline]] static To Convert(From a) {
    if constexpr (std::is_same_v<From, Half>) {
      return Convert<code, To>(HalfToFloat(a.bits));
    } else if constexpr (std::is_same_v<To, Half> && code == ByteCode::kSToF) {
      return Narrow(static_cast<double>(static_cast<Signed<From>>(a)));  // what f64 does not hold is infinite
    } else if constexpr (std::is_same_v<To, Half>) {
      return Narrow(a);
    } else if constexpr (code == ByteCode::kSExt) {
      return static_cast<To>(static_cast<Signed<From>>(a));
    } else if constexpr (code == ByteCode::kSToF) {
      return static_cast<To>(static_cast<Signed<From>>(a));
    } else if constexpr (code == ByteCode::kFToS) {
      // Lanes that are off may hold anything, and a conversion of what does not fit has no meaning.
      constexpr From kEnd = static_cast<From>(static_cast<To>(To{1} << (kBits<To> - 1)));
      return static_cast<To>(static_cast<Signed<To>>(a >= -kEnd && a < kEnd ? a : From{0}));
    } else if constexpr (code == ByteCode::kFToU) {
      constexpr From kEnd = static_cast<From>(static_cast<To>(To{1} << (kBits<To> - 1))) * 2;
      return static_cast<To>(a > From{-1} && a < kEnd ? a : From{0});
    } else {
      return static_cast<To>(a);
    }
  }

  /// Rounds as the processor does: a NaN keeps its sign and the upper bits of what it carries.
  template <typename From>
  static Half Narrow(From a) {
    if (a == a) return {DoubleToHalf(static_cast<double>(a))};
    const float single = static_cast<float>(a);
    std::uint32_t bits;
    std::memcpy(&bits, &single, sizeof bits);
    return {static_cast<std::uint16_t>((bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x3ff))};
  }
};

}  // namespace gridloom::exec
