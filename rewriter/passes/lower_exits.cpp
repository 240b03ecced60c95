#include "rewriter/passes/lower_exits.h"

#include <algorithm>

#include "rewriter/analysis/cfg.h"
#include "rewriter/passes/edit.h"

namespace gridloom::passes {

using analysis::CallGraph;
using analysis::NodeId;
using ptx::Instruction;
using ptx::Statement;

namespace {

constexpr std::string_view kParam = "gl_ended";
constexpr std::size_t kMostWithExits = 1000;  // functions, each of which is edited with all names of the module at hand

bool IsExit(const Instruction& instruction) { return instruction.Has(ptx::Trait::kExits); }

bool Calls(const Instruction& instruction, const std::set<std::string>& functions) {
  const ptx::Function* callee = analysis::CalleeOf(instruction);
  return callee != nullptr && functions.contains(std::string(callee->name));
}

/// Gives the callee's new parameter to every call; behind it the thread ends, too, when the callee said so. `address`:
/// a register that holds the address of the flag.
void PassFlag(FunctionEditor& editor, const std::set<std::string>& functions, const std::string& address,
              const std::string& leave) {
  EditStatements(*editor.function().body, [&](Statement& statement, Replacement& replacement) {
    auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr || !Calls(*instruction, functions)) return;
    const SourceLoc loc = instruction->loc;
    const std::string flag = editor.NewRegister(ptx::ScalarType::kB32, "ended"),
                      ended = editor.NewRegister(ptx::ScalarType::kPred, "has_ended");
    // In the function's outermost scope: a block of its own would hide it from the call.
    const std::string slot = editor.NewVariable(ptx::StateSpace::kParam, ptx::ScalarType::kB64, "ended_param");
    replacement.before = editor.Text("st.param.b64 [" + slot + "], " + address + ";", loc);
    // call (results), function, (arguments): without arguments there may be no list.
    const ptx::Operand* target = analysis::CallTargetOf(*instruction);
    const std::size_t at = static_cast<std::size_t>(target - instruction->operands.data()) + 1;
    if (at >= instruction->operands.size() || instruction->operands[at].kind != ptx::OperandKind::kList) {
      ptx::Operand list;
      list.kind = ptx::OperandKind::kList;
      instruction->operands.insert(instruction->operands.begin() + static_cast<std::ptrdiff_t>(at), std::move(list));
    }
    instruction->operands[at].elements.push_back(SymbolOperand(*editor.Find(slot).variable));
    for (Statement& check : editor.Text("ld.local.b32 " + flag + ", [" + address + "]; setp.ne.b32 " + ended + ", " +
                                            flag + ", 0; @" + ended + " " + leave + ";",
                                        loc)) {
      replacement.after.push_back(std::move(check));
    }
  });
}

void LowerFunction(ptx::Module& module, ptx::Function& function, const std::set<std::string>& functions) {
  ptx::Variable& param = function.params.emplace_back();
  param.name = module.strings.Intern(std::string(kParam));
  param.space = ptx::StateSpace::kParam;
  param.type = ptx::ScalarType::kB64;
  if (!function.body) return;
  FunctionEditor editor(module, function);
  const std::string address = editor.NewRegister(ptx::ScalarType::kB64, "ended_at");
  PassFlag(editor, functions, address, "ret");
  EditStatements(*function.body, [&](Statement& statement, Replacement& replacement) {
    auto* instruction = std::get_if<Instruction>(&statement);
    if (instruction == nullptr || !IsExit(*instruction)) return;
    const auto guard = instruction->guard;
    for (Statement& line : editor.Text("st.local.b32 [" + address + "], 1; ret;", instruction->loc)) {
      std::get<Instruction>(line).guard = guard;
      replacement.after.push_back(std::move(line));
    }
    replacement.drop = true;
  });
  InsertAtEntry(*function.body,
                editor.Text("ld.param.b64 " + address + ", [" + std::string(kParam) + "];", function.loc));
}

void LowerKernel(ptx::Module& module, ptx::Function& kernel, const std::set<std::string>& functions) {
  FunctionEditor editor(module, kernel);
  const std::string address = editor.NewRegister(ptx::ScalarType::kB64, "ended_at");
  PassFlag(editor, functions, address, "exit");
  const std::string flag = editor.NewVariable(ptx::StateSpace::kLocal, ptx::ScalarType::kB32, "ended_flag");
  InsertAtEntry(*kernel.body,
                editor.Text("mov.b64 " + address + ", " + flag + "; st.local.b32 [" + address + "], 0;", kernel.loc));
}

}  // namespace

std::set<std::string> FunctionsWithExits(const CallGraph& calls) {
  std::set<std::string> result;
  const auto has_exit = [&](NodeId node) {
    if (!calls.function(node).body) return false;
    const analysis::Cfg cfg(calls.function(node));
    return std::ranges::any_of(cfg.instructions(),
                               [](const analysis::CfgInstruction& at) { return IsExit(*at.instruction); });
  };
  std::vector<bool> exits(calls.size());
  for (NodeId node = 0; node < calls.size(); ++node) exits[node] = !calls.function(node).is_entry && has_exit(node);
  const std::vector<bool> reaching = calls.Reaching(exits);
  for (NodeId node = 0; node < calls.size(); ++node) {
    if (reaching[node] && !calls.function(node).is_entry) result.insert(std::string(calls.function(node).name));
  }
  return result;
}

std::string CannotLowerExits(const CallGraph& calls, const std::set<std::string>& functions) {
  if (functions.size() > kMostWithExits)
    return "threads may end in more than " + std::to_string(kMostWithExits) + " functions";
  for (NodeId node = 0; node < calls.size(); ++node) {
    const std::string name(calls.function(node).name);
    if (functions.contains(name) && calls.IsAddressTaken(node))
      return name + ", in which threads may end, is called through a pointer";
    if (functions.contains(name) && calls.function(node).linkage == ptx::Linkage::kVisible) {
      return name + ", in which threads may end, may be called from other modules";
    }
  }
  return "";
}

void LowerExits(ptx::Module& module, const std::set<std::string>& functions) {
  if (functions.empty()) return;
  for (ptx::Function& function : module.functions) {
    if (functions.contains(std::string(function.name))) {
      LowerFunction(module, function, functions);
    } else if (function.is_entry && function.body) {
      const analysis::Cfg cfg(function);
      const bool calls_one = std::ranges::any_of(
          cfg.instructions(), [&](const analysis::CfgInstruction& at) { return Calls(*at.instruction, functions); });
      if (calls_one) LowerKernel(module, function, functions);
    }
  }
}

}  // namespace gridloom::passes
