// Approximations of f32 functions, for PTX's .approx instructions: at most a few ulp off.
#pragma once

#include <initializer_list>

#include "sim/exec/compiler/float_emit.h"

namespace gridloom::exec {

class FloatApprox {
 public:
  using Value = llvm::Value;

  FloatApprox(llvm::IRBuilder<>& ir, FloatEmitter& emit) : b_(ir), emit_(emit) {}

  Value* Exp2(Value* x);
  Value* Log2(Value* x);
  Value* SinCos(Value* x, bool cosine);
  Value* Tanh(Value* x);

 private:
  Value* Horner(Value* x, std::initializer_list<float> coefficients);

  llvm::IRBuilder<>& b_;
  FloatEmitter& emit_;
};

}  // namespace gridloom::exec
