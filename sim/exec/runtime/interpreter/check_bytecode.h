// Whether all numbers of bytecode are within their bounds: steps of their function, registers of its frame, constants
// of its own. Bytecode comes from files, too, and steps look at nothing before they act.
#pragma once

#include <cstddef>

#include "rewriter/support/result.h"
#include "sim/exec/contract/bytecode.h"

namespace gridloom::exec {

/// The largest register. Of what helpers take only the beginning is checked: so much lies behind all registers and
/// constants.
inline constexpr std::size_t kMostRegisterBytes = 512;

/// The error names what is out of bounds.
Status CheckBytecode(const Bytecode& code);

}  // namespace gridloom::exec
