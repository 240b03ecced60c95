// What memory a kernel's code may access.
#pragma once

#include <algorithm>

#include "sim/trace/kernel_trace.h"

namespace gridloom::timing {

/// Whether it accesses memory that others may write: any but shared and local memory.
inline bool AccessesMemory(const trace::KernelCode& code) {
  return std::ranges::any_of(code.instructions, [](const trace::Instruction& instruction) {
    return instruction.has_access() && instruction.space != trace::Space::kShared &&
           instruction.space != trace::Space::kLocal;
  });
}

}  // namespace gridloom::timing
