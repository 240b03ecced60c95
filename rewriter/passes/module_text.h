// Functions and variables of a pass's own: written as PTX, or those of rewriter/kernels.
#pragma once

#include <string>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// All `what` in a text become `by`.
std::string With(std::string text, std::string_view what, std::string_view by);

/// Adds what another module has and the module does not: declarations and variables in front of the module's first
/// function with a body, definitions behind everything. A name that both have is the module's; a declaration may stand
/// for a kernel.
void AddModule(ptx::Module& module, ptx::Module&& of);
/// Of another module only these functions and what they reach.
void AddFunctions(ptx::Module& module, ptx::Module&& of, const std::vector<std::string>& functions);
/// As AddModule for text, a module without its head. That it does not parse is a broken invariant.
void AddModuleText(ptx::Module& module, const std::string& text);

}  // namespace gridloom::passes
