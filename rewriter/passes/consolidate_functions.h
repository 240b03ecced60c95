// The functions that `consolidate` has a module call in the place of those of the device runtime library: those of
// rewriter/kernels/consolidate.cu, and for each kernel two that call them with what they have to know of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewriter/passes/consolidate.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// Bytes of a slot (kernels/launch_records.h) for launches of a kernel, its parameters among them.
std::uint32_t SlotBytes(const ptx::Function& kernel);

/// Names of the functions for launches of one kernel.
struct LaunchFunctions {
  std::string plain;   ///< (buffer, stream): launches the kernel itself
  std::string launch;  ///< (buffer, stream): consolidated, unless the handle is another stream's
};
LaunchFunctions LaunchFunctionsOf(const ptx::Function& kernel);

/// (kernel, grid, block, dynamic shared bytes, slot): what becomes of cudaGetParameterBufferV2.
inline constexpr std::string_view kSlotFunction = "gridloom_consolidated_buffer";

/// A kernel, and that which does many launches of it.
struct MergedKernel {
  const ptx::Function* kernel = nullptr;
  const ptx::Function* merged = nullptr;
};

/// What the functions of one kernel are made of.
struct LaunchText {
  const ptx::Function* kernel = nullptr;
  const ptx::Function* merged = nullptr;
  unsigned sm = 0;
  ConsolidateScope scope = ConsolidateScope::kWarp;
  std::uint32_t threshold = 0;  ///< the launching thread does launches of fewer threads itself
};

/// Adds those of consolidate.cu that a module needs. `prefix`: of the device runtime library's names: "__cudaCDP2".
void AddLaunchFunctions(ptx::Module& module, std::string_view prefix, const ConsolidateOptions& options);
/// The functions of a kernel. Declarations, to be added before anything uses them.
std::string DeclarationsText(const ptx::Function& kernel, ConsolidateScope scope);
std::string DefinitionsText(const LaunchText& of);

}  // namespace gridloom::passes
