// atom and red (PTX ISA 9.7.13): every operation on every type. Global memory takes the host's own atomic instructions;
// a CTA, and a cluster, stays on one host thread, so shared memory needs none.
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "sim/exec/runtime/fault.h"
#include "sim/exec/runtime/half.h"
#include "sim/exec/runtime/helpers.h"

namespace gridloom::exec {
namespace {

struct Bits128 {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Bits128&, const Bits128&) = default;
};

// Small floats are kept as their bits; these types say how to read them.
struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};
struct Half2 {
  std::uint32_t bits;
};
struct Bfloat2 {
  std::uint32_t bits;
};

/// The integer a type is compared and swapped as.
template <typename T>
using Container =
    std::conditional_t<std::is_same_v<T, Bits128>, Bits128,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <typename T>
constexpr bool kIsSmallFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, Bfloat> || std::is_same_v<T, Half2> || std::is_same_v<T, Bfloat2>;
template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsSmallFloat<T>;

/// The NaN that an f32 result is (lift_nan.h).
constexpr float kNaN = std::bit_cast<float>(0x7fffffffu);

/// Of two NaNs in f64 the first is passed on, made quiet.
float Add(float a, float b) {
  const float sum = a + b;
  return std::isnan(sum) ? kNaN : sum;
}
double Add(double a, double b) { return a + (std::isnan(a) ? a : b); }

