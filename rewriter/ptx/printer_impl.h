// The printer behind printer.h: appends to one string. Declarations are in print_declaration.cpp, statements and
// operands in printer.cpp.
#pragma once

#include <string>
#include <string_view>

#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::ptx {

class Printer {
 public:
  std::string Take() { return std::move(out_); }

  void PrintModule(const Module& module);
  void PrintInstruction(const Instruction& instruction);
  void PrintOperand(const Operand& operand);
  void PrintVariable(const Variable& variable);
  void PrintFunctionHeader(const Function& function);
  void PrintFunctionCode(const Function& function, const SymbolNames& names);

 private:
  void Write(std::string_view text) { out_ += text; }
  std::string_view NameOf(const Function& function) const;
  std::string_view NameOf(const Variable& variable) const;
  void WriteUnsigned(std::uint64_t value);
  void WriteHex(std::uint64_t value, int digits);
  void WriteOffset(std::int64_t offset);
  void Indent() { out_.append(static_cast<std::size_t>(depth_), '\t'); }

  // --- declarations (print_declaration.cpp)
  void PrintHeader(const Module& module);
  void PrintFunction(const Function& function);
  void PrintParameters(const std::deque<Variable>& parameters, bool ellipsis);
  void PrintFunctionDirective(const FunctionDirective& directive);
  void PrintAttributes(const std::vector<std::string_view>& attributes);
  void PrintType(const Variable& variable);
  void PrintPointer(const Variable& variable);
  void PrintInitializer(const Variable& variable);
  void PrintInitializerElement(const Initializer& element);
  void PrintText(const TextDirective& directive);
  void PrintLabelDirective(const LabelDirective& directive);

  // --- statements and operands (printer.cpp)
  void PrintBlock(const Block& block);
  void PrintStatement(const Statement& statement);
  void PrintLoc(const LocDirective& loc);
  void PrintGuard(const Guard& guard);
  void PrintName(const Operand& operand);
  void PrintSelector(const Operand& operand);
  void PrintVariableName(const Variable& variable, std::uint32_t index);
  void PrintInt(const IntLiteral& literal);
  void PrintFloat(const FloatLiteral& literal);
  void PrintAddress(const AddressOperand& address);
  void PrintOperands(const std::vector<Operand>& operands, std::string_view separator);

  std::string out_;
  int depth_ = 0;
  bool with_places_ = true;             ///< .loc and .file, too
  const SymbolNames* names_ = nullptr;  ///< of module scope; null: their own
  SymbolNames parameters_;              ///< of the function
};

}  // namespace gridloom::ptx
