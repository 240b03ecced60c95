// Deep copies of modules and functions, for passes that change a copy or add a variant of a function.
#pragma once

#include <memory>
#include <string_view>

#include "rewriter/ptx/ir.h"

namespace gridloom::ptx {

/// A module of its own: shares nothing with the original, keeps source locations, and prints the same text.
std::unique_ptr<Module> CloneModule(const Module& module);

/// Adds a copy of a function of this module under another name, behind it. What is inside the function is copied; it
/// goes on referring to the module's variables and functions, itself included (a recursive call leads to the original).
Function& CloneFunction(Module& module, const Function& function, std::string_view name);

}  // namespace gridloom::ptx
