#include "interpose/launch/master_code.h"

#include <unordered_set>
#include <utility>

#include "interpose/objects/ptx_sources.h"
#include "rewriter/analysis/call_graph.h"
#include "rewriter/passes/cta_waits.h"
#include "rewriter/passes/extract.h"
#include "rewriter/passes/master_kernel.h"
#include "rewriter/ptx/linker.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::session {
namespace {

std::string AtLine(std::string reason, const SourceLoc& loc) {
  if (loc.line != 0) reason += ", PTX line " + std::to_string(loc.line);
  return reason;
}

/// Names that several modules may have become the module's own, which the linker tells apart; the kernel, whose name it
/// would keep, gets another one. What the system provides keeps its. What was taken out (passes/extract.h) is no item
/// any more but still a function.
void MakeInternal(ptx::Module& module, std::size_t number) {
  std::unordered_set<const ptx::Function*> left;
  for (const ptx::ModuleItem& item : module.items) {
    if (const auto* function = std::get_if<ptx::Function*>(&item)) left.insert(*function);
  }
  std::unordered_set<std::string_view> defined;
  for (ptx::Function& function : module.functions) {
    if (!left.contains(&function)) {
      function.is_entry = false;
      function.body = std::make_unique<ptx::Block>();
      function.directives.clear();
    }
    if (function.body != nullptr) defined.insert(function.name);
  }
  for (ptx::Function& function : module.functions) {
    if (!defined.contains(function.name)) continue;
    function.linkage = ptx::Linkage::kInternal;
    if (function.is_entry)
      function.name = module.strings.Intern(std::string(function.name) + "_gl" + std::to_string(number));
  }
  for (ptx::Variable& variable : module.variables) {
    if (variable.linkage != ptx::Linkage::kExtern) variable.linkage = ptx::Linkage::kInternal;
  }
}

Result<std::unique_ptr<ptx::Module>> Alone(const TaskKernel& kernel, std::size_t number) {
  passes::VariableAddresses addresses;
  for (const exec::GlobalInfo& global : kernel.program->globals()) addresses[global.name] = global.address;
  GL_TRY(module, passes::ExtractKernel(kernel.program->module(), kernel.info->name, addresses));
  MakeInternal(*module, number);
  return module;
}

}  // namespace

std::string WhyNeverTask(const exec::Program& program, const exec::KernelInfo& kernel) {
  const ptx::Module& module = program.module();
  const analysis::CallGraph calls(module);
  const passes::task::Finding finding = passes::task::Examine(calls, *kernel.function);
  if (finding.refusal) return AtLine(finding.refusal->reason, finding.refusal->loc);
  if (const auto variables = passes::VariablesOf(module, kernel.name); !variables.ok())
    return variables.error().message;
  const analysis::NodeId node = calls.NodeOf(*kernel.function);
  // Plain grids all get a thread of the host; of tasks only so many run at a time.
  const passes::CtaWaits waits(module, calls);
  if (const auto& wait = waits.of(node)) return AtLine(wait->reason, wait->loc);
  for (const analysis::NodeId reached : calls.Reachable(node)) {
    if (calls.function(reached).body == nullptr && calls.function(reached).name == "vprintf")
      return "it prints, which would be seen when the MasterKernel ends";
  }
  return {};
}

Result<std::shared_ptr<const MasterCode>> MakeMasterCode(Backend& backend, const std::vector<TaskKernelPtr>& kernels) {
  std::vector<ptx::LinkInput> inputs;
  std::vector<TaskKernel*> taken;
  for (const TaskKernelPtr& kernel : kernels) {
    if (!kernel->refusal.empty()) continue;
    auto module = Alone(*kernel, taken.size());
    if (!module.ok()) {
      kernel->refusal = module.error().message;
      continue;
    }
    inputs.push_back({.name = kernel->info->name, .module = std::move(module).value()});
    taken.push_back(kernel.get());
  }
  if (taken.empty()) return Error{"no kernel can be a task"};
  GL_TRY(module, ptx::LinkModules(std::move(inputs), IsProvided));
  passes::PassReport report = passes::StartReport(*module);
  if (report.kernels.size() != taken.size()) return Error{"linked modules have other kernels than they had before"};
  std::vector<passes::TaskFunction> tasks = passes::AddTasks(*module, report);
  auto code = std::make_shared<MasterCode>();
  for (std::size_t i = 0, number = 0; i < taken.size(); ++i) {
    const passes::KernelReport& kernel = report.kernels[i];
    if (kernel.status == passes::KernelStatus::kRefused) {
      taken[i]->refusal = AtLine(kernel.reason, kernel.loc);
      continue;
    }
    if (number == tasks.size() || tasks[number].kernel != kernel.kernel)
      return Error{"the pass has other tasks than it tells of"};
    code->tasks[taken[i]] = {static_cast<std::uint32_t>(number), std::move(tasks[number].needs)};
    ++number;
  }
  if (tasks.empty()) return Error{"no kernel can be a task"};
  std::string text = ptx::PrintModule(*module) + "// linked for a MasterKernel\n";
  GL_TRY(program, backend.Load(std::move(module), std::move(text)));
  code->program = std::move(program);
  code->master = code->program->FindKernel(passes::task::kMasterName);
  if (code->master == nullptr) return Error{"there is no MasterKernel in the module"};
  return std::shared_ptr<const MasterCode>(std::move(code));
}

}  // namespace gridloom::session
