#pragma once

#include <llvm/IR/Function.h>

namespace gridloom::exec {

/// Makes SSA values of the registers of a function as lifted, which are slots in its entry block.
void PromoteRegisters(llvm::Function& function);

}  // namespace gridloom::exec
