// SPMD form -> bytecode (contract/bytecode.h), for the interpreter. Takes some hundredths of the time that machine code
// takes, since no instruction is selected and no warp form made.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"
#include "sim/exec/contract/bytecode.h"

namespace gridloom::exec {

struct BytecodeResult {
  std::string error;  ///< not empty: what the interpreter cannot run
  Bytecode code;
  bool needs_fiber = false;  ///< as KernelFacts has it
};

/// Bytecode of `kernel` and of every device function it needs. `spmd` is optimised (OptimizeSpmd); meetings and
/// give-ways are placed in it.
BytecodeResult MakeBytecode(SpmdModule& spmd, llvm::Function* kernel, const AddressTaken& address_taken,
                            const CompileOptions& options);

}  // namespace gridloom::exec
