#include "rewriter/passes/task_calls.h"

#include <map>
#include <string_view>
#include <variant>

#include "rewriter/analysis/cfg.h"
#include "rewriter/passes/edit.h"
#include "rewriter/support/check.h"

namespace gridloom::passes::task {
namespace {

using ptx::Instruction;
using ptx::Statement;

constexpr std::string_view kRunTask = "gl_run_task";

/// A chain of calls: the function of the task's number is given the address of the warp's record.
std::string Chain(const std::vector<std::string>& tasks, const std::string& number, const std::string& warp) {
  std::string text = "{\n  .reg .pred %other;\n";
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::string next = "NOT_" + std::to_string(i);
    text += "  setp.ne.u32 %other, " + number + ", " + std::to_string(i) + ";\n  @%other bra " + next +
            ";\n  {\n    .param .b32 warp;\n    st.param.b32 [warp], " + warp + ";\n    call " + tasks[i] +
            ", (warp);\n  }\n  bra DONE;\n" + next + ":\n";
  }
  return text + "DONE:\n}\n";
}

/// A register as text names it: one of a range has its number behind it.
std::string NameOf(const ptx::Operand& reg) {
  GL_CHECK(reg.IsPlainRegister(), "an argument of gl_run_task is no register");
  return std::string(reg.variable->name) + (reg.variable->range_count != 0 ? std::to_string(reg.index) : "");
}

/// The arguments of a call, if the scope is one with which clang calls gl_run_task: each is stored to a parameter.
std::vector<std::string> ArgumentsOfRun(const ptx::Block& scope) {
  std::map<const ptx::Variable*, std::string> stored;
  std::vector<std::string> arguments;
  for (const Statement& statement : scope.statements) {
    const auto* const instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr) continue;
    if (instruction->opcode == ptx::Opcode::kSt && instruction->operands[0].address->base.size() == 1)
      stored[instruction->operands[0].address->base[0].variable] = NameOf(instruction->operands[1]);
    const ptx::Function* const callee = analysis::CalleeOf(*instruction);
    if (callee == nullptr || callee->name != kRunTask) continue;
    for (const ptx::Operand& argument : instruction->operands.back().elements)
      arguments.push_back(stored.at(argument.variable));
  }
  return arguments;
}

}  // namespace

void CallTasks(ptx::Module& module, ptx::Function& kernel, const std::vector<std::string>& functions) {
  FunctionEditor editor(module, kernel);
  unsigned calls = 0;
  EditStatements(*kernel.body, [&](Statement& statement, Replacement& replacement) {
    const auto* const scope = std::get_if<std::unique_ptr<ptx::Block>>(&statement);
    if (scope == nullptr) return;
    const std::vector<std::string> arguments = ArgumentsOfRun(**scope);
    if (arguments.empty()) return;
    ++calls;
    replacement.before = editor.Text(Chain(functions, arguments.at(0), arguments.at(1)), (*scope)->loc);
    replacement.drop = true;
  });
  GL_CHECK(calls == 1, "a kernel of tasks does not call gl_run_task once");
  std::erase_if(module.items, [](const ptx::ModuleItem& item) {
    const auto* const function = std::get_if<ptx::Function*>(&item);
    return function != nullptr && (*function)->name == kRunTask;
  });
}

}  // namespace gridloom::passes::task
