// Kernels as task functions of a MasterKernel (Pagoda): beside each kernel that can be one, a function gl_task_<kernel>
// (task_code.h), and for all of them the kernel gl_master (master_kernel.h). The kernels themselves stay as they are.
#pragma once

#include <string>
#include <vector>

#include "rewriter/passes/pass.h"
#include "rewriter/passes/task_code.h"

namespace gridloom::passes {

/// A kernel that has become a task function.
struct TaskFunction {
  std::string kernel, function;
  std::uint32_t param_bytes = 0;
  task::Needs needs;
};

/// Does what the pass does, and tells what each task needs; the place in the list is the kernel's number in TaskTable
/// entries.
std::vector<TaskFunction> AddTasks(ptx::Module& module, PassReport& report);

class TaskPass final : public Pass {
 public:
  std::string_view name() const override { return "task"; }
  std::string_view summary() const override {
    return "kernels as tasks of a kernel that stays (Pagoda's MasterKernel)";
  }
  bool changes_kernels() const override { return false; }
  Result<PassReport> Run(ptx::Module& module) const override;
};

}  // namespace gridloom::passes
