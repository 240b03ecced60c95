#include "rewriter/ptx/undefined_calls.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gridloom::ptx {
namespace {

using Definitions = std::unordered_map<std::string_view, const Function*>;

Definitions DefinitionsOf(const Module& module) {
  Definitions definitions;
  for (const Function& function : module.functions) {
    if (function.body != nullptr) definitions.emplace(function.name, &function);
  }
  for (const ModuleItem& item : module.items) {
    const auto* alias = std::get_if<AliasDirective>(&item);
    if (alias == nullptr) continue;
    const auto found = definitions.find(alias->aliasee);
    if (found != definitions.end() && found->second->name == alias->aliasee)  // no alias itself
      definitions.emplace(alias->alias, found->second);
  }
  return definitions;
}

/// The functions that are called in a block and in those inside it, and those whose addresses are taken: who has an
/// address may call.
void AppendCalls(const Block& block, std::vector<const Operand*>& calls) {
  for (const Statement& statement : block.statements) {
    if (const auto* instruction = std::get_if<Instruction>(&statement)) {
      if (!instruction->Has(Trait::kCalls) && instruction->opcode != Opcode::kMov) continue;
      for (const Operand& operand : instruction->operands) {
        if (operand.function != nullptr) calls.push_back(&operand);
      }
    } else if (const auto* nested = std::get_if<std::unique_ptr<Block>>(&statement)) {
      AppendCalls(**nested, calls);
    }
  }
}

}  // namespace

std::optional<UndefinedCall> FindUndefinedCall(const Module& module, const IsProvided& is_provided) {
  const Definitions definitions = DefinitionsOf(module);
  std::unordered_set<const Function*> seen;
  std::vector<const Function*> pending;
  for (const Function& function : module.functions) {
    if (function.is_entry && function.body != nullptr && seen.insert(&function).second) pending.push_back(&function);
  }
  while (!pending.empty()) {
    std::vector<const Operand*> calls;
    AppendCalls(*pending.back()->body, calls);
    pending.pop_back();
    for (const Operand* const call : calls) {
      const std::string_view name = call->function->name;
      const auto found = definitions.find(name);
      if (found != definitions.end()) {
        if (seen.insert(found->second).second) pending.push_back(found->second);
      } else if (!is_provided(name)) {
        return UndefinedCall{name, call->loc};
      }
    }
  }
  return std::nullopt;
}

}  // namespace gridloom::ptx
