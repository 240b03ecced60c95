// The code of a MasterKernel for the kernels of several modules (rewriter/passes/task.h): each kernel is taken out of
// its module (rewriter/passes/extract.h), so that it works on that module's variables where they are, and all are
// linked to one module with gl_master.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "interpose/objects/backend.h"
#include "interpose/objects/module.h"
#include "rewriter/passes/task.h"

namespace gridloom::session {

/// A kernel of a loaded program that is or is not to be a task.
struct TaskKernel {
  std::weak_ptr<Kernel> handle;  ///< expired when its module was unloaded
  std::shared_ptr<exec::Program> program;
  const exec::KernelInfo* info = nullptr;
  std::string refusal;  ///< why it cannot be a task; empty: it can
};
using TaskKernelPtr = std::shared_ptr<TaskKernel>;

struct MasterCode {
  struct Facts {
    std::uint32_t number = 0;  ///< in the TaskTable
    passes::task::Needs needs;
  };
  std::shared_ptr<exec::Program> program;
  const exec::KernelInfo* master = nullptr;
  std::unordered_map<const TaskKernel*, Facts> tasks;

  const Facts* Find(const TaskKernel& kernel) const {
    const auto found = tasks.find(&kernel);
    return found == tasks.end() ? nullptr : &found->second;
  }
};

/// Why none of the kernel's launches can be a task, as far as its own module tells; empty when nothing speaks against
/// it.
std::string WhyNeverTask(const exec::Program& program, const exec::KernelInfo& kernel);

/// Makes the MasterKernel of those without a refusal. Kernels that the pass refuses get theirs here.
Result<std::shared_ptr<const MasterCode>> MakeMasterCode(Backend& backend, const std::vector<TaskKernelPtr>& kernels);

}  // namespace gridloom::session
