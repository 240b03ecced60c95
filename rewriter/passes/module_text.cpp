#include "rewriter/passes/module_text.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/visit.h"
#include "rewriter/support/check.h"

namespace gridloom::passes {
namespace {

using ptx::Function;
using ptx::ModuleItem;

bool HasBody(const ModuleItem& item) {
  const auto* const function = std::get_if<Function*>(&item);
  return function != nullptr && (*function)->body != nullptr;
}

/// What a function names is the module's.
void Rebind(ptx::Module& module, Function& function) {
  ptx::VisitOperands(*function.body, [&](ptx::Operand& operand) {
    if (operand.function != nullptr) {
      operand.function = module.FindFunction(operand.function->name);
      GL_CHECK(operand.function != nullptr, std::string(function.name).c_str());
      operand.text = operand.function->name;
    }
    if (operand.kind != ptx::OperandKind::kSymbol || operand.variable == nullptr) return;
    if (ptx::Variable* const variable = module.FindVariable(operand.variable->name)) operand.variable = variable;
  });
}

/// Those of another module that are wanted.
void Add(ptx::Module& module, ptx::Module&& of, const std::set<std::string_view>& wanted) {
  const auto first = std::ranges::find_if(module.items, HasBody);
  std::vector<ModuleItem> declared(module.items.begin(), first), rest(first, module.items.end());
  for (ptx::Variable& variable : of.variables) {
    if (wanted.contains(variable.name) && module.FindVariable(variable.name) == nullptr)
      declared.emplace_back(&module.variables.emplace_back(std::move(variable)));
  }
  std::vector<Function*> defined;
  for (Function& function : of.functions) {
    if (!wanted.contains(function.name)) continue;
    const Function* const there = module.FindFunction(function.name);
    if (there != nullptr && (there->body != nullptr || function.body == nullptr)) {
      // PTX wants a declaration in front of what uses a function.
      const auto is_it = [&](const ModuleItem& item) {
        const auto* const one = std::get_if<Function*>(&item);
        return one != nullptr && (*one)->name == function.name;
      };
      if (there->is_entry || function.body != nullptr || std::ranges::any_of(declared, is_it)) continue;
    }
    Function& added = module.functions.emplace_back(std::move(function));
    if (added.body == nullptr) declared.emplace_back(&added);
    else defined.push_back(&added);
  }
  for (Function* const function : defined) rest.emplace_back(function);
  module.strings.Absorb(std::move(of.strings));
  for (Function* const function : defined) Rebind(module, *function);
  module.items = std::move(declared);
  module.items.insert(module.items.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
}

}  // namespace

std::string With(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

void AddModuleText(ptx::Module& module, const std::string& text) {
  const std::string source = ".version 9.0\n.target sm_90\n.address_size 64\n" + text;
  DiagnosticSink sink;
  auto parsed = ptx::ParseModule(source, sink);
  GL_CHECK(!sink.has_errors(), FormatDiagnostics(sink, "text of a pass", source).c_str());
  AddModule(module, std::move(*parsed));
}

void AddModule(ptx::Module& module, ptx::Module&& of) {
  std::set<std::string_view> all;
  for (const ptx::Variable& variable : of.variables) all.insert(variable.name);
  for (const Function& function : of.functions) all.insert(function.name);
  Add(module, std::move(of), all);
}

void AddFunctions(ptx::Module& module, ptx::Module&& of, const std::vector<std::string>& functions) {
  std::vector<std::string_view> left(functions.begin(), functions.end());
  std::set<std::string_view> reached;
  while (!left.empty()) {
    const std::string_view name = left.back();
    left.pop_back();
    Function* const function = reached.insert(name).second ? of.FindFunction(name) : nullptr;
    if (function == nullptr || function->body == nullptr) continue;
    ptx::VisitOperands(*function->body, [&](ptx::Operand& operand) {
      if (operand.function != nullptr) left.push_back(operand.function->name);
      if (operand.kind == ptx::OperandKind::kSymbol && operand.variable != nullptr)
        left.push_back(operand.variable->name);
    });
  }
  Add(module, std::move(of), reached);
}

}  // namespace gridloom::passes
