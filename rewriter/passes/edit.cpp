#include "rewriter/passes/edit.h"

#include <iterator>
#include <utility>

#include "rewriter/ptx/parser.h"
#include "rewriter/ptx/visit.h"
#include "rewriter/support/check.h"

namespace gridloom::passes {

using ptx::Block;
using ptx::Instruction;
using ptx::LabelDirective;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Statement;
using ptx::Variable;

Operand RegisterOperand(const Variable& variable, std::uint32_t index) {
  Operand operand;
  operand.kind = OperandKind::kRegister;
  operand.variable = const_cast<Variable*>(&variable);
  operand.index = index;
  operand.text = variable.name;
  return operand;
}

Operand SymbolOperand(const Variable& variable) {
  Operand operand = RegisterOperand(variable);
  operand.kind = OperandKind::kSymbol;
  return operand;
}

Operand IntOperand(std::uint64_t value) {
  Operand operand;
  operand.kind = OperandKind::kInt;
  operand.int_literal.value = value;
  return operand;
}

FunctionEditor::FunctionEditor(ptx::Module& module, ptx::Function& function) : module_(module), function_(function) {
  const auto declare = [this](Variable& variable) {
    if (variable.range_count != 0) symbols_.DeclareRange(variable.name, &variable);
    else symbols_.Declare(variable.name, {.variable = &variable});
  };
  for (Variable& variable : module.variables) declare(variable);
  // Definitions hide prototypes.
  for (const bool defined : {false, true}) {
    for (ptx::Function& one : module.functions) {
      if ((one.body != nullptr) == defined) symbols_.Declare(one.name, {.function = &one});
    }
  }
  symbols_.PushScope();
  for (Variable& variable : function.returns) declare(variable);
  for (Variable& variable : function.params) declare(variable);
  symbols_.PushScope();
  for (Variable& variable : function.body->variables) declare(variable);
  for (ptx::Label& label : function.body->labels) symbols_.Declare(label.name, {.label = &label});
  const auto take = [this](const Block& block) {
    for (const Variable& variable : block.variables) taken_.insert(variable.name);
    for (const ptx::Label& label : block.labels) taken_.insert(label.name);
  };
  take(*function.body);
  ptx::VisitStatements(*function.body, [&](Statement& statement) {
    if (auto* nested = std::get_if<std::unique_ptr<Block>>(&statement)) take(**nested);
    if (auto* directive = std::get_if<std::unique_ptr<LabelDirective>>(&statement)) {
      taken_.insert((*directive)->name);
      symbols_.Declare((*directive)->name, {.directive = directive->get()});
    }
  });
}

FunctionEditor::~FunctionEditor() {
  auto& statements = function_.body->statements;
  statements.insert(statements.begin(), std::make_move_iterator(declarations_.begin()),
                    std::make_move_iterator(declarations_.end()));
}

std::string FunctionEditor::FreshName(std::string name) {
  const std::string stem = name;
  for (unsigned i = 0; taken_.contains(name) || symbols_.Find(name).found(); ++i) name = stem + "_" + std::to_string(i);
  taken_.insert(module_.strings.Intern(name));
  return name;
}

std::string FunctionEditor::NewVariable(ptx::StateSpace space, ptx::ScalarType type, std::string_view hint) {
  const std::string name = FreshName((space == ptx::StateSpace::kReg ? "%gl_" : "gl_") + std::string(hint));
  Variable& variable = function_.body->variables.emplace_back();
  variable.loc = function_.body->loc;
  variable.name = module_.strings.Intern(name);
  variable.space = space;
  variable.type = type;
  symbols_.Declare(variable.name, {.variable = &variable});
  declarations_.emplace_back(&variable);
  return name;
}

std::string FunctionEditor::NewLabel(std::string_view hint) { return FreshName("$gl_" + std::string(hint)); }

void FunctionEditor::Resolve(Operand& operand) const {
  if (operand.kind != OperandKind::kName || operand.directive != nullptr) return;
  const ptx::Symbol symbol = symbols_.Find(operand.text);
  GL_CHECK(symbol.found(), std::string(operand.text).c_str());
  operand.variable = symbol.variable;
  operand.function = symbol.function;
  operand.label = symbol.label;
  operand.directive = symbol.directive;
  operand.index = symbol.index;
  if (symbol.label != nullptr) operand.kind = OperandKind::kLabel;
  else if (symbol.directive == nullptr)
    operand.kind = symbol.variable != nullptr && symbol.variable->space == ptx::StateSpace::kReg
                       ? OperandKind::kRegister
                       : OperandKind::kSymbol;
}

void FunctionEditor::Resolve(Statement& statement, SourceLoc loc) const {
  ptx::VisitOperands(statement, [&](Operand& operand) {
    Resolve(operand);
    operand.loc = loc;
  });
  if (auto* nested = std::get_if<std::unique_ptr<Block>>(&statement)) {
    for (Statement& inner : (*nested)->statements) Resolve(inner, loc);
    return;
  }
  auto* instruction = std::get_if<Instruction>(&statement);
  if (instruction == nullptr) return;
  instruction->loc = loc;
  if (!instruction->guard) return;
  instruction->guard->loc = loc;
  if (instruction->guard->predicate != nullptr) return;
  const ptx::Symbol symbol = symbols_.Find(instruction->guard->text);
  GL_CHECK(symbol.variable != nullptr, std::string(instruction->guard->text).c_str());
  instruction->guard->predicate = symbol.variable;
  instruction->guard->index = symbol.index;
}

std::vector<Statement> FunctionEditor::Text(std::string_view text, SourceLoc loc) {
  DiagnosticSink sink;
  const std::string source =
      ".version 9.0\n.target sm_90\n.address_size 64\n.func gl_text() {\n" + std::string(text) + "\n}\n";
  const auto parsed = ptx::ParseModule(source, sink);
  GL_CHECK(!sink.has_errors(), FormatDiagnostics(sink, "text of a pass", source).c_str());
  std::unique_ptr<Block> body = std::move(parsed->functions.front().body);
  module_.strings.Absorb(std::move(parsed->strings));
  for (Statement& statement : body->statements) Resolve(statement, loc);
  if (body->variables.empty() && body->labels.empty()) return std::move(body->statements);
  body->loc = body->end_loc = loc;
  std::vector<Statement> statements;
  statements.emplace_back(std::move(body));
  return statements;
}

void EditStatements(Block& block, const StatementEdit& edit) {
  std::vector<Statement> out;
  out.reserve(block.statements.size());
  const auto append = [&out](std::vector<Statement>& more) {
    out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  for (Statement& statement : block.statements) {
    Replacement replacement;
    edit(statement, replacement);
    if (auto* nested = std::get_if<std::unique_ptr<Block>>(&statement)) EditStatements(**nested, edit);
    append(replacement.before);
    if (!replacement.drop) out.push_back(std::move(statement));
    append(replacement.after);
  }
  block.statements = std::move(out);
}

void InsertAtEntry(Block& body, std::vector<Statement> statements) {
  std::size_t at = 0;
  while (at < body.statements.size() && std::holds_alternative<Variable*>(body.statements[at])) ++at;
  body.statements.insert(body.statements.begin() + static_cast<std::ptrdiff_t>(at),
                         std::make_move_iterator(statements.begin()), std::make_move_iterator(statements.end()));
}

}  // namespace gridloom::passes
