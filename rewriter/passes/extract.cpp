#include "rewriter/passes/extract.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "rewriter/analysis/call_graph.h"
#include "rewriter/analysis/cfg.h"
#include "rewriter/passes/edit.h"
#include "rewriter/ptx/clone.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::passes {

using ptx::Function;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;
using ptx::Variable;

namespace {

bool InModuleMemory(const Variable& variable) {
  return variable.space == StateSpace::kGlobal || variable.space == StateSpace::kConst;
}

/// The kernel and what it calls, definitions and prototypes alike; an error when that cannot be told.
Result<std::vector<const Function*>> Reached(const ptx::Module& module, std::string_view kernel) {
  const Function* const entry = module.FindFunction(kernel);
  if (entry == nullptr || !entry->is_entry || entry->body == nullptr) return Error{"it is not in the module"};
  const analysis::CallGraph calls(module);
  std::vector<const Function*> reached;
  for (const analysis::NodeId node : calls.Reachable(calls.NodeOf(*entry))) {
    for (const analysis::CallSite& call : calls.calls(node)) {
      if (call.indirect) return Error{"it calls through a pointer"};
      if (call.unknown_target) return Error{"it calls a function that the module does not have"};
    }
    reached.push_back(&calls.function(node));
  }
  return reached;
}

/// Why the kernel cannot have this instruction in a module of its own.
std::optional<std::string> WhyNot(const Instruction& instruction) {
  const Operand* const target = analysis::CallTargetOf(instruction);
  std::optional<std::string> why;
  for (const Operand& operand : instruction.operands) {
    if (&operand == target) continue;
    ptx::VisitOperand(operand, [&](const Operand& inner) {
      if (inner.kind != OperandKind::kSymbol) return;
      if (inner.function != nullptr) why = "it takes the address of the function " + std::string(inner.function->name);
      if (inner.variable != nullptr && ptx::Info(inner.variable->type).cls == ptx::TypeClass::kOpaque)
        why = "it uses the texture or surface reference " + std::string(inner.variable->name);
    });
  }
  if (why || instruction.space() != StateSpace::kConst) return why;
  if (instruction.opcode == Opcode::kIsspacep) return "it asks whether an address is in constant memory";
  const bool bank = std::ranges::any_of(
      instruction.modifiers, [](const ptx::Modifier& modifier) { return modifier.text.starts_with("const["); });
  if (bank || (!instruction.Has(ptx::Trait::kReads) && instruction.opcode != Opcode::kCvta))
    return "it uses constant memory in " + instruction.FullName();
  return std::nullopt;
}

/// Puts the addresses of variables in place of their names.
class Placement {
 public:
  Placement(ptx::Module& module, Function& function, const VariableAddresses& addresses)
      : editor_(module, function), addresses_(addresses) {}

  void Run() {
    EditStatements(*editor_.function().body, [&](ptx::Statement& statement, Replacement& replacement) {
      if (std::holds_alternative<ptx::LocDirective>(statement)) {
        replacement.drop = true;
      } else if (auto* instruction = std::get_if<Instruction>(&statement)) {
        for (Operand& operand : instruction->operands) Place(operand, instruction->loc, replacement);
        if (instruction->space() == StateSpace::kConst) ReadGlobal(*instruction);
      }
    });
  }

 private:
  void Place(Operand& operand, SourceLoc loc, Replacement& replacement) {
    ptx::VisitOperand(operand, [&](Operand& inner) {
      if (inner.kind != OperandKind::kSymbol || inner.variable == nullptr || !InModuleMemory(*inner.variable)) return;
      const auto address = addresses_.find(inner.variable->name);
      if (address == addresses_.end())
        return;  // a variable of a function's own scope; kernels have none in these spaces
      const std::string& name = RegisterFor(*inner.variable, inner.offset);
      auto load = editor_.Text(
          "mov.u64 " + name + ", " + std::to_string(address->second + static_cast<std::uint64_t>(inner.offset)) + ";",
          loc);
      replacement.before.insert(replacement.before.end(), std::make_move_iterator(load.begin()),
                                std::make_move_iterator(load.end()));
      inner = RegisterOperand(*editor_.Find(name).variable);
    });
  }

