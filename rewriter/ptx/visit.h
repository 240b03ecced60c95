// Calls a function for every operand of a body, a statement or an initialiser, nested ones included.
#pragma once

#include <type_traits>
#include <variant>

#include "rewriter/ptx/ir.h"

namespace gridloom::ptx {

/// `operand` itself, then what is inside it.
template <typename Op, typename Visit>
requires std::is_same_v<std::remove_const_t<Op>, Operand>
void VisitOperand(Op& operand, const Visit& visit) {
  visit(operand);
  for (Op& element : operand.elements) VisitOperand(element, visit);
  if (operand.address == nullptr) return;
  for (Op& base : operand.address->base) VisitOperand(base, visit);
  for (Op& element : operand.address->elements) VisitOperand(element, visit);
}

template <typename Visit>
void VisitOperands(Variable& variable, const Visit& visit) {
  for (Initializer& element : variable.initializer) {
    if (auto* operand = std::get_if<Operand>(&element.value)) VisitOperand(*operand, visit);
  }
}

/// All statements of a block and of the blocks inside it; a nested block itself comes before its statements.
template <typename Visit>
void VisitStatements(Block& block, const Visit& visit) {
  for (Statement& statement : block.statements) {
    visit(statement);
    if (auto* nested = std::get_if<std::unique_ptr<Block>>(&statement)) VisitStatements(**nested, visit);
  }
}

template <typename Visit>
void VisitOperands(Statement& statement, const Visit& visit) {
  if (auto* instruction = std::get_if<Instruction>(&statement)) {
    for (Operand& operand : instruction->operands) VisitOperand(operand, visit);
  } else if (auto* directive = std::get_if<std::unique_ptr<LabelDirective>>(&statement)) {
    for (Operand& operand : (*directive)->targets) VisitOperand(operand, visit);
  } else if (auto* variable = std::get_if<Variable*>(&statement)) {
    VisitOperands(**variable, visit);
  }
}

template <typename Visit>
void VisitOperands(Block& block, const Visit& visit) {
  VisitStatements(block, [&](Statement& statement) { VisitOperands(statement, visit); });
}

}  // namespace gridloom::ptx
