// Where a program's things lie: numbers of module variables and functions, offsets of shared and local variables. Pure
// functions of the module, used by the runtime (without LLVM) and by the compiler alike, so that both agree.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

/// Numbers of .global/.const variables (LaunchCtx::symbols) and of functions (device function pointers).
struct SymbolTable {
  std::vector<const ptx::Variable*> variables;  ///< module scope, by Variable::order, then as they lie
  std::vector<const ptx::Function*> functions;  ///< definitions, by Function::order, then as they lie
  std::unordered_map<const ptx::Variable*, std::uint32_t> variable_index;
  std::unordered_map<const ptx::Function*, std::uint32_t> function_index;  ///< prototypes map to their definition
};
SymbolTable NumberSymbols(const ptx::Module& module);

/// A device function pointer as programs see it: never a valid data address, never null.
constexpr std::uint64_t FunctionPointer(std::uint32_t index) { return (std::uint64_t{index} + 1) * 16; }

/// Numbers of a kernel's instructions, and after them those of all device functions, in source order: what records name.
struct InstructionNumbers {
  std::vector<const ptx::Instruction*> instructions;
  std::unordered_map<const ptx::Function*, std::uint32_t> first;  ///< of each function's first instruction
};
/// Whether what follows the instruction begins a block of its own, as labels do.
bool EndsBlock(const ptx::Instruction& instruction);
InstructionNumbers NumberInstructions(const ptx::Module& module, const ptx::Function& kernel);

/// Shared variables a kernel can reach (itself, its callees, address-taken functions when it calls indirectly), each at
/// its alignment in source order. Dynamic shared memory (.extern .shared) starts at `dynamic_offset`.
struct SharedLayout {
  std::unordered_map<const ptx::Variable*, std::uint32_t> offsets;
  std::uint32_t static_bytes = 0;
  std::uint32_t dynamic_offset = 0;  ///< static_bytes rounded up to 16 or the largest alignment asked for
};
SharedLayout LayoutShared(const ptx::Module& module, const ptx::Function& kernel);

/// .local variables of one function, at their alignment from 0. Frames of callees follow the caller's.
struct LocalLayout {
  std::unordered_map<const ptx::Variable*, std::uint32_t> offsets;
  std::uint32_t bytes = 0;
};
LocalLayout LayoutLocal(const ptx::Function& function);

}  // namespace gridloom::exec
