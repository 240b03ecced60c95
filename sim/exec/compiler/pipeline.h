// Pass lists and code generation around the vectoriser.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/exec/compiler/compiler.h"
#include "sim/exec/compiler/spmd.h"

namespace gridloom::exec {

/// The host's target machine, or one restricted to `cpu` ("x86-64", "x86-64-v3", "x86-64-v4"); null with `error` set.
std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const std::string& cpu, std::string& error);

/// Sets data layout, triple and the function attributes (CPU, features, vector width) code generation needs.
void SetTarget(llvm::Module& module, const llvm::TargetMachine& machine);
void SetFunctionTarget(llvm::Function& function, const llvm::TargetMachine& machine);

/// Optimises the SPMD form and brings its control flow into the shape the vectoriser needs: no switches, reducible,
/// loops with one latch that ends in an unconditional branch, LCSSA, barriers at block ends.
/// `address_taken` functions are kept although nothing in the module refers to them.
void OptimizeSpmd(SpmdModule& spmd, const AddressTaken& address_taken, const CompileOptions& options,
                  llvm::TargetMachine& machine);

/// Optimises the warp form. `turns`: of warps that take turns (turns.h). False: their frames would be too large.
[[nodiscard]] bool OptimizeWarp(llvm::Module& module, const CompileOptions& options, bool turns,
                                llvm::TargetMachine& machine);

/// Relocatable object of the module.
std::vector<std::uint8_t> EmitObject(llvm::Module& module, llvm::TargetMachine& machine, std::string& error);

/// Bytes of stack that the functions of an object made by EmitObject take together, each once.
std::uint32_t FrameBytes(const std::vector<std::uint8_t>& object);

}  // namespace gridloom::exec
