// Sets of blocks in a warp's frame: an array of 64-bit words, a bit for each block. A question to a set of few words is
// a few instructions in line. One to a set of many is a call of a function that walks the words, so that a kernel of n
// blocks, which asks at each of them, is not n * n / 64 instructions.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace gridloom::exec {

/// Nonzero (i64) when a block in [from, to] is in the set.
llvm::Value* AnyBetween(llvm::IRBuilder<>& b, llvm::AllocaInst* set, unsigned from, unsigned to);

/// Number (i64) of the next block of the set after `current`, going round; `but_not` only when there is no other one.
llvm::Value* NextAfter(llvm::IRBuilder<>& b, llvm::AllocaInst* set, unsigned current, unsigned but_not);

/// Makes all elements of an array zero.
void ClearArray(llvm::IRBuilder<>& b, llvm::AllocaInst* array);

}  // namespace gridloom::exec
