// What passes have made of the program's modules, for all that rewrite them.
#pragma once

#include "rewriter/passes/rewrite_cache.h"

namespace gridloom::session {

/// Modules that were rewritten in this process.
passes::RewriteCache& TheRewrites();

}  // namespace gridloom::session
