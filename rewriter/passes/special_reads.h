// Special registers that become registers of the function.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "rewriter/passes/edit.h"

namespace gridloom::passes {

/// By special register, "%tid.x".
using SpecialRegisters = std::map<std::string, std::string, std::less<>>;

/// Has a function read new registers, one of 32 bits for x, y and z of each of these vectors. Reads of a whole vector
/// stay.
SpecialRegisters ReplaceSpecials(FunctionEditor& editor, std::initializer_list<std::string_view> vectors);

}  // namespace gridloom::passes
