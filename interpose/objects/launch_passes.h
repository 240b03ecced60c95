// GRIDLOOM_AGGREGATE and GRIDLOOM_CONSOLIDATE: launches by kernels that nothing waits for become groups of thread
// blocks (rewriter/passes/aggregate.h), or one launch for many (rewriter/passes/consolidate.h), without the program's
// knowing. What is left as it is, and why, is in the summary.
#pragma once

#include <memory>
#include <string>

#include "rewriter/ptx/ir.h"

namespace gridloom::session {

class Summary;

/// Rewrites a module that the program has loaded, when that is asked for. `text`, what it was parsed from, becomes one
/// that names the result when it was changed. The summary is told of each launch.
void RewriteLaunches(std::unique_ptr<ptx::Module>& module, std::string& text, Summary& summary);

}  // namespace gridloom::session
