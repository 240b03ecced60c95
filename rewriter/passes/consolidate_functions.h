// The functions that `consolidate` has a module call in the place of those of the device runtime library.
//
// A parameter buffer is memory of the thread (a slot): u32 grid x, y, z, dynamic shared bytes, block x, y, z, 0; then
// the parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rewriter/passes/consolidate.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

inline constexpr std::uint32_t kSlotHead = 32;  ///< bytes in front of the parameters

/// Bytes of a slot for launches of a kernel.
std::uint32_t SlotBytes(const ptx::Function& kernel);

/// Names of the functions for launches of one kernel.
struct LaunchFunctions {
  std::string plain;   ///< (buffer, stream): launches the kernel itself
  std::string launch;  ///< (buffer, stream): consolidated, unless the handle is another stream's
};
LaunchFunctions LaunchFunctionsOf(const ptx::Function& kernel);

/// (kernel, grid, block, dynamic shared bytes, slot): what becomes of cudaGetParameterBufferV2.
inline constexpr std::string_view kSlotFunction = "gridloom_consolidated_buffer";

/// What the functions of one kernel are made of.
struct LaunchText {
  const ptx::Function* kernel = nullptr;
  const ptx::Function* merged = nullptr;
  std::string prefix;  ///< of the device runtime library's names: "__cudaCDP2"
  unsigned sm = 0;
  ConsolidateScope scope = ConsolidateScope::kWarp;
  std::uint32_t threshold = 0;  ///< the launching thread does launches of fewer threads itself
};

/// Declarations, to be added before anything uses them.
std::string DeclarationsText(const ptx::Function& kernel, std::string_view prefix, ConsolidateScope scope);
std::string DefinitionsText(const LaunchText& of);
std::string SlotFunctionText();

}  // namespace gridloom::passes
