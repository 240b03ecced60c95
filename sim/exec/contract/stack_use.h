// What threads take of their stacks, as far as code tells. Made of the module alone, as layout.h.
#pragma once

#include <cstdint>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

/// The stack that a thread of a kernel uses.
struct StackUse {
  std::uint32_t bytes = 0;  ///< local variables of the deepest chain of calls, functions that recurse once each
  /// The code may take more, up to the limit of the stack: something recurses, or moves the end of the stack.
  bool open = false;
};
StackUse FindStackUse(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::exec
