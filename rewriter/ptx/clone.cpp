#include "rewriter/ptx/clone.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/visit.h"

namespace gridloom::ptx {
namespace {

// First everything is copied member by member, so that the copies point to the originals; then Fix* leads every pointer
// to the copy, where there is one, and every text into the target's pool. Declarations are entered into `copies_` when
// they are copied, before anything that may refer to them is fixed.
class Cloner {
 public:
  explicit Cloner(StringPool& strings) : strings_(strings) {}

  void CopyModule(const Module& from, Module& to);
  void CopyFunction(const Function& from, Function& to);
  void FixFunction(Function& function);

 private:
  void CopyVariables(const std::deque<Variable>& from, std::deque<Variable>& to);
  std::unique_ptr<Block> CopyBlock(const Block& from);
  Statement CopyStatement(const Statement& from);

  void FixBlock(Block& block);
  void FixStatement(Statement& statement);
  void FixInstruction(Instruction& instruction);
  void FixLabelDirective(LabelDirective& directive);
  void FixVariable(Variable& variable);
  void FixOperand(Operand& operand);
  void FixItem(ModuleItem& item);

  void Fix(std::string_view& text) { text = text.data() == nullptr ? text : strings_.Intern(text); }
  void Fix(std::vector<std::string_view>& texts) {
    for (std::string_view& text : texts) Fix(text);
  }
  template <typename T>
  void Fix(T*& pointer) {
    if (const auto it = copies_.find(pointer); it != copies_.end()) pointer = static_cast<T*>(it->second);
  }

