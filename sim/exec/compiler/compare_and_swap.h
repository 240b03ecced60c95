// Reads that belong to a compare-and-swap.
#pragma once

#include <llvm/IR/Instructions.h>

#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// A read of what a compare-and-swap expects: the loop that the programming guide writes around one begins with it, and
/// what it reads too early the loop mends. Under memcheck it is no race.
bool BeginsCompareAndSwap(const llvm::CallInst& load, const SpmdModule& spmd);

}  // namespace gridloom::exec
