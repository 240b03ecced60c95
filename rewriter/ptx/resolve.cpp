// Names: every identifier operand gets the declaration it refers to. Registers, variables and functions are declared
// before they are used; labels may come later, so they wait in `pending_` until their scope closes.
#include "rewriter/ptx/parser_impl.h"
#include "rewriter/ptx/special.h"

namespace gridloom::ptx {

void Parser::ResolveOperand(Operand& operand, bool label_expected) {
  switch (operand.kind) {
    case OperandKind::kName: ResolveName(operand, label_expected); break;
    case OperandKind::kVector:
    case OperandKind::kPair:
    case OperandKind::kList:
      for (Operand& element : operand.elements) ResolveOperand(element, false);
      break;
    case OperandKind::kAddress:
      for (Operand& base : operand.address->base) ResolveOperand(base, false);
      for (Operand& element : operand.address->elements) ResolveOperand(element, false);
      break;
    default: break;
  }
}

void Parser::ResolveName(Operand& operand, bool label_expected) {
  const Symbol symbol = symbols_.Find(operand.text);
  // A branch goes to the innermost label of that name, which may still come.
  const bool waits =
      symbol.label != nullptr || symbol.directive != nullptr || (label_expected && symbol.variable == nullptr);
  if (waits) {
    pending_.push_back(&operand);
  } else if (symbol.variable != nullptr) {
    operand.kind = symbol.variable->space == StateSpace::kReg ? OperandKind::kRegister : OperandKind::kSymbol;
    operand.variable = symbol.variable;
    operand.index = symbol.index;
  } else if (symbol.function != nullptr) {
    operand.kind = OperandKind::kSymbol;
    operand.function = symbol.function;
    NoteFunctionUse(operand);
  } else if (IsSpecialRegister(operand.text)) {
    operand.kind = OperandKind::kSpecial;
    if (operand.element != 0) {
      const char* end = operand.text.data() + operand.text.size();
      const bool adjacent = end < text_.data() + text_.size() - 1 && end[0] == '.' && end[1] == operand.element;
      operand.text = adjacent ? std::string_view(operand.text.data(), operand.text.size() + 2)
                              : module_.strings.Intern(std::string(operand.text) + '.' + operand.element);
      operand.element = 0;
    }
  } else {
    pending_.push_back(&operand);
  }
}

void Parser::ResolveGuard(Guard& guard) {
  const Symbol symbol = symbols_.Find(guard.text);
  if (symbol.variable == nullptr || symbol.variable->space != StateSpace::kReg) return;
  guard.predicate = symbol.variable;
  guard.index = symbol.index;
}

// Refers to a function seen so far only as a prototype: its definition may follow.
void Parser::NoteFunctionUse(Operand& operand) {
  if (operand.function->body == nullptr) function_uses_.push_back(&operand);
  else if (lazy_ != nullptr && operand.function->is_entry) named_kernels_.push_back(operand.function);
}

// Gives the labels of the innermost scope to those who wait for them; the others go on waiting in the scope around.
void Parser::CloseScope(std::size_t first_pending) {
  std::size_t kept = first_pending;
  for (std::size_t i = first_pending; i < pending_.size(); ++i) {
    Operand& operand = *pending_[i];
    const Symbol symbol = symbols_.FindExact(operand.text);
    const bool here = symbol.depth == symbols_.depth();
    if (here && symbol.label != nullptr) {
      operand.kind = OperandKind::kLabel;
      operand.label = symbol.label;
    } else if (here && symbol.directive != nullptr) {
      operand.directive = symbol.directive;
    } else {
      pending_[kept++] = &operand;
    }
  }
  pending_.resize(kept);
  symbols_.PopScope();
}

void Parser::ResolveAtModuleEnd() {
  for (Operand* operand : pending_) {
    const Symbol symbol = symbols_.FindExact(operand->text);
    if (!symbol.found()) continue;
    operand->kind = OperandKind::kSymbol;
    operand->variable = symbol.variable;
    operand->function = symbol.function;
    if (operand->function != nullptr) NoteFunctionUse(*operand);
  }
  for (Operand* operand : function_uses_) {
    const Symbol symbol = symbols_.FindExact(operand->text);
    if (symbol.function != nullptr) operand->function = symbol.function;
    if (lazy_ != nullptr && operand->function->is_entry) named_kernels_.push_back(operand->function);
  }
}

}  // namespace gridloom::ptx
