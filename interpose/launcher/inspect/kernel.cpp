// Facts about one kernel, gathered from its PTX and that of the functions it may call.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "interpose/launcher/inspect/report.h"
#include "rewriter/analysis/liveness.h"
#include "rewriter/ptx/visit.h"
#include "rewriter/support/demangle.h"
#include "sim/exec/contract/layout.h"

namespace gridloom::launcher {
namespace {

std::string TypeText(const ptx::Variable& variable) {
  std::string text =
      (variable.vector > 1 ? "v" + std::to_string(variable.vector) + "." : "") + std::string(Info(variable.type).text);
  for (const std::uint64_t dim : variable.dims) text += "[" + (dim == 0 ? "" : std::to_string(dim)) + "]";
  return text;
}

void ReportParameters(const ptx::Function& kernel, KernelReport& report) {
  const ptx::ParamLayout layout = ptx::LayoutParams(kernel);
  report.parameter_bytes = layout.bytes;
  for (std::size_t i = 0; i < kernel.params.size(); ++i) {
    const ptx::Variable& param = kernel.params[i];
    report.parameters.push_back({std::string(param.name), TypeText(param), layout.offsets[i],
                                 static_cast<std::uint32_t>(param.bytes()), std::max(1u, param.alignment())});
  }
}

void ReportBounds(const ptx::Function& kernel, KernelReport& report) {
  for (const ptx::FunctionDirective& directive : kernel.directives) {
    if (directive.name == "pragma") continue;
    std::string text(directive.name);
    for (std::size_t i = 0; i < directive.values.size(); ++i)
      text += (i == 0 ? " " : ", ") + std::to_string(directive.values[i]);
    if (!directive.text.empty()) text += " " + std::string(directive.text);
    report.launch_bounds.push_back(std::move(text));
  }
}

void AddRegisters(const ptx::Variable& variable, KernelReport& report) {
  if (variable.space != ptx::StateSpace::kReg) return;
  const bool predicate = variable.type == ptx::ScalarType::kPred;
  const std::string width = predicate ? "pred" : "b" + std::to_string(std::max(16u, ptx::BitsOf(variable.type)));
  report.registers[width] += std::uint64_t{std::max(1u, variable.range_count)} * variable.vector;
}

/// Which barrier an instruction uses; empty when none. A warp's own barrier is not one of the block's.
std::string BarrierOf(const ptx::Instruction& instruction) {
  if (instruction.info().cls != ptx::OpClass::kBarrier) return "";
  const auto has = [&](std::string_view text) {
    return std::ranges::any_of(instruction.modifiers,
                               [&](const ptx::Modifier& modifier) { return modifier.text == text; });
  };
  if (has("warp")) return "";
  if (has("cluster")) return "cluster";
  // bar.red has its destination first.
  const std::size_t index = has("red") ? 1 : 0;
  if (index >= instruction.operands.size()) return "0";
  const ptx::Operand& id = instruction.operands[index];
  return id.kind == ptx::OperandKind::kInt ? std::to_string(id.int_literal.value) : "from a register";
}

/// Walks the kernel and, once each, the functions its operands refer to: called ones and those whose address is taken.
class KernelWalk {
 public:
  KernelWalk(const ptx::Module& module, KernelReport& report) : module_(module), report_(report) {}

  void Walk(const ptx::Function& kernel) {
    pending_.push_back(&kernel);
    while (!pending_.empty()) {
      const ptx::Function* function = pending_.back();
      pending_.pop_back();
      if (!seen_.insert(function).second) continue;
      if (function->body != nullptr) {
        WalkBody(*function, function == &kernel);
      } else if (const ptx::Function* definition = Definition(function->name)) {
        pending_.push_back(definition);
      } else {
        system_calls_.insert(std::string(function->name));
      }
    }
  }

  void Finish() {
    report_.barriers.assign(barriers_.begin(), barriers_.end());
    report_.system_calls.assign(system_calls_.begin(), system_calls_.end());
    report_.unknown_opcodes.assign(unknown_.begin(), unknown_.end());
  }

 private:
  const ptx::Function* Definition(std::string_view name) {
    if (definitions_.empty()) {
      for (const ptx::Function& function : module_.functions) {
        if (function.body != nullptr) definitions_.try_emplace(function.name, &function);
      }
    }
    const auto found = definitions_.find(name);
    return found == definitions_.end() ? nullptr : found->second;
  }

  void WalkBody(const ptx::Function& function, bool is_kernel) {
    // The visitor can change what it visits; this one does not.
    auto& body = const_cast<ptx::Block&>(*function.body);
    ptx::VisitStatements(body, [&](ptx::Statement& statement) { Look(statement, is_kernel); });
    ptx::VisitOperands(body, [&](ptx::Operand& operand) {
      if (operand.function != nullptr) pending_.push_back(operand.function);
      const ptx::Variable* variable = operand.variable;
      report_.dynamic_shared |= variable != nullptr && exec::IsDynamicShared(*variable);
    });
  }

  void Look(const ptx::Statement& statement, bool is_kernel) {
    if (const auto* variable = std::get_if<ptx::Variable*>(&statement); variable != nullptr && is_kernel)
      AddRegisters(**variable, report_);
    const auto* instruction = std::get_if<ptx::Instruction>(&statement);
    if (instruction == nullptr) return;
    ++(is_kernel ? report_.instructions : report_.callee_instructions);
    if (instruction->opcode == ptx::Opcode::kUnknown) unknown_.insert(instruction->FullName());
    if (std::string barrier = BarrierOf(*instruction); !barrier.empty()) barriers_.insert(std::move(barrier));
  }

  const ptx::Module& module_;
  KernelReport& report_;
  std::unordered_map<std::string_view, const ptx::Function*> definitions_;  ///< gathered when the first prototype asks
  std::vector<const ptx::Function*> pending_;
  std::set<const ptx::Function*> seen_;
  std::set<std::string> barriers_, system_calls_, unknown_;
};

}  // namespace

KernelReport ReportKernel(const ptx::Module& module, const ptx::Function& kernel) {
  KernelReport report;
  report.name = kernel.name;
  report.demangled = DemangledName(report.name);
  ReportParameters(kernel, report);
  ReportBounds(kernel, report);
  report.shared_bytes = exec::LayoutShared(module, kernel).static_bytes();
  report.local_bytes = exec::LayoutLocal(kernel).bytes;
  report.live_registers = analysis::Liveness(analysis::Cfg(kernel)).max_pressure().units;
  KernelWalk walk(module, report);
  walk.Walk(kernel);
  walk.Finish();
  return report;
}

}  // namespace gridloom::launcher
