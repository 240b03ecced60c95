// What drivers refuse of a module that is loaded as a whole, though each of its instructions is right.
#pragma once

#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::session {

/// Why a driver would not load the module, as one line; empty when it would. Says so of calls of functions that are
/// defined nowhere, and of kernels with more static shared memory than a block may have.
std::string WhyDriversRefuse(const ptx::Module& module);

}  // namespace gridloom::session
