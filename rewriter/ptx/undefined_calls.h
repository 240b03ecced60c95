// Calls that nobody can answer: of functions that a module declares and does not define.
#pragma once

#include <optional>
#include <string_view>

#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/linker.h"

namespace gridloom::ptx {

struct UndefinedCall {
  std::string_view function;
  SourceLoc loc;
};

/// A call of a function without a body that a kernel of the module comes to, itself or through what it calls, or an
/// address of one that it takes. None:
/// every kernel can run. Functions that no kernel calls may call what they like.
std::optional<UndefinedCall> FindUndefinedCall(const Module& module, const IsProvided& is_provided);

}  // namespace gridloom::ptx
