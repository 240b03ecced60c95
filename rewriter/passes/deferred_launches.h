// Launches that wait in a list for the end of the block, or of the grid, whose threads have made them.
//
//   at the beginning of a block   its lists are empty; grid: the grid takes a place among those that run, or is there
//                                 already
//   at its end                    one thread launches what is in its lists; grid: in the grid's lists, when the block
//                                 is the last one to end
//
// A list has tables (merged_kernel.h), each of what the lanes of a warp launched together. Tables with blocks of one
// shape become one launch.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/consolidate.h"
#include "rewriter/passes/consolidate_functions.h"

namespace gridloom::passes {

/// Why launches by a kernel cannot wait for the end of its blocks, as a clause; empty when they can. `with_exits`:
/// FunctionsWithExits.
std::string WhyNotDeferred(const analysis::CallGraph& calls, const std::set<std::string>& with_exits,
                           const ptx::Function& kernel);

/// Variables that hold the lists of launches of a kernel.
std::string ListsText(const ptx::Function& kernel, ConsolidateScope scope);
/// Has every kernel that may launch one of `kernels` launch what is in its lists at the end.
void LaunchAtEnds(ptx::Module& module, const std::vector<MergedKernel>& kernels, ConsolidateScope scope);

}  // namespace gridloom::passes
