// The one list of passes.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "rewriter/passes/pass.h"

namespace gridloom::passes {

/// All passes, in the order they are listed to people.
std::span<const std::unique_ptr<const Pass>> AllPasses();
/// Null when there is none of that name.
const Pass* FindPass(std::string_view name);

}  // namespace gridloom::passes
