// What a PTX instruction is to the timing model.
#pragma once

#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// Entries without registers, in the order of execution. Never empty.
std::vector<Instruction> Classify(const ptx::Instruction& instruction);

}  // namespace gridloom::trace
