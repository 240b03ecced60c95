// Bytecode as the kernel cache keeps it: numbers of seven bits a byte, in the order of bytecode.h. What reads back is
// of the right form; whether its numbers are within their bounds InterpretedCode::Load says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/exec/contract/bytecode.h"

namespace gridloom::exec {

std::string WriteBytecode(const Bytecode& code);
std::optional<Bytecode> ReadBytecode(std::string_view text);

}  // namespace gridloom::exec