  StringPool& strings_;
  std::unordered_map<const void*, void*> copies_;
};

void Cloner::CopyVariables(const std::deque<Variable>& from, std::deque<Variable>& to) {
  for (const Variable& variable : from) copies_[&variable] = &to.emplace_back(variable);
}

void Cloner::CopyFunction(const Function& from, Function& to) {
  copies_[&from] = &to;
  to.loc = from.loc;
  to.name = from.name;
  to.is_entry = from.is_entry;
  to.linkage = from.linkage;
  to.noreturn = from.noreturn;
  to.attributes = from.attributes;
  to.target_sm = from.target_sm;
  CopyVariables(from.returns, to.returns);
  CopyVariables(from.params, to.params);
  to.variadic_param = from.variadic_param;
  to.directives = from.directives;
  if (from.body != nullptr) to.body = CopyBlock(*from.body);
}

std::unique_ptr<Block> Cloner::CopyBlock(const Block& from) {
  auto to = std::make_unique<Block>();
  to->loc = from.loc;
  to->end_loc = from.end_loc;
  CopyVariables(from.variables, to->variables);
  for (const Label& label : from.labels) copies_[&label] = &to->labels.emplace_back(label);
  to->statements.reserve(from.statements.size());
  for (const Statement& statement : from.statements) to->statements.push_back(CopyStatement(statement));
  return to;
}

Statement Cloner::CopyStatement(const Statement& from) {
  if (const auto* block = std::get_if<std::unique_ptr<Block>>(&from)) return CopyBlock(**block);
  if (const auto* old = std::get_if<std::unique_ptr<LabelDirective>>(&from)) {
    auto directive = std::make_unique<LabelDirective>();
    directive->loc = (*old)->loc;
    directive->kind = (*old)->kind;
    directive->name = (*old)->name;
    directive->targets = (*old)->targets;
    CopyVariables((*old)->returns, directive->returns);
    CopyVariables((*old)->params, directive->params);
    directive->noreturn = (*old)->noreturn;
    directive->rest = (*old)->rest;
    copies_[old->get()] = directive.get();
    return directive;
  }
  if (const auto* instruction = std::get_if<Instruction>(&from)) return *instruction;
  if (const auto* label = std::get_if<Label*>(&from)) return *label;
  if (const auto* variable = std::get_if<Variable*>(&from)) return *variable;
  if (const auto* loc = std::get_if<LocDirective>(&from)) return *loc;
  return std::get<TextDirective>(from);
}

void Cloner::CopyModule(const Module& from, Module& to) {
  to.version_major = from.version_major;
  to.version_minor = from.version_minor;
  to.targets = from.targets;
  to.address_size = from.address_size;
  to.has_address_size = from.has_address_size;
  to.items = from.items;
  CopyVariables(from.variables, to.variables);
  for (const Function& function : from.functions) CopyFunction(function, to.functions.emplace_back());
  Fix(to.targets);
  for (Variable& variable : to.variables) FixVariable(variable);
  for (Function& function : to.functions) FixFunction(function);
  for (ModuleItem& item : to.items) FixItem(item);
}

void Cloner::FixItem(ModuleItem& item) {
  if (auto* variable = std::get_if<Variable*>(&item)) {
    Fix(*variable);
  } else if (auto* function = std::get_if<Function*>(&item)) {
    Fix(*function);
  } else if (auto* alias = std::get_if<AliasDirective>(&item)) {
    Fix(alias->alias);
    Fix(alias->aliasee);
  } else {
    auto& text = std::get<TextDirective>(item);
    Fix(text.name);
    Fix(text.text);
  }
}

void Cloner::FixFunction(Function& function) {
  Fix(function.name);
  Fix(function.attributes);
  for (Variable& variable : function.returns) FixVariable(variable);
  for (Variable& variable : function.params) FixVariable(variable);
  for (FunctionDirective& directive : function.directives) {
    Fix(directive.name);
    Fix(directive.text);
  }
  if (function.body != nullptr) FixBlock(*function.body);
}

void Cloner::FixVariable(Variable& variable) {
  Fix(variable.name);
  Fix(variable.attributes);
  Fix(variable.sub_spaces);
  for (Initializer& element : variable.initializer) {
    Fix(element.field);
    if (auto* operand = std::get_if<Operand>(&element.value))
      VisitOperand(*operand, [this](Operand& one) { FixOperand(one); });
    if (auto* number = std::get_if<FloatLiteral>(&element.value)) Fix(number->text);
  }
}

void Cloner::FixBlock(Block& block) {
  for (Variable& variable : block.variables) FixVariable(variable);
  for (Label& label : block.labels) Fix(label.name);
  for (Statement& statement : block.statements) FixStatement(statement);
}

void Cloner::FixStatement(Statement& statement) {
  if (auto* block = std::get_if<std::unique_ptr<Block>>(&statement)) {
    FixBlock(**block);
  } else if (auto* directive = std::get_if<std::unique_ptr<LabelDirective>>(&statement)) {
    FixLabelDirective(**directive);
  } else if (auto* instruction = std::get_if<Instruction>(&statement)) {
    FixInstruction(*instruction);
  } else if (auto* label = std::get_if<Label*>(&statement)) {
    Fix(*label);
  } else if (auto* variable = std::get_if<Variable*>(&statement)) {
    Fix(*variable);
  } else if (auto* loc = std::get_if<LocDirective>(&statement)) {
    Fix(loc->rest);
  } else {
    auto& text = std::get<TextDirective>(statement);
    Fix(text.name);
    Fix(text.text);
  }
}

void Cloner::FixLabelDirective(LabelDirective& directive) {
  Fix(directive.name);
  Fix(directive.rest);
  for (Operand& target : directive.targets) VisitOperand(target, [this](Operand& one) { FixOperand(one); });
  for (Variable& variable : directive.returns) FixVariable(variable);
  for (Variable& variable : directive.params) FixVariable(variable);
}

void Cloner::FixInstruction(Instruction& instruction) {
  if (instruction.guard) {
    Fix(instruction.guard->predicate);
    Fix(instruction.guard->text);
  }
  Fix(instruction.name);
  for (Modifier& modifier : instruction.modifiers) Fix(modifier.text);
  for (Operand& operand : instruction.operands) VisitOperand(operand, [this](Operand& one) { FixOperand(one); });
}

void Cloner::FixOperand(Operand& operand) {
  Fix(operand.selector);
  Fix(operand.text);
  Fix(operand.float_literal.text);
  Fix(operand.variable);
  Fix(operand.function);
  Fix(operand.label);
  Fix(operand.directive);
}

}  // namespace

std::unique_ptr<Module> CloneModule(const Module& module) {
  ReadAllBodies(module);
  auto copy = std::make_unique<Module>();
  Cloner(copy->strings).CopyModule(module, *copy);
  return copy;
}

Function& CloneFunction(Module& module, const Function& function, std::string_view name) {
  Cloner cloner(module.strings);
  Function& copy = module.functions.emplace_back();
  const Function* const self = &function;
  cloner.CopyFunction(function, copy);
  cloner.FixFunction(copy);
  copy.name = module.strings.Intern(name);
  // A function that calls itself by its address calls the original: only inner declarations were to be led elsewhere.
  if (copy.body != nullptr) {
    VisitOperands(*copy.body, [&](Operand& operand) {
      if (operand.function == &copy) operand.function = const_cast<Function*>(self);
    });
  }
  const auto behind = std::ranges::find_if(module.items, [&](const ModuleItem& item) {
    const auto* const* listed = std::get_if<Function*>(&item);
    return listed != nullptr && *listed == self;
  });
  module.items.insert(behind == module.items.end() ? behind : behind + 1, ModuleItem(&copy));
  return copy;
}

}  // namespace gridloom::ptx