/// IEEE minNum/maxNum with -0 below +0.
template <typename T>
T Minimum(T a, T b) {
  if (std::isnan(a)) return std::isnan(b) ? T{kNaN} : b;
  if (std::isnan(b)) return a;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <typename T>
T Maximum(T a, T b) {
  if (std::isnan(a)) return std::isnan(b) ? T{kNaN} : b;
  if (std::isnan(b)) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

template <AtomicOp op, typename T>
T ApplyFloat(T a, T b) {
  if constexpr (op == AtomicOp::kFAdd) return Add(a, b);
  else if constexpr (op == AtomicOp::kFMin) return Minimum(a, b);
  else return Maximum(a, b);
}

float Widen(Half value) { return HalfToFloat(value.bits); }
float Widen(Bfloat value) { return BfloatToFloat(value.bits); }
// One rounding from the exact sum or from an operand: a float holds the sum of two halves or bfloats well enough.
void Narrow(float value, Half& out) { out.bits = FloatToHalf(value); }
void Narrow(float value, Bfloat& out) { out.bits = FloatToBfloat(value); }

template <AtomicOp op, typename T>
T ApplySmall(T a, T b) {
  T out;
  Narrow(ApplyFloat<op>(Widen(a), Widen(b)), out);
  return out;
}

template <AtomicOp op, typename Element, typename Pair>
Pair ApplyPair(Pair a, Pair b) {
  const auto low = [](Pair p) { return Element{static_cast<std::uint16_t>(p.bits)}; };
  const auto high = [](Pair p) { return Element{static_cast<std::uint16_t>(p.bits >> 16)}; };
  const Element l = ApplySmall<op>(low(a), low(b)), h = ApplySmall<op>(high(a), high(b));
  return {std::uint32_t{l.bits} | std::uint32_t{h.bits} << 16};
}

template <AtomicOp op, typename T>
constexpr bool kValid = (op == AtomicOp::kExch || op == AtomicOp::kCas) ? true
                        : (op == AtomicOp::kFAdd || op == AtomicOp::kFMin || op == AtomicOp::kFMax)
                            ? kIsFloat<T>
                            : std::is_integral_v<T>;

/// What memory holds afterwards.
template <AtomicOp op, typename T>
T Apply(T old, T b, T c) {
  if constexpr (op == AtomicOp::kExch) {
    return b;
  } else if constexpr (op == AtomicOp::kCas) {
    return std::bit_cast<Container<T>>(old) == std::bit_cast<Container<T>>(b) ? c : old;
  } else if constexpr (std::is_same_v<T, Half2>) {
    return ApplyPair<op, Half>(old, b);
  } else if constexpr (std::is_same_v<T, Bfloat2>) {
    return ApplyPair<op, Bfloat>(old, b);
  } else if constexpr (kIsSmallFloat<T>) {
    return ApplySmall<op>(old, b);
  } else if constexpr (kIsFloat<T>) {
    return ApplyFloat<op>(old, b);
  } else {
    using Signed = std::make_signed_t<T>;
    const auto signed_old = static_cast<Signed>(old);
    const auto signed_b = static_cast<Signed>(b);
    switch (op) {
      case AtomicOp::kAdd: return static_cast<T>(old + b);
      case AtomicOp::kMin: return signed_old < signed_b ? old : b;
      case AtomicOp::kMax: return signed_old > signed_b ? old : b;
      case AtomicOp::kUMin: return old < b ? old : b;
      case AtomicOp::kUMax: return old > b ? old : b;
      case AtomicOp::kInc: return old >= b ? T{0} : static_cast<T>(old + 1);
      case AtomicOp::kDec: return old == 0 || old > b ? b : static_cast<T>(old - 1);
      case AtomicOp::kAnd: return old & b;
      case AtomicOp::kOr: return old | b;
      case AtomicOp::kXor: return old ^ b;
      default: return old;
    }
  }
}

Bits128 CompareAndSwap128(Bits128* at, Bits128 expected, Bits128 desired) {
#if defined(__x86_64__)
  __asm__ __volatile__("lock cmpxchg16b %2"
                       : "+a"(expected.low), "+d"(expected.high), "+m"(*at)
                       : "b"(desired.low), "c"(desired.high)
                       : "cc", "memory");
  return expected;
#else
  __extension__ typedef unsigned __int128 Wide;
  const auto found = __sync_val_compare_and_swap(reinterpret_cast<Wide*>(at), std::bit_cast<Wide>(expected),
                                                 std::bit_cast<Wide>(desired));
  return std::bit_cast<Bits128>(found);
#endif
}

/// Atomic on every host thread. Returns the old value.
template <AtomicOp op, typename T>
T Locked(std::uint8_t* at, T b, T c) {
  using Word = Container<T>;
  if constexpr (std::is_same_v<T, Bits128>) {
    auto* const cell = reinterpret_cast<Bits128*>(at);
    Bits128 old = op == AtomicOp::kCas ? b : CompareAndSwap128(cell, {}, {});
    for (;;) {
      const Bits128 found = CompareAndSwap128(cell, old, Apply<op>(old, b, c));
      if (found == old || op == AtomicOp::kCas) return found;
      old = found;
    }
  } else {
    std::atomic_ref<Word> cell(*reinterpret_cast<Word*>(at));
    if constexpr (op == AtomicOp::kAdd) return static_cast<T>(cell.fetch_add(b));
    else if constexpr (op == AtomicOp::kAnd) return static_cast<T>(cell.fetch_and(b));
    else if constexpr (op == AtomicOp::kOr) return static_cast<T>(cell.fetch_or(b));
    else if constexpr (op == AtomicOp::kXor) return static_cast<T>(cell.fetch_xor(b));
    else if constexpr (op == AtomicOp::kExch) return std::bit_cast<T>(cell.exchange(std::bit_cast<Word>(b)));
    else {
      Word old = cell.load(std::memory_order_relaxed);
      // The write happens even when nothing changes: an atomic is a store to whoever looks (and to a read-only page).
      while (!cell.compare_exchange_weak(old, std::bit_cast<Word>(Apply<op>(std::bit_cast<T>(old), b, c)))) {
      }
      return std::bit_cast<T>(old);
    }
  }
}

float Flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }

/// As Locked, with subnormal numbers as zeros if it adds f32. Nothing else has such a form.
template <AtomicOp op, typename T>
T LockedFlushing(std::uint8_t* at, T b, T c) {
  return Locked<op>(at, b, c);
}
template <>
float LockedFlushing<AtomicOp::kFAdd, float>(std::uint8_t* at, float b, float) {
  std::atomic_ref<std::uint32_t> cell(*reinterpret_cast<std::uint32_t*>(at));
  std::uint32_t old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(
      old, std::bit_cast<std::uint32_t>(Flush(Add(Flush(std::bit_cast<float>(old)), Flush(b)))))) {
  }
  return std::bit_cast<float>(old);
}

struct Call {
  Warp& warp;
  std::uint32_t mask, line;
  Space space;
  AtomicFlush flush;
  void* const* args;
  bool known;  ///< the places need no check
};

