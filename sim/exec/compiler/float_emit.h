// Floating-point building blocks as scalar IR: rounding modes, flushing, min/max, approximations. No libm calls, no
// fast-math flags, no use of the host's rounding mode; every function vectorises.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cstdint>

namespace gridloom::exec {

/// Rounding of a result; kNa: to nearest, ties away from zero.
enum class Rounding : std::uint8_t { kRn, kRz, kRm, kRp, kNa };

/// A real number known as `high`, an f64, plus a rest too small to reach a neighbouring f64: `rest` has its sign (an
/// f64, 0 when `high` is exact).
struct Exact {
  llvm::Value* high;
  llvm::Value* rest;
};

class FloatEmitter {
 public:
  /// `portable`: for CPUs without SSE4.1 and F16C, rounds to integral and converts f16 in plain integer and float
  /// steps.
  FloatEmitter(llvm::IRBuilder<>& ir, bool portable) : b_(ir), portable_(portable) {}
  using Value = llvm::Value;

  // Sums, products and quotients of f32 operands before rounding. `down` matters to the sign of an exact zero (rm: -0).
  Exact Add(Value* a, Value* b, bool down);
  Exact Mul(Value* a, Value* b);
  Exact Fma(Value* a, Value* b, Value* c, bool down);
  Exact Div(Value* a, Value* b);
  Exact Sqrt(Value* a);
  /// The one rounding, to f32.
  Value* Round(Exact exact, Rounding rounding);
  /// The one rounding, to f64; `exact.high` is the nearest one.
  Value* RoundF64(Exact exact, Rounding rounding);
  /// To f32 with the last bit set whenever inexact: rounding that again to at most 22 bits is rounding once.
  Value* RoundToOdd(Exact exact);
  /// The sum of two f32, rounded to f32 in the same way.
  Value* AddToOdd(Value* a, Value* b);

  /// Subnormal f32 or f64 -> zero of the same sign. For f32 a mark that ExpandFlushes replaces.
  Value* Flush(Value* x);
  /// Into [0, 1]; NaN becomes +0.
  Value* Saturate(Value* x);
  /// PTX min and max: -0 < +0; a NaN loses unless `propagate`; all NaN: canonical NaN, in f64 the second one, made
  /// quiet.
  Value* MinMax(Value* a, Value* b, bool max, bool propagate);
  /// An infinity or NaN stays; the next number up or down otherwise, as an integer step of the bits.
  Value* Next(Value* x, bool up);
  Value* NextBits(Value* bits, bool up);

  // To integral values; ties to even, towards zero, down, up.
  Value* RoundNearest(Value* x);
  Value* Truncate(Value* x);
  Value* Floor(Value* x);
  Value* Ceil(Value* x);

  /// With one rounding, to nearest.
  Value* FmaF(Value* a, Value* b, Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  }
  Value* IsNaN(Value* x) { return b_.CreateFCmpUNO(x, x); }
  Value* Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* Bits(Value* x) { return b_.CreateBitCast(x, b_.getIntNTy(x->getType()->getScalarSizeInBits())); }
  Value* F32(float value) { return llvm::ConstantFP::get(b_.getFloatTy(), value); }
  Value* F64(double value) { return llvm::ConstantFP::get(b_.getDoubleTy(), value); }
  Value* FromBits32(std::uint32_t bits) { return b_.CreateBitCast(b_.getInt32(bits), b_.getFloatTy()); }

  // Conversions between f32 and 16-bit formats given as i16.
  Value* HalfToFloat(Value* half);
  Value* FloatToHalf(Value* x);  ///< to nearest even; NaN -> 0x7fff
  Value* BFloatToFloat(Value* bfloat);
  Value* FloatToBFloat(Value* x);  ///< to nearest even; NaN -> 0x7fff

 private:
  Exact Sum(Value* a, Value* b, bool down);

  llvm::IRBuilder<>& b_;
  bool portable_;
};

}  // namespace gridloom::exec
