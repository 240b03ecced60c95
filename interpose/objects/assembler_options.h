// Options of the toolkit's assembler that its input does not tell of.
#pragma once

#include <span>
#include <string>

namespace gridloom::session {

/// `ptx` as ptxas compiles it with these options, one word each: no fused products with -fmad=false, the limit of
/// -maxrregcount. As it is when it has errors.
std::string WithAssemblerOptions(std::string ptx, std::span<const std::string> options);

}  // namespace gridloom::session
