// Parameters of a kernel that lie in memory instead.
#pragma once

#include <string>

#include "rewriter/passes/edit.h"

namespace gridloom::passes {

/// What a kernel does with a parameter besides loading it under its name; null when there is nothing.
const ptx::Instruction* OtherParamUse(const ptx::Function& kernel);

/// Has the function's loads of parameters read registers. Returns the text that loads those, to stand at its head: from
/// global memory at the register `base`, where the parameters lie from `first` on as in a launch. The parameters
/// themselves stay.
std::string ReplaceParamReads(FunctionEditor& editor, const std::string& base, std::uint32_t first,
                              std::string_view space = "global");

}  // namespace gridloom::passes
