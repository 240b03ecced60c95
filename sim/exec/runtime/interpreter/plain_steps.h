// Plain computation on 32 lanes. The files that include this are compiled for one instruction set each; `Level` keeps
// their functions apart. All give the same bits: no contraction, every operation correctly rounded. They include what
// is used here first, so that nothing else is compiled for that set.
#pragma once

#include "sim/exec/runtime/interpreter/plain_lane.h"

namespace gridloom::exec {

template <int Level>
struct PlainSteps {
  using L = PlainLane<Level>;
  using U128 = typename L::U128;
  template <ByteType type>
  using Of = typename L::template Of<type>;

  // --- all lanes ---

  template <ByteCode code, ByteType type>
  static void RunBinary(Frame& f, const ByteStep& s) {
    using T = Of<type>;
    const T* const __restrict a = f.In<T>(s.a);
    const T* const __restrict b = f.In<T>(s.b);
    T* const __restrict out = f.Out<T>(s.dst);
    for (unsigned i = 0; i < 32; ++i) out[i] = L::template Binary<code, T>(a[i], b[i]);
  }
  template <ByteCode code, ByteType type>
  static void RunUnary(Frame& f, const ByteStep& s) {
    using T = Of<type>;
    const T* const __restrict a = f.In<T>(s.a);
    T* const __restrict out = f.Out<T>(s.dst);
    for (unsigned i = 0; i < 32; ++i) out[i] = L::template Unary<code, T>(a[i]);
  }
  template <ByteCode code, ByteType type>
  static void RunCompare(Frame& f, const ByteStep& s) {
    using T = Of<type>;
    const T* const a = f.In<T>(s.a);
    const T* const b = f.In<T>(s.b);
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(L::template Compare<code, T>(a[i], b[i])) << i;
    f.BitsOut(s.dst) = bits;
  }
  template <ByteCode code, ByteType to, ByteType from>
  static void RunCast(Frame& f, const ByteStep& s) {
    const Of<from>* const __restrict a = f.In<Of<from>>(s.a);
    Of<to>* const __restrict out = f.Out<Of<to>>(s.dst);
    for (unsigned i = 0; i < 32; ++i) out[i] = L::template Convert<code, Of<to>, Of<from>>(a[i]);
  }
  /// From predicates.
  template <ByteCode code, ByteType to>
  static void RunWiden(Frame& f, const ByteStep& s) {
    using T = Of<to>;
    const std::uint32_t bits = f.BitsIn(s.a);
    T* const out = f.Out<T>(s.dst);
    const T one = code == ByteCode::kSExt || code == ByteCode::kSToF ? static_cast<T>(-1) : static_cast<T>(1);
    for (unsigned i = 0; i < 32; ++i) out[i] = (bits >> i & 1) != 0 ? one : T{};
  }
  template <ByteType from>
  static void RunLowBit(Frame& f, const ByteStep& s) {
    const Of<from>* const a = f.In<Of<from>>(s.a);
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < 32; ++i) bits |= (static_cast<std::uint32_t>(a[i]) & 1u) << i;
    f.BitsOut(s.dst) = bits;
  }
  template <ByteType type>
  static void RunFma(Frame& f, const ByteStep& s) {
    using T = Of<type>;
    const T* const __restrict a = f.In<T>(s.a);
    const T* const __restrict b = f.In<T>(s.b);
    const T* const __restrict c = f.In<T>(s.c);
    T* const __restrict out = f.Out<T>(s.dst);
    for (unsigned i = 0; i < 32; ++i) {
      if constexpr (std::is_same_v<T, float>) out[i] = __builtin_fmaf(a[i], b[i], c[i]);
      else {
        const T second = L::BehindNan(a[i], b[i]);
        out[i] = __builtin_fma(a[i], second, L::BehindNan(second, c[i]));
      }
    }
  }
  template <bool left, ByteType type>
  static void RunFunnel(Frame& f, const ByteStep& s) {
    using T = Of<type>;
    const T* const a = f.In<T>(s.a);
    const T* const b = f.In<T>(s.b);
    const T* const c = f.In<T>(s.c);
    T* const out = f.Out<T>(s.dst);
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned distance = static_cast<unsigned>(c[i]) & (L::template kBits<T> - 1),
                     rest = (L::template kBits<T> - distance) & (L::template kBits<T> - 1);
      const T shifted = left ? static_cast<T>(static_cast<T>(a[i] << distance) | static_cast<T>(b[i] >> rest))
                             : static_cast<T>(static_cast<T>(a[i] << rest) | static_cast<T>(b[i] >> distance));
      out[i] = distance == 0 ? (left ? a[i] : b[i]) : shifted;
    }
  }
  /// The unsigned integer of as many bytes, to move lanes with.
  template <std::size_t bytes>
  using Word =
      std::conditional_t<bytes == 1, std::uint8_t,
                         std::conditional_t<bytes == 2, std::uint16_t,
                                            std::conditional_t<bytes == 4, std::uint32_t,
                                                               std::conditional_t<bytes == 8, std::uint64_t, U128>>>>;
  /// All ones where the lane's bit is set.
  template <typename T>
  [[gnu::always_inline]] static void Spread(std::uint32_t bits, T (&wide)[32]) {
    if constexpr (sizeof(T) == 4) {
      for (unsigned i = 0; i < 32; ++i) wide[i] = T{0} - (bits >> i & 1u);
    } else {
      for (unsigned i = 0; i < 32; ++i) wide[i] = static_cast<T>(T{0} - static_cast<T>(bits >> i & 1u));
    }
  }
  template <std::size_t bytes>
  static void RunSelect(Frame& f, const ByteStep& s) {
    using T = Word<bytes>;
    const T* const __restrict a = f.In<T>(s.a);
    const T* const __restrict b = f.In<T>(s.b);
    T* const __restrict out = f.Out<T>(s.dst);
    T wide[32];
    Spread(f.BitsIn(s.c), wide);
    for (unsigned i = 0; i < 32; ++i) out[i] = static_cast<T>((a[i] & wide[i]) | (b[i] & static_cast<T>(~wide[i])));
  }
  template <std::size_t bytes>
  static void RunMerge(Frame& f, const ByteStep& s) {
    using T = Word<bytes>;
    const T* const __restrict a = f.In<T>(s.a);
    T* const __restrict out = f.Out<T>(s.dst);
    if (f.mask == ~0u) {
      std::memcpy(out, a, sizeof(T) * 32);
      return;
    }
    T wide[32];
    Spread(f.mask, wide);
    for (unsigned i = 0; i < 32; ++i) out[i] = static_cast<T>((a[i] & wide[i]) | (out[i] & static_cast<T>(~wide[i])));
  }
  template <std::size_t bytes>
  static void RunMove(Frame& f, const ByteStep& s) {
    std::memcpy(f.Out<std::uint8_t>(s.dst), f.In<std::uint8_t>(s.a), bytes);
  }
  template <std::size_t whole, std::size_t part>
  static void RunPart(Frame& f, const ByteStep& s) {
    const std::uint8_t* const a = f.In<std::uint8_t>(s.a) + s.imm * part;
    std::uint8_t* const out = f.Out<std::uint8_t>(s.dst);
    for (unsigned i = 0; i < 32; ++i) std::memcpy(out + i * part, a + i * whole, part);
  }
  /// f16 by way of f32, which holds what comes out of these exactly or is rounded as if it did.
  template <ByteCode code>
  static void RunHalfUnary(Frame& f, const ByteStep& s) {
    const auto* const a = f.In<std::uint16_t>(s.a);
    auto* const out = f.Out<std::uint16_t>(s.dst);
    for (unsigned i = 0; i < 32; ++i) {
      if constexpr (code == ByteCode::kFNeg) out[i] = a[i] ^ 0x8000;
      else if constexpr (code == ByteCode::kFAbs) out[i] = a[i] & 0x7fff;
      else out[i] = L::Narrow(L::template Unary<code, float>(HalfToFloat(a[i]))).bits;
    }
  }
  template <ByteCode code>
  static void RunHalfBinary(Frame& f, const ByteStep& s) {
    const auto* const a = f.In<std::uint16_t>(s.a);
    const auto* const b = f.In<std::uint16_t>(s.b);
    auto* const out = f.Out<std::uint16_t>(s.dst);
    for (unsigned i = 0; i < 32; ++i) {
      if constexpr (code == ByteCode::kCopySign) out[i] = static_cast<std::uint16_t>((a[i] & 0x7fff) | (b[i] & 0x8000));
      else out[i] = L::Narrow(L::template Binary<code, float>(HalfToFloat(a[i]), HalfToFloat(b[i]))).bits;
    }
  }
  template <ByteCode code>
  static void RunHalfCompare(Frame& f, const ByteStep& s) {
    const auto* const a = f.In<std::uint16_t>(s.a);
    const auto* const b = f.In<std::uint16_t>(s.b);
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < 32; ++i)
      bits |= static_cast<std::uint32_t>(L::template Compare<code, float>(HalfToFloat(a[i]), HalfToFloat(b[i]))) << i;
    f.BitsOut(s.dst) = bits;
  }
  template <ByteCode... codes>
  static StepFn FindHalfUnary(const ByteStep& s) {
    StepFn found = nullptr;
    ((s.code == codes ? static_cast<void>(found = &RunHalfUnary<codes>) : void()), ...);
    return found;
  }
  template <ByteCode... codes>
  static StepFn FindHalfBinary(const ByteStep& s) {
    StepFn found = nullptr;
    ((s.code == codes ? static_cast<void>(found = &RunHalfBinary<codes>) : void()), ...);
    return found;
  }
  template <ByteCode... codes>
  static StepFn FindHalfCompare(const ByteStep& s) {
    StepFn found = nullptr;
    ((s.code == codes ? static_cast<void>(found = &RunHalfCompare<codes>) : void()), ...);
    return found;
  }
  static StepFn FindHalf(const ByteStep& s) {
    using C = ByteCode;
    if (StepFn found = FindHalfUnary<C::kFNeg, C::kFAbs, C::kSqrt, C::kFloor, C::kCeil, C::kTruncate, C::kRint>(s))
      return found;
    if (StepFn found = FindHalfBinary<C::kFAdd, C::kFSub, C::kFMul, C::kFDiv, C::kCopySign>(s)) return found;
    return FindHalfCompare<C::kFOEq, C::kFOLt, C::kFOLe, C::kFONe, C::kFOrd, C::kFUEq, C::kFULt, C::kFULe, C::kFUNe,
                           C::kFUno>(s);
  }

  template <ByteType type>
  static void RunClass(Frame& f, const ByteStep& s) {
    using T = Of<type>;
    const T* const a = f.In<T>(s.a);
    std::uint32_t bits = 0;
    for (unsigned i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>((s.imm & ClassOf(a[i])) != 0) << i;
    f.BitsOut(s.dst) = bits;
  }
  /// Bits of LLVM's FPClassTest.
  template <typename T>
  static unsigned ClassOf(T value) {
    const bool negative = __builtin_signbit(value);
    switch (__builtin_fpclassify(0, 1, 2, 3, 4, value)) {
      case 0: {
        std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> bits;
        std::memcpy(&bits, &value, sizeof bits);
        const bool quiet = (bits >> (sizeof(T) == 4 ? 22 : 51) & 1) != 0;
        return quiet ? 0x2 : 0x1;
      }
      case 1: return negative ? 0x4 : 0x200;
      case 2: return negative ? 0x8 : 0x100;
      case 3: return negative ? 0x10 : 0x80;
      default: return negative ? 0x20 : 0x40;
    }
  }

  // --- predicates: a word for all lanes ---

  template <ByteCode code>
  static void RunBits(Frame& f, const ByteStep& s) {
    const std::uint32_t a = f.BitsIn(s.a), b = f.BitsIn(s.b);
    std::uint32_t& out = f.BitsOut(s.dst);
    if constexpr (code == ByteCode::kAnd || code == ByteCode::kMul || code == ByteCode::kUMin ||
                  code == ByteCode::kSMax)
      out = a & b;
    else if constexpr (code == ByteCode::kOr || code == ByteCode::kUMax || code == ByteCode::kSMin) out = a | b;
    else if constexpr (code == ByteCode::kEq) out = ~(a ^ b);
    else if constexpr (code == ByteCode::kULt) out = ~a & b;
    else if constexpr (code == ByteCode::kULe) out = ~a | b;
    else if constexpr (code == ByteCode::kSLt) out = a & ~b;  // true is -1
    else if constexpr (code == ByteCode::kSLe) out = a | ~b;
    else out = a ^ b;
  }
  static void RunSelectBits(Frame& f, const ByteStep& s) {
    const std::uint32_t chosen = f.BitsIn(s.c);
    f.BitsOut(s.dst) = (f.BitsIn(s.a) & chosen) | (f.BitsIn(s.b) & ~chosen);
  }
  static void RunMergeBits(Frame& f, const ByteStep& s) {
    std::uint32_t& out = f.BitsOut(s.dst);
    out = (f.BitsIn(s.a) & f.mask) | (out & ~f.mask);
  }

  // --- which function a step is ---

  template <ByteCode code, template <ByteCode, ByteType> class Pick>
  static StepFn OfInt(ByteType type) {
    switch (type) {
      case ByteType::kI8: return &Pick<code, ByteType::kI8>::Run;
      case ByteType::kI16: return &Pick<code, ByteType::kI16>::Run;
      case ByteType::kI32: return &Pick<code, ByteType::kI32>::Run;
      case ByteType::kI64: return &Pick<code, ByteType::kI64>::Run;
      case ByteType::kI128: return &Pick<code, ByteType::kI128>::Run;
      default: return nullptr;
    }
  }
  template <ByteCode code, template <ByteCode, ByteType> class Pick>
  static StepFn OfFloat(ByteType type) {
    if (type == ByteType::kF32) return &Pick<code, ByteType::kF32>::Run;
    return type == ByteType::kF64 ? &Pick<code, ByteType::kF64>::Run : nullptr;
  }
  template <ByteCode code, ByteType type>
  struct PickBinary {
    static void Run(Frame& f, const ByteStep& s) { RunBinary<code, type>(f, s); }
  };
  template <ByteCode code, ByteType type>
  struct PickUnary {
    static void Run(Frame& f, const ByteStep& s) { RunUnary<code, type>(f, s); }
  };
  template <ByteCode code, ByteType type>
  struct PickCompare {
    static void Run(Frame& f, const ByteStep& s) { RunCompare<code, type>(f, s); }
  };
  template <ByteCode code, ByteType type>
  struct PickFunnel {
    static void Run(Frame& f, const ByteStep& s) { RunFunnel<code == ByteCode::kFShl, type>(f, s); }
  };
  template <ByteCode code, ByteType type>
  struct PickFma {
    static void Run(Frame& f, const ByteStep& s) { RunFma<type>(f, s); }
  };
  template <ByteCode code, ByteType type>
  struct PickClass {
    static void Run(Frame& f, const ByteStep& s) { RunClass<type>(f, s); }
  };

  template <template <ByteCode, ByteType> class Pick, ByteCode... codes>
  static StepFn FindInt(const ByteStep& s) {
    StepFn found = nullptr;
    ((s.code == codes ? static_cast<void>(found = OfInt<codes, Pick>(s.type)) : void()), ...);
    return found;
  }
  template <template <ByteCode, ByteType> class Pick, ByteCode... codes>
  static StepFn FindFloat(const ByteStep& s) {
    StepFn found = nullptr;
    ((s.code == codes ? static_cast<void>(found = OfFloat<codes, Pick>(s.type)) : void()), ...);
    return found;
  }
  template <ByteCode... codes>
  static StepFn FindBits(const ByteStep& s) {
    StepFn found = nullptr;
    ((s.code == codes ? static_cast<void>(found = &RunBits<codes>) : void()), ...);
    return found;
  }

  template <ByteCode code, ByteType from, ByteType... to>
  static StepFn CastTo(ByteType type) {
    StepFn found = nullptr;
    ((type == to ? static_cast<void>(found = &RunCast<code, to, from>) : void()), ...);
    return found;
  }
  /// Between any two integers; what a conversion does not widen or narrow, it moves.
  template <ByteCode code>
  static StepFn CastInt(const ByteStep& s) {
    using B = ByteType;
    switch (s.from) {
      case B::kI8: return CastTo<code, B::kI8, B::kI8, B::kI16, B::kI32, B::kI64, B::kI128>(s.type);
      case B::kI16: return CastTo<code, B::kI16, B::kI8, B::kI16, B::kI32, B::kI64, B::kI128>(s.type);
      case B::kI32: return CastTo<code, B::kI32, B::kI8, B::kI16, B::kI32, B::kI64, B::kI128>(s.type);
      case B::kI64: return CastTo<code, B::kI64, B::kI8, B::kI16, B::kI32, B::kI64, B::kI128>(s.type);
      case B::kI128: return CastTo<code, B::kI128, B::kI8, B::kI16, B::kI32, B::kI64, B::kI128>(s.type);
      default: return nullptr;
    }
  }
  template <ByteCode code>
  static StepFn CastFromInt(const ByteStep& s) {
    using B = ByteType;
    switch (s.from) {
      case B::kI8: return CastTo<code, B::kI8, B::kF16, B::kF32, B::kF64>(s.type);
      case B::kI16: return CastTo<code, B::kI16, B::kF16, B::kF32, B::kF64>(s.type);
      case B::kI32: return CastTo<code, B::kI32, B::kF16, B::kF32, B::kF64>(s.type);
      case B::kI64: return CastTo<code, B::kI64, B::kF16, B::kF32, B::kF64>(s.type);
      default: return nullptr;
    }
  }
  template <ByteCode code>
  static StepFn CastToInt(const ByteStep& s) {
    using B = ByteType;
    if (s.from == B::kF16) return CastTo<code, B::kF16, B::kI8, B::kI16, B::kI32, B::kI64>(s.type);
    if (s.from == B::kF32) return CastTo<code, B::kF32, B::kI8, B::kI16, B::kI32, B::kI64>(s.type);
    return s.from == B::kF64 ? CastTo<code, B::kF64, B::kI8, B::kI16, B::kI32, B::kI64>(s.type) : nullptr;
  }
  template <ByteCode code>
  static StepFn FindWiden(ByteType type) {
    switch (type) {
      case ByteType::kI8: return &RunWiden<code, ByteType::kI8>;
      case ByteType::kI16: return &RunWiden<code, ByteType::kI16>;
      case ByteType::kI32: return &RunWiden<code, ByteType::kI32>;
      case ByteType::kI64: return &RunWiden<code, ByteType::kI64>;
      case ByteType::kI128: return &RunWiden<code, ByteType::kI128>;
      case ByteType::kF32: return &RunWiden<code, ByteType::kF32>;
      case ByteType::kF64: return &RunWiden<code, ByteType::kF64>;
      default: return nullptr;
    }
  }
  static StepFn FindLowBit(ByteType from) {
    switch (from) {
      case ByteType::kI8: return &RunLowBit<ByteType::kI8>;
      case ByteType::kI16: return &RunLowBit<ByteType::kI16>;
      case ByteType::kI32: return &RunLowBit<ByteType::kI32>;
      case ByteType::kI64: return &RunLowBit<ByteType::kI64>;
      case ByteType::kI128: return &RunLowBit<ByteType::kI128>;
      default: return nullptr;
    }
  }
  static StepFn FindCast(const ByteStep& s) {
    using C = ByteCode;
    using B = ByteType;
    if (s.from == B::kI1) {
      switch (s.code) {
        case C::kZExt: return FindWiden<C::kZExt>(s.type);
        case C::kSExt: return FindWiden<C::kSExt>(s.type);
        case C::kUToF: return FindWiden<C::kUToF>(s.type);
        case C::kSToF: return FindWiden<C::kSToF>(s.type);
        default: return nullptr;
      }
    }
    if (s.type == B::kI1) return s.code == C::kTrunc ? FindLowBit(s.from) : nullptr;
    switch (s.code) {
      case C::kZExt: return CastInt<C::kZExt>(s);
      case C::kSExt: return CastInt<C::kSExt>(s);
      case C::kTrunc: return CastInt<C::kTrunc>(s);
      case C::kUToF: return CastFromInt<C::kUToF>(s);
      case C::kSToF: return CastFromInt<C::kSToF>(s);
      case C::kFToU: return CastToInt<C::kFToU>(s);
      case C::kFToS: return CastToInt<C::kFToS>(s);
      case C::kFExt:
        if (s.from == B::kF16) return CastTo<C::kFExt, B::kF16, B::kF32, B::kF64>(s.type);
        return s.from == B::kF32 ? CastTo<C::kFExt, B::kF32, B::kF64>(s.type) : nullptr;
      case C::kFTrunc:
        if (s.from == B::kF64) return CastTo<C::kFTrunc, B::kF64, B::kF16, B::kF32>(s.type);
        return s.from == B::kF32 ? CastTo<C::kFTrunc, B::kF32, B::kF16>(s.type) : nullptr;
      default: return nullptr;
    }
  }

  static StepFn FindMove(const ByteStep& s) {
    const std::uint32_t bytes = RegisterBytes(s.type) == 4 ? 0 : BytesOf(s.type);
    switch (s.code) {
      case ByteCode::kMove:
        switch (bytes) {
          case 0: return &RunMove<4>;
          case 1: return &RunMove<32>;
          case 2: return &RunMove<64>;
          case 4: return &RunMove<128>;
          case 8: return &RunMove<256>;
          default: return &RunMove<512>;
        }
      case ByteCode::kMerge:
        switch (bytes) {
          case 0: return &RunMergeBits;
          case 1: return &RunMerge<1>;
          case 2: return &RunMerge<2>;
          case 4: return &RunMerge<4>;
          case 8: return &RunMerge<8>;
          default: return &RunMerge<16>;
        }
      case ByteCode::kSelect:
        switch (bytes) {
          case 0: return &RunSelectBits;
          case 1: return &RunSelect<1>;
          case 2: return &RunSelect<2>;
          case 4: return &RunSelect<4>;
          case 8: return &RunSelect<8>;
          default: return &RunSelect<16>;
        }
      default: return nullptr;
    }
  }
  template <std::size_t whole>
  static StepFn FindPart(std::uint32_t part) {
    switch (part) {
      case 1: return &RunPart<whole, 1>;
      case 2: return &RunPart<whole, 2>;
      case 4: return &RunPart<whole, 4>;
      default: return &RunPart<whole, 8>;
    }
  }

  static StepFn Find(const ByteStep& s) {
    using C = ByteCode;
    if (StepFn found = FindMove(s)) return found;
    if (s.code == C::kPart) {
      switch (BytesOf(s.from)) {
        case 2: return FindPart<2>(BytesOf(s.type));
        case 4: return FindPart<4>(BytesOf(s.type));
        case 8: return FindPart<8>(BytesOf(s.type));
        default: return FindPart<16>(BytesOf(s.type));
      }
    }
    if (s.code >= C::kZExt && s.code <= C::kSToF) return FindCast(s);  // half is a type like others there
    if (s.type == ByteType::kF16) return FindHalf(s);
    if (s.type == ByteType::kI1)
      return FindBits<C::kAdd, C::kSub, C::kMul, C::kAnd, C::kOr, C::kXor, C::kUMin, C::kUMax, C::kSMin, C::kSMax,
                      C::kEq, C::kNe, C::kULt, C::kULe, C::kSLt, C::kSLe>(s);
    const StepFn found[] = {
        FindInt<PickBinary, C::kAdd, C::kSub, C::kMul, C::kUDiv, C::kSDiv, C::kURem, C::kSRem, C::kShl, C::kLShr,
                C::kAShr, C::kAnd, C::kOr, C::kXor, C::kUMin, C::kUMax, C::kSMin, C::kSMax, C::kUAddSat, C::kUSubSat,
                C::kSAddSat, C::kSSubSat>(s),
        FindInt<PickUnary, C::kIAbs, C::kPopCount, C::kCountLeading, C::kCountTrailing, C::kReverseBits,
                C::kReverseBytes>(s),
        FindInt<PickCompare, C::kEq, C::kNe, C::kULt, C::kULe, C::kSLt, C::kSLe>(s),
        FindInt<PickFunnel, C::kFShl, C::kFShr>(s),
        FindFloat<PickBinary, C::kFAdd, C::kFSub, C::kFMul, C::kFDiv, C::kCopySign>(s),
        FindFloat<PickUnary, C::kFNeg, C::kFAbs, C::kSqrt, C::kFloor, C::kCeil, C::kTruncate, C::kRint>(s),
        FindFloat<PickCompare, C::kFOEq, C::kFOLt, C::kFOLe, C::kFONe, C::kFOrd, C::kFUEq, C::kFULt, C::kFULe, C::kFUNe,
                  C::kFUno>(s),
        FindFloat<PickFma, C::kFma>(s),
        FindFloat<PickClass, C::kFClass>(s),
    };
    for (const StepFn one : found)
      if (one) return one;
    return nullptr;
  }
};

}  // namespace gridloom::exec
