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

/// Numbers of a kernel's instructions, and after them those of all device functions, in source order: what records
/// name.
struct InstructionNumbers {
  std::vector<const ptx::Instruction*> instructions;
  std::unordered_map<const ptx::Function*, std::uint32_t> first;  ///< of each function's first instruction
};
/// Whether what follows the instruction begins a block of its own, as labels do.
bool EndsBlock(const ptx::Instruction& instruction);
InstructionNumbers NumberInstructions(const ptx::Module& module, const ptx::Function& kernel);

/// Shared memory of a CTA that belongs to the toolkit: cooperative groups keep their barriers there. Kernels that read
/// `%reserved_smem_offset_*` have it in front of their own memory, as from compute capability 9.0 on; to all others it
/// is only counted
/// (`shared_reserved_bytes` of the device).
inline constexpr std::uint32_t kReservedSharedBytes = 1024;
inline constexpr std::uint32_t kReservedSharedOffsets[] = {
    0, 64};  ///< of `%reserved_smem_offset_0` and `_1`, which has 288 bytes at least

/// Global memory that each running CTA of the kernel has for itself (.minperctamemory): a multiple of 1024 bytes; 0:
/// none.
std::uint32_t OwnMemoryBytes(const ptx::Function& kernel);

/// Whether it names the shared memory that a launch asks for: an array without a size. One of a size is static memory,
/// also with .extern when nobody defines it: ptxas ignores that word then.
bool IsDynamicShared(const ptx::Variable& variable);

/// Shared variables a kernel can reach (itself, its callees, address-taken functions when it calls indirectly), each at
/// its alignment in source order. Dynamic shared memory starts at `dynamic_offset`.
struct SharedLayout {
  std::unordered_map<const ptx::Variable*, std::uint32_t> offsets;
  std::uint32_t reserved_bytes = 0;  ///< in front of all variables: 0 or kReservedSharedBytes
  std::uint32_t static_end = 0;      ///< of the static variables, and of reserved memory
  std::uint32_t static_bytes() const { return static_end - reserved_bytes; }  ///< as a program is told
  std::uint32_t dynamic_offset = 0;  ///< static_end rounded up to 16 or the largest alignment asked for
};
SharedLayout LayoutShared(const ptx::Module& module, const ptx::Function& kernel);

/// .local variables of one function, at their alignment from 0. Frames of callees follow the caller's.
struct LocalLayout {
  std::unordered_map<const ptx::Variable*, std::uint32_t> offsets;
  std::uint32_t bytes = 0;
};
LocalLayout LayoutLocal(const ptx::Function& function);

}  // namespace gridloom::exec
