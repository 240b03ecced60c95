// Functions and variables of a pass's own, written as PTX.
#pragma once

#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// All `what` in a text become `by`.
std::string With(std::string text, std::string_view what, std::string_view by);

/// Adds what the text (a module without its head) has and the module does not: declarations and variables in front of
/// the module's first function with a body, definitions behind everything. A name that both have is the module's; a
/// declaration in the text may stand for a kernel. Text that does not parse is a broken invariant.
void AddModuleText(ptx::Module& module, const std::string& text);

}  // namespace gridloom::passes
