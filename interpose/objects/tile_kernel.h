// Kernels of CUDA Tile, as tileiras compiles them to PTX.
#pragma once

#include "rewriter/ptx/ir.h"

namespace gridloom::session {

/// Its PTX has `.language 7` (tileiras 13.4). Such a kernel is launched with blocks of one thread, which stand for as
/// many as .reqntid says (CUDA Programming Guide, Writing Tile Kernels), and its static shared memory may be all that
/// the device has.
inline bool IsTileKernel(const ptx::Function& function) {
  constexpr std::uint64_t kTile = 7;
  const ptx::FunctionDirective* const language = function.FindDirective("language");
  return language != nullptr && !language->values.empty() && language->values[0] == kTile;
}

}  // namespace gridloom::session
