// Which functions a kernel of tasks (kernels/master.cu, super.cu) calls: it names one that nobody defines,
//
//   gl_run_task(number of the function, address in shared memory that the function is given)
#pragma once

#include <string>
#include <vector>

#include "rewriter/ptx/ir.h"

namespace gridloom::passes::task {

/// Puts a chain of comparisons and calls in the place of that call, so that a task costs a warp no second one. The
/// kernel has exactly one such call.
void CallTasks(ptx::Module& module, ptx::Function& kernel, const std::vector<std::string>& functions);

}  // namespace gridloom::passes::task
