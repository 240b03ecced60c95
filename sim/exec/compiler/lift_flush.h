// Flushing of subnormal f32 values. An .ftz instruction flushes what it reads and what it writes, and most of what it
// reads was written by another one: the lifter marks every flush as a call of `gl.flush.f32`, and once registers are
// SSA values the calls whose operand cannot be subnormal go away; the rest becomes plain IR.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace gridloom::exec {

/// Flush of an f32 as a mark, to be expanded by ExpandFlushes.
llvm::Value* MarkFlush(llvm::IRBuilder<>& builder, llvm::Value* x);

/// Removes redundant marks of a module and expands the others.
///   before:  %s = call float @gl.flush.f32(float %sum);  %t = call float @gl.flush.f32(float %s)
///   after:   %s = bits of %sum & exponent == 0 ? bits & sign : bits;  %t is %s
void ExpandFlushes(llvm::Module& module);

}  // namespace gridloom::exec
