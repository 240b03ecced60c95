// Fused multiply-adds out of separate instructions. "mul/add sequences with no rounding modifiers may be optimized to
// use fused-multiply-add instructions on the target device" (PTX ISA, add, sub, mul), and ptxas does it unless told
// -fmad=false: a program's results on a GPU are those of the fused instructions. So the lifter marks each add, sub, mul
// and neg that may take part as a call of `gl.float…`; once registers are SSA values, FuseProducts decides as ptxas
// does, and the marks become plain IR. What it decides:
//  * add and sub without a rounding modifier fuse with a product of the same type and .ftz that has no rounding
//    modifier and no .sat; also through mov and neg (not neg.bf16x2), not through abs.
//  * A product is fused with all that use it, or not at all: it stays where anything else reads it.
//  * Product and sum are in one basic block. Guards of arithmetic are no branches; guards of everything else are, as
//    are calls, fences, and divisions and roots that ptxas expands to code with branches (MarkBranches).
//  * What is constant in f32 or f64 is computed first, each operation rounded by itself: a product of two constants is
//    a constant. In f16 and bf16 it is an operation as any other.
//  * Of two products one is fused: the one that no other instruction reads; among equals the first operand. The other
//    one stays.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "rewriter/ptx/opcode.h"
#include "rewriter/ptx/types.h"
#include "sim/exec/compiler/float_lanes.h"

namespace gridloom::exec {

/// A marked instruction: kAdd, kSub, kMul or kNeg.
struct FloatOperation {
  ptx::Opcode opcode = ptx::Opcode::kAdd;
  ptx::ScalarType type = ptx::ScalarType::kF32;
  FloatModifiers modifiers;
};

/// The result of an instruction as a mark, to be expanded by FuseProducts. Inputs are packed values as registers hold
/// them.
llvm::Value* MarkFloat(llvm::IRBuilder<>& builder, const FloatOperation& operation,
                       llvm::ArrayRef<llvm::Value*> inputs);

/// The current instruction is one across which ptxas fuses nothing: what comes before and after lies in different basic
/// blocks for it.
void MarkBranches(llvm::IRBuilder<>& builder);

/// Expands all marks of a module, products and sums together where ptxas fuses them. `portable` as in FloatEmitter.
///   before:  %m = call float @gl.float.2.32(i32 mul.f32, float %a, float %b);
///            %s = call float @gl.float.2.32(i32 sub.f32, float %c, float %m)
///   after:   %n = fneg float %a;  %s = call float @llvm.fma.f32(float %n, float %b, float %c)
void FuseProducts(llvm::Module& module, bool portable);

}  // namespace gridloom::exec
