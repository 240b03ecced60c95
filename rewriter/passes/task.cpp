#include "rewriter/passes/task.h"

#include <algorithm>

#include "rewriter/passes/lower_exits.h"
#include "rewriter/passes/master_kernel.h"
#include "rewriter/ptx/clone.h"

namespace gridloom::passes {

namespace {

using Copies = std::map<std::string, ptx::Function*, std::less<>>;

ptx::Function& Copy(ptx::Module& module, const ptx::Function& function, const std::string& name) {
  ptx::Function& copy = ptx::CloneFunction(module, function, module.strings.Intern(name));
  copy.is_entry = false;
  copy.linkage = ptx::Linkage::kInternal;
  copy.directives.clear();
  return copy;
}

void AddWarpParam(ptx::Module& module, ptx::Function& function) {
  ptx::Variable& param = function.params.emplace_back();
  param.name = module.strings.Intern(task::kWarpParam);
  param.space = ptx::StateSpace::kParam;
  param.type = ptx::ScalarType::kB32;
}

/// Functions stand in front of those that call them: a copy does, too.
void Declare(ptx::Module& module, const std::vector<ptx::Function*>& copies) {
  for (ptx::Function* const copy : copies) {
    std::erase_if(module.items, [&](const ptx::ModuleItem& item) {
      const auto* function = std::get_if<ptx::Function*>(&item);
      return function != nullptr && *function == copy;
    });
  }
  for (ptx::Function* const copy : copies) {
    ptx::Function& prototype = module.functions.emplace_back();
    prototype.name = copy->name;
    prototype.returns = copy->returns;
    prototype.params = copy->params;
    module.items.emplace_back(&prototype);
  }
  for (ptx::Function* const copy : copies) module.items.emplace_back(copy);
}

TaskFunction MakeTask(ptx::Module& module, const std::string& name, task::Needs needs) {
  const ptx::Function& kernel = *module.FindFunction(name);
  TaskFunction result{.kernel = name,
                      .function = "gl_task_" + name,
                      .param_bytes = ptx::LayoutParams(kernel).bytes,
                      .needs = std::move(needs)};
  std::vector<const ptx::Function*> reached;
  {
    const analysis::CallGraph calls(module);
    for (const analysis::NodeId node : calls.Reachable(calls.NodeOf(kernel))) {
      if (calls.function(node).body != nullptr && !calls.function(node).is_entry)
        reached.push_back(&calls.function(node));
    }
  }
  Copies by_name;
  std::vector<ptx::Function*> copies;
  for (const ptx::Function* function : reached) {
    copies.push_back(&Copy(module, *function, result.function + "_" + std::string(function->name)));
    by_name[std::string(function->name)] = copies.back();
  }
  ptx::Function& code = Copy(module, kernel, result.function);
  copies.push_back(&code);
  for (ptx::Function* copy : copies) AddWarpParam(module, *copy);
  const task::Placement shared = task::PlaceShared(copies, result.needs);
  for (ptx::Function* copy : copies) task::RewriteFunction(module, *copy, copy == &code, result.needs, shared, by_name);
  Declare(module, copies);
  return result;
}

constexpr unsigned kLeastSm = 30;  // vote.sync and bar.warp.sync

/// The MasterKernel and the counting barrier need votes that name their lanes, and bar.warp.sync (PTX 6.0).
void RaiseVersion(ptx::Module& module) {
  if (module.version_major < 7) module.version_major = 7, module.version_minor = 0;
}

}  // namespace

std::vector<TaskFunction> AddTasks(ptx::Module& module, PassReport& report) {
  if (module.sm() < kLeastSm) {
    for (KernelReport& kernel : report.kernels) {
      kernel.status = KernelStatus::kRefused;
      kernel.reason = "the MasterKernel needs sm_" + std::to_string(kLeastSm) + " or later, and the module is for sm_" +
                      std::to_string(module.sm());
    }
    return {};
  }
  {
    const analysis::CallGraph calls(module);
    const auto exits = FunctionsWithExits(calls);
    if (CannotLowerExits(calls, exits).empty()) LowerExits(module, exits);
  }
  std::vector<std::pair<KernelReport*, task::Needs>> kernels;
  {
    const analysis::CallGraph calls(module);
    const auto exits = FunctionsWithExits(calls);
    for (KernelReport& kernel : report.kernels) {
      const ptx::Function& function = *module.FindFunction(kernel.kernel);
      task::Finding finding = task::Examine(calls, function);
      const auto reached = calls.Reachable(calls.NodeOf(function));
      const bool ends = std::ranges::any_of(
          reached, [&](analysis::NodeId node) { return exits.contains(std::string(calls.function(node).name)); });
      if (!finding.refusal && ends)
        finding.refusal = task::Refusal{"its threads end in functions that others may call", function.loc};
      if (finding.refusal) {
        kernel.status = KernelStatus::kRefused;
        kernel.reason = std::move(finding.refusal->reason);
        kernel.loc = finding.refusal->loc;
        continue;
      }
      kernel.status = KernelStatus::kChanged;
      kernels.emplace_back(&kernel, std::move(finding.needs));
    }
  }
  std::vector<TaskFunction> tasks;
  std::vector<task::MasterTask> functions;
  for (auto& [kernel, needs] : kernels) {
    tasks.push_back(MakeTask(module, kernel->kernel, std::move(needs)));
    const TaskFunction& made = tasks.back();
    functions.push_back({made.function, made.needs.static_bytes, made.needs.barrier, made.needs.full_warps,
                         made.needs.full_rows, made.param_bytes});
  }
  if (tasks.empty()) return tasks;
  RaiseVersion(module);
  task::AddMasterKernel(module, functions);
  report.added.push_back({.name = task::kMasterName, .of = tasks.front().kernel, .purpose = "master"});
  return tasks;
}

Result<PassReport> TaskPass::Run(ptx::Module& module) const {
  PassReport report = StartReport(module);
  AddTasks(module, report);
  return report;
}

}  // namespace gridloom::passes
