// The page about all proposed parts, made of what their kinds say: docs/hardware-reference.md.
#pragma once

#include <string>

namespace gridloom::hardware {

std::string ReferencePage();

}  // namespace gridloom::hardware
