// The source line behind a PTX line, where the program was built with -lineinfo or -G.
#pragma once

#include <cstdint>
#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

/// "kernel.cu:12", from the last .loc before a line of a function's body; empty when there is none. A linked module has lines
/// of several texts: `preferred` is looked at first, then every other function whose body has such a line.
std::string SourceLineOf(const ptx::Module& module, const ptx::Function& preferred, std::uint32_t line);

}  // namespace gridloom::exec
