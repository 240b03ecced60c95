#include "rewriter/passes/master_kernel.h"

#include <utility>

#include "rewriter/kernels/kernels.h"
#include "rewriter/passes/edit.h"
#include "rewriter/passes/module_text.h"
#include "rewriter/passes/task_calls.h"

namespace gridloom::passes::task {

namespace {

using ptx::Instruction;

void AddFacts(ptx::Module& module, const std::vector<MasterTask>& tasks) {
  ptx::Variable& facts = module.variables.emplace_back();
  facts.name = module.strings.Intern(kFactsName);
  facts.space = ptx::StateSpace::kGlobal;
  facts.type = ptx::ScalarType::kU32;
  facts.linkage = ptx::Linkage::kVisible;
  facts.dims = {4 * tasks.size()};
  facts.has_initializer = true;
  for (const MasterTask& task : tasks) {
    const std::uint32_t whole = task.full_rows ? 2 : task.full_warps ? 1 : 0;
    for (const std::uint32_t value :
         {task.static_bytes, static_cast<std::uint32_t>(task.barrier), whole, task.param_bytes}) {
      ptx::Initializer& initializer = facts.initializer.emplace_back();
      initializer.value = ptx::IntLiteral{.value = value};
      initializer.element = facts.initializer.size() - 1;
    }
  }
  facts.initializer.front().group = 1;
  facts.initializer.back().close = 1;
  module.items.emplace_back(&facts);
}

/// Devices before Volta have no nanosleep: a warp that waits polls all the time there.
void LeaveOutSleeps(ptx::Function& master) {
  EditStatements(*master.body, [](ptx::Statement& statement, Replacement& replacement) {
    const auto* const instruction = std::get_if<Instruction>(&statement);
    replacement.drop = instruction != nullptr && instruction->opcode == ptx::Opcode::kNanosleep;
  });
}

}  // namespace

void AddMasterKernel(ptx::Module& module, const std::vector<MasterTask>& tasks) {
  AddFacts(module, tasks);
  AddModule(module, std::move(*kernels::Parse(kernels::kMasterPtx)));
  ptx::Function& master = *module.FindFunction(kMasterName);
  // Two blocks of 1,024 threads fill an SM's 2,048 threads and 65,536 registers (6.1).
  master.directives.push_back({.name = "maxnreg", .values = {32}, .text = {}});
  std::vector<std::string> functions;
  for (const MasterTask& task : tasks) functions.push_back(task.function);
  CallTasks(module, master, functions);
  if (module.sm() < 70) LeaveOutSleeps(master);
}

}  // namespace gridloom::passes::task
