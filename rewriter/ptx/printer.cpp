#include "rewriter/ptx/printer.h"

#include <charconv>

#include "rewriter/ptx/lazy_bodies.h"
#include "rewriter/ptx/printer_impl.h"

namespace gridloom::ptx {

std::string PrintModule(const Module& module) {
  ReadAllBodies(module);
  return PrintModuleAsRead(module);
}

std::string PrintModuleAsRead(const Module& module) {
  Printer printer;
  printer.PrintModule(module);
  return printer.Take();
}

std::string PrintInstruction(const Instruction& instruction) {
  Printer printer;
  printer.PrintInstruction(instruction);
  return printer.Take();
}

std::string PrintOperand(const Operand& operand) {
  Printer printer;
  printer.PrintOperand(operand);
  return printer.Take();
}

std::string PrintVariable(const Variable& variable) {
  Printer printer;
  printer.PrintVariable(variable);
  return printer.Take();
}

std::string PrintFunctionHeader(const Function& function) {
  Printer printer;
  printer.PrintFunctionHeader(function);
  return printer.Take();
}

std::string PrintFunctionCode(const Function& function, const SymbolNames& names) {
  Printer printer;
  printer.PrintFunctionCode(function, names);
  return printer.Take();
}

std::string_view Printer::NameOf(const Function& function) const {
  if (names_ == nullptr) return function.name;
  const auto found = names_->find(&function);
  return found != names_->end() ? std::string_view(found->second) : function.name;
}

std::string_view Printer::NameOf(const Variable& variable) const {
  if (names_ == nullptr || variable.space == StateSpace::kReg) return variable.name;
  for (const SymbolNames* const names : {&parameters_, names_}) {
    if (const auto found = names->find(&variable); found != names->end()) return found->second;
  }
  return variable.name;
}

void Printer::WriteUnsigned(std::uint64_t value) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  out_.append(digits, result.ptr);
}

void Printer::WriteHex(std::uint64_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out_ += "0123456789ABCDEF"[value >> shift & 15];
}

// A negative offset is "+-4": ptxas knows no "-4" there.
void Printer::WriteOffset(std::int64_t offset) {
  Write(offset < 0 ? "+-" : "+");
  const auto bits = static_cast<std::uint64_t>(offset);
  WriteUnsigned(offset < 0 ? 0 - bits : bits);
}

// ---------------------------------------------------------------------------------------------------------------------
// Statements
// ---------------------------------------------------------------------------------------------------------------------

/// Whether it only tells which source line something came from.
static bool IsPlace(const Statement& statement) {
  const auto* const text = std::get_if<TextDirective>(&statement);
  return std::holds_alternative<LocDirective>(statement) ||
         (text != nullptr && (text->name == ".file" || text->name == ".loc_intermediate"));
}

void Printer::PrintBlock(const Block& block) {
  Indent();
  Write("{\n");
  ++depth_;
  for (const Statement& statement : block.statements) {
    if (with_places_ || !IsPlace(statement)) PrintStatement(statement);
  }
  --depth_;
  Indent();
  Write("}\n");
}

void Printer::PrintStatement(const Statement& statement) {
  struct Visitor {
    Printer& p;
    void operator()(const Instruction& instruction) const {
      p.Indent();
      p.PrintInstruction(instruction);
    }
    void operator()(const Label* label) const {
      p.Write(label->name);
      p.out_ += ':';
    }
    void operator()(const Variable* variable) const {
      p.Indent();
      p.PrintVariable(*variable);
      p.out_ += ';';
    }
    void operator()(const std::unique_ptr<LabelDirective>& directive) const { p.PrintLabelDirective(*directive); }
    void operator()(const LocDirective& loc) const { p.PrintLoc(loc); }
    void operator()(const TextDirective& directive) const {
      p.Indent();
      p.PrintText(directive);
    }
    void operator()(const std::unique_ptr<Block>& block) const { p.PrintBlock(*block); }
  };
  std::visit(Visitor{*this}, statement);
  if (!std::holds_alternative<std::unique_ptr<Block>>(statement)) out_ += '\n';
}

void Printer::PrintLoc(const LocDirective& loc) {
  Indent();
  Write(".loc ");
  WriteUnsigned(loc.file);
  out_ += ' ';
  WriteUnsigned(loc.line);
  out_ += ' ';
  WriteUnsigned(loc.column);
  Write(loc.rest);
}

