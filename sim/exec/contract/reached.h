// Which functions of a module a kernel's code depends on. Made of the module alone, as layout.h.
#pragma once

#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::exec {

struct Reached {
  /// The kernel, and what it and those name, by calls or as addresses: definitions, and their prototypes. As they lie.
  std::vector<const ptx::Function*> functions;
  bool by_initializers = false;  ///< they call indirectly: what initialisers of variables name is reached, too
};
Reached ReachedFrom(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::exec
