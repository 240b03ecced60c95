// Floating-point values of all types as lanes to compute with: a packed value as its registers hold it, taken apart and
// put together. Half- width types compute in f32, where one operation on them is exact or keeps enough bits that
// rounding the result once more cannot change it.
#pragma once

#include <vector>

#include "rewriter/ptx/types.h"
#include "sim/exec/compiler/float_emit.h"

namespace gridloom::exec {

/// What an instruction does to its operands and its result besides computing.
struct FloatModifiers {
  bool ftz = false, sat = false, relu = false;
};

class FloatLanes {
 public:
  using Value = llvm::Value;
  using Lanes = std::vector<Value*>;

  FloatLanes(llvm::IRBuilder<>& builder, FloatEmitter& emit) : b_(builder), emit_(emit) {}

  /// Lanes of an integer of whole lanes, or a float as its bits; the first one is lowest.
  Lanes Split(Value* packed, unsigned lanes);
  Value* Join(const Lanes& lanes, llvm::Type* type);

  /// Lanes of a value of `type` as f32 (f16, bf16, f32) or f64; `ftz` flushes subnormal ones.
  Lanes Unpack(Value* packed, ptx::ScalarType type, bool ftz);
  /// Applies .sat, .relu and .ftz to every lane and rounds half-width types; `ir_type` is what registers of `type`
  /// hold.
  Value* Pack(Lanes lanes, ptx::ScalarType type, FloatModifiers modifiers, llvm::Type* ir_type);
  /// Subnormal f16 -> zero of the same sign.
  Value* FlushHalf(Value* half);

  /// a * b + c of lanes of `type`, to nearest and rounded once by Pack.
  Value* Fma(ptx::ScalarType type, Value* a, Value* b, Value* c);
  /// Changes the sign bit of all lanes, of NaNs too.
  Value* Negate(Value* packed, ptx::ScalarType type, bool ftz);
  Value* Absolute(Value* packed, ptx::ScalarType type, bool ftz);

 private:
  Value* ChangeSigns(Value* packed, ptx::ScalarType type, bool ftz, bool clear);

  llvm::IRBuilder<>& b_;
  FloatEmitter& emit_;
};

}  // namespace gridloom::exec
