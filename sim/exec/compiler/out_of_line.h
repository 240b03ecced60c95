// Functions beside a kernel's warp form, for what is asked for at so many places that it should not stand at each of
// them.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace gridloom::exec {

/// The function of this name in the module that `b` adds to, with the attributes of the function that it adds to. Where
/// it is new, `inside` stands at its begin; where it is there already, `inside` stays as it was.
llvm::Function* FunctionBeside(llvm::IRBuilder<>& b, const char* name, llvm::FunctionType* type,
                               llvm::IRBuilder<>& inside);

}  // namespace gridloom::exec
