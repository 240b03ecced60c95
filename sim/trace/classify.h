// What a PTX instruction is to the timing model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rewriter/ptx/ir.h"
#include "sim/trace/kernel_trace.h"

namespace gridloom::trace {

/// What an operand always is, if that is known.
using ConstantOf = std::function<std::optional<std::uint64_t>(const ptx::Operand& operand)>;

/// Entries without registers, in the order of execution. Never empty. `constant` is asked for barriers' numbers and
/// counts of threads.
std::vector<Instruction> Classify(const ptx::Instruction& instruction, const ConstantOf& constant);

}  // namespace gridloom::trace
