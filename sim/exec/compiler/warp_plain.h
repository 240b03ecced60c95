// Plain instructions in their form for a warp: on a scalar, on the scalar of lanes in a pattern, or on all lanes.
#pragma once

#include "sim/exec/compiler/warp_builder.h"

namespace gridloom::exec {

class WarpValues;

class PlainEmitter : Emitter {
 public:
  PlainEmitter(WarpBuilder& w, WarpValues& values) : Emitter(w), values_(values) {}

  void EmitPlain(llvm::Instruction& instruction);
  void EmitRoundedF64(llvm::CallInst& call, std::uint64_t imm);  // warp_reciprocal.cpp

 private:
  Value* EmitScalar(llvm::Instruction& instruction);
  Value* EmitAffineBase(llvm::Instruction& instruction, const Shape& shape);
  Value* EmitLanes(llvm::Instruction& instruction);
  Value* EmitLanesBinary(llvm::BinaryOperator& op);
  Value* EmitDivision(unsigned opcode, Value* a, Value* b);
  Value* EmitReciprocal(Value* x);
  Value* EmitLanesIntrinsic(llvm::CallInst& call);
  Value* EmitSmallVectorOp(llvm::Instruction& instruction);

  WarpValues& values_;
};

}  // namespace gridloom::exec