  const std::string& RegisterFor(const Variable& variable, std::int64_t offset) {
    std::string& name = registers_[{&variable, offset}];
    if (name.empty()) name = editor_.NewRegister(ptx::ScalarType::kU64, "variable");
    return name;
  }

  static void ReadGlobal(Instruction& instruction) {
    for (ptx::Modifier& modifier : instruction.modifiers) {
      if (modifier.mod == Mod::kSpace) modifier.text = "global";
    }
  }

  FunctionEditor editor_;
  const VariableAddresses& addresses_;
  std::map<std::pair<const Variable*, std::int64_t>, std::string> registers_;
};

/// Leaves the functions that `keep` names, and of what is not code the variables in other spaces.
void Prune(ptx::Module& module, const std::unordered_set<std::string_view>& keep) {
  std::erase_if(module.items, [&](const ptx::ModuleItem& item) {
    if (const auto* function = std::get_if<Function*>(&item)) return !keep.contains((*function)->name);
    if (const auto* variable = std::get_if<Variable*>(&item)) return InModuleMemory(**variable);
    if (const auto* alias = std::get_if<ptx::AliasDirective>(&item)) return !keep.contains(alias->aliasee);
    return true;  // .file and .section
  });
  std::erase(module.targets, "debug");
}

/// Gives a linked module the architecture of the parts that are left, which may be older than the newest part's.
void LowerTarget(ptx::Module& module, const std::vector<const Function*>& reached) {
  std::uint32_t sm = 0;
  for (const Function* function : reached) {
    if (function->body != nullptr && function->target_sm == 0) return;
    sm = std::max(sm, function->target_sm);
  }
  if (sm == 0 || sm >= module.sm()) return;
  for (std::string_view& target : module.targets) {
    if (target.starts_with("sm_") || target.starts_with("compute_"))
      target = module.strings.Intern("sm_" + std::to_string(sm));
  }
}

}  // namespace

Result<std::vector<std::string>> VariablesOf(const ptx::Module& module, std::string_view kernel) {
  if (module.address_size != 64) return Error{"its addresses have 32 bits"};
  GL_TRY(reached, Reached(module, kernel));
  std::set<std::string> names;
  for (const Function* function : reached) {
    if (function->body == nullptr) continue;
    std::optional<std::string> why;
    ptx::VisitStatements(*function->body, [&](ptx::Statement& statement) {
      const auto* instruction = std::get_if<Instruction>(&statement);
      if (instruction == nullptr || why) return;
      why = WhyNot(*instruction);
      for (const Operand& operand : instruction->operands) {
        ptx::VisitOperand(operand, [&](const Operand& inner) {
          if (inner.kind == OperandKind::kSymbol && inner.variable != nullptr && InModuleMemory(*inner.variable))
            names.emplace(inner.variable->name);
        });
      }
    });
    if (why) return Error{*why};
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::unique_ptr<ptx::Module>> ExtractKernel(const ptx::Module& original, std::string_view kernel,
                                                   const VariableAddresses& addresses) {
  GL_TRY(variables, VariablesOf(original, kernel));
  for (const std::string& variable : variables) {
    if (!addresses.contains(variable))
      return Error{"it uses the variable " + variable + ", whose address is not known"};
  }
  std::unique_ptr<ptx::Module> module = ptx::CloneModule(original);
  GL_TRY(reached, Reached(*module, kernel));
  std::unordered_set<std::string_view> keep;
  for (const Function* function : reached) {
    keep.insert(function->name);
    if (function->body != nullptr) Placement(*module, const_cast<Function&>(*function), addresses).Run();
  }
  Prune(*module, keep);
  LowerTarget(*module, reached);
  return module;
}

}  // namespace gridloom::passes
