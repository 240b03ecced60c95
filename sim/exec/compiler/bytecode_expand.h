// What LLVM's passes may put into a kernel and bytecode has no step for, in terms of what it has: intrinsics, and
// integers whose width is no type of PTX (the optimiser reverses the bits of an i4 where a program did so by hand).
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

namespace gridloom::exec {

/// The same value by plain instructions, at the builder's place; null for an intrinsic that stays as it is. `type` is
/// the result's.
llvm::Value* ExpandIntrinsic(llvm::IRBuilderBase& builder, llvm::Intrinsic::ID id,
                             llvm::ArrayRef<llvm::Value*> arguments, llvm::Type* type);

/// Rewrites all functions of a module before bytecode is made of it. What it does not know it leaves; bytecode refuses
/// that by name.
void ExpandForBytecode(llvm::Module& module);

}  // namespace gridloom::exec