void Printer::PrintGuard(const Guard& guard) {
  Write(guard.negated ? "@!" : "@");
  if (guard.predicate != nullptr) {
    PrintVariableName(*guard.predicate, guard.index);
  } else {
    Write(guard.text);
  }
  out_ += ' ';
}

void Printer::PrintInstruction(const Instruction& instruction) {
  if (instruction.guard) PrintGuard(*instruction.guard);
  Write(instruction.name);
  for (const Modifier& modifier : instruction.modifiers) {
    out_ += '.';
    Write(modifier.text);
  }
  if (!instruction.operands.empty()) {
    out_ += ' ';
    PrintOperands(instruction.operands, ", ");
  }
  out_ += ';';
}

// ---------------------------------------------------------------------------------------------------------------------
// Operands
// ---------------------------------------------------------------------------------------------------------------------

void Printer::PrintOperands(const std::vector<Operand>& operands, std::string_view separator) {
  bool first = true;
  for (const Operand& operand : operands) {
    if (!first) Write(separator);
    first = false;
    PrintOperand(operand);
  }
}

void Printer::PrintOperand(const Operand& operand) {
  if (operand.negated) out_ += '!';
  if (operand.minus) out_ += '-';
  switch (operand.kind) {
    case OperandKind::kInt: PrintInt(operand.int_literal); break;
    case OperandKind::kFloat: PrintFloat(operand.float_literal); break;
    case OperandKind::kAddress:
      if (operand.address) PrintAddress(*operand.address);
      PrintSelector(operand);
      break;
    case OperandKind::kVector:
      out_ += '{';
      PrintOperands(operand.elements, ", ");
      out_ += '}';
      break;
    case OperandKind::kPair: PrintOperands(operand.elements, "|"); break;
    case OperandKind::kList:
      out_ += '(';
      PrintOperands(operand.elements, ", ");
      out_ += ')';
      break;
    case OperandKind::kSink: out_ += '_'; break;
    case OperandKind::kString:
      out_ += '"';
      Write(operand.text);
      out_ += '"';
      break;
    case OperandKind::kRegister:
    case OperandKind::kSpecial:
    case OperandKind::kSymbol:
    case OperandKind::kLabel:
    case OperandKind::kName: PrintName(operand); break;
  }
}

void Printer::PrintName(const Operand& operand) {
  if (operand.variable != nullptr) {
    PrintVariableName(*operand.variable, operand.index);
  } else if (operand.function != nullptr) {
    Write(NameOf(*operand.function));
  } else if (operand.label != nullptr) {
    Write(operand.label->name);
  } else if (operand.directive != nullptr) {
    Write(operand.directive->name);
  } else {
    Write(operand.text);
  }
  PrintSelector(operand);
  if (operand.offset != 0) WriteOffset(operand.offset);
}

void Printer::PrintSelector(const Operand& operand) {
  if (operand.element != 0) {
    out_ += '.';
    out_ += operand.element;
  } else if (!operand.selector.empty()) {
    out_ += '.';
    Write(operand.selector);
  }
}

void Printer::PrintVariableName(const Variable& variable, std::uint32_t index) {
  Write(NameOf(variable));
  if (variable.range_count != 0) WriteUnsigned(index);
}

void Printer::PrintInt(const IntLiteral& literal) {
  if (literal.negative) out_ += '-';
  WriteUnsigned(literal.negative ? 0 - literal.value : literal.value);
  // Values of 2^63 and more are unsigned without saying so.
  if (literal.is_unsigned && literal.value >> 63 == 0) out_ += 'U';
}

void Printer::PrintFloat(const FloatLiteral& literal) {
  if (!literal.text.empty()) {
    if (literal.negative) out_ += '-';
    Write(literal.text);
  } else {
    Write(literal.width == 32 ? "0f" : "0d");
    WriteHex(literal.bits, literal.width / 4);
  }
}

void Printer::PrintAddress(const AddressOperand& address) {
  out_ += '[';
  if (address.base.empty()) {
    if (address.offset < 0) out_ += '-';
    const auto bits = static_cast<std::uint64_t>(address.offset);
    WriteUnsigned(address.offset < 0 ? 0 - bits : bits);
  } else {
    PrintOperand(address.base.front());
    if (address.offset != 0 || address.printed_offset) WriteOffset(address.offset);
  }
  for (const Operand& element : address.elements) {
    Write(", ");
    PrintOperand(element);
  }
  out_ += ']';
}

}  // namespace gridloom::ptx