template <AtomicOp op, typename T>
void Run(const Call& call) {
  auto* const out = static_cast<std::uint8_t*>(call.args[0]);
  const auto* const addresses = static_cast<const std::uint64_t*>(call.args[1]);
  const auto* const b_values = static_cast<const std::uint8_t*>(call.args[2]);
  const auto* const c_values = static_cast<const std::uint8_t*>(call.args[3]);
  const CtaCtx& cta = call.warp.cta->ctx;
  LaneAccess access(call.warp, call.line);
  ForEachLane(call.mask, [&](std::uint32_t lane) {
    std::uint8_t* const at = call.known ? reinterpret_cast<std::uint8_t*>(addresses[lane])
                                        : CheckedAddress(call.warp, lane, call.line, call.space, addresses[lane],
                                                         sizeof(T), AccessKind::kAtomic);
    access.At(lane);
    T b, c;
    std::memcpy(&b, b_values + lane * sizeof(T), sizeof b);
    std::memcpy(&c, c_values + lane * sizeof(T), sizeof c);
    T old;
    if (addresses[lane] - cta.shared_base < cta.shared_bytes) {
      std::memcpy(&old, at, sizeof old);
      const T changed = Apply<op>(old, b, c);
      std::memcpy(at, &changed, sizeof changed);
    } else {
      old = call.flush == AtomicFlush::kOutsideShared ? LockedFlushing<op>(at, b, c) : Locked<op>(at, b, c);
    }
    if (out) std::memcpy(out + lane * sizeof(T), &old, sizeof old);
  });
}

using RunFn = void (*)(const Call&);
constexpr std::size_t kOps = static_cast<std::size_t>(AtomicOp::kFMax) + 1;
constexpr std::size_t kTypes = static_cast<std::size_t>(AtomicType::kF64) + 1;

template <AtomicOp op, typename T>
constexpr RunFn Entry() {
  if constexpr (kValid<op, T>) return &Run<op, T>;
  else return nullptr;
}

template <std::size_t op>
constexpr void FillRow(RunFn (&row)[kTypes]) {
  constexpr auto o = static_cast<AtomicOp>(op);
  const RunFn entries[kTypes] = {Entry<o, std::uint16_t>(), Entry<o, std::uint32_t>(), Entry<o, std::uint64_t>(),
                                 Entry<o, Bits128>(),       Entry<o, Half>(),          Entry<o, Bfloat>(),
                                 Entry<o, Half2>(),         Entry<o, Bfloat2>(),       Entry<o, float>(),
                                 Entry<o, double>()};
  for (std::size_t i = 0; i < kTypes; ++i) row[i] = entries[i];
}

struct Table {
  RunFn run[kOps][kTypes] = {};
};
template <std::size_t... op>
constexpr Table MakeTable(std::index_sequence<op...>) {
  Table table;
  (FillRow<op>(table.run[op]), ...);
  return table;
}
constexpr Table kTable = MakeTable(std::make_index_sequence<kOps>{});

std::uint32_t BytesOf(AtomicType type) {
  switch (type) {
    case AtomicType::kI16:
    case AtomicType::kF16:
    case AtomicType::kBF16: return 2;
    case AtomicType::kI64:
    case AtomicType::kF64: return 8;
    case AtomicType::kI128: return 16;
    default: return 4;
  }
}

RunFn FnOf(Warp& warp, std::uint32_t line, std::uint64_t imm) {
  const auto op = static_cast<std::size_t>(imm & 0xff);
  const auto type = static_cast<std::size_t>(imm >> 8 & 0xff);
  const RunFn run = op < kOps && type < kTypes ? kTable.run[op][type] : nullptr;
  if (!run)
    RaiseFault(warp, FaultKind::kIllegalInstruction, kNoLane, 0, line,
               "atomic operation that does not exist for its type");
  return run;
}

Call CallOf(Warp& warp, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args, bool known) {
  return {warp, mask, line, static_cast<Space>(imm >> 24 & 0xff), FlushOfAtomic(imm), args, known};
}

}  // namespace

void Helper_kAtomic(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  FnOf(warp, line, imm)(CallOf(warp, mask, line, imm, args, false));
  EndOfAccesses(warp, mask, static_cast<std::uint32_t>(imm >> 32), static_cast<const std::uint64_t*>(args[1]),
                BytesOf(static_cast<AtomicType>(imm >> 8 & 0xff)), true);
}

void RunKnownAtomic(WarpCtx* ctx, std::uint32_t mask, std::uint32_t line, std::uint64_t imm, void* const* args) {
  Warp& warp = WarpOf(ctx);
  FnOf(warp, line, imm)(CallOf(warp, mask, line, imm, args, true));
}

}  // namespace gridloom::exec
