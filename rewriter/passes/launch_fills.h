// Programs that were written to a file with rewritten kernels inside launch them as they always did: with the kernels'
// own parameters. A module of such a program says so, and whoever runs it (the driver shim) launches its kernels as
// slices and fills in the hidden parameters. Modules that someone launches who knows of the parameters, from the
// report, bear no mark.
#pragma once

#include <vector>

#include "rewriter/passes/pass.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::passes {

/// Marks the module: by a variable `gridloom_launch_fills_parameters`, since a GPU's assembler takes that without
/// remark.
void MarkLaunchFills(ptx::Module& module);
bool LaunchFills(const ptx::Module& module);

/// The hidden parameters of a kernel of a marked module, found by their names: the last parameters. Empty in any other
/// module.
std::vector<HiddenParam> ParamsLaunchFills(const ptx::Module& module, const ptx::Function& kernel);

}  // namespace gridloom::passes
