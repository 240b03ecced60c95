#pragma once

#include <string>

namespace gridloom::session {

/// `ptx` as ptxas -fmad=false compiles it: no product is fused with the sum that it is for, so each add, sub and mul
/// has the rounding modifier that forbids it (PTX ISA, add). As it is when it has errors.
std::string WithoutFusing(std::string ptx);

}  // namespace gridloom::session
