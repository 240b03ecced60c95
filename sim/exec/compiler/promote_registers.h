#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

namespace gridloom::exec {

/// Makes SSA values of the registers of a function as lifted, which are slots in its entry block.
void PromoteRegisters(llvm::Function& function);
/// The same for the functions that have blocks of many thousand instructions: LLVM's own passes take seconds for them.
void PromoteRegistersOfLongBlocks(llvm::Module& module);

}  // namespace gridloom::exec
