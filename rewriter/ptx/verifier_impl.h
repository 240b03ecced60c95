// The verifier behind VerifyModule: verifier.cpp (module, scopes, functions), verify_declaration.cpp,
// verify_instruction.cpp (modifiers, requirements, arity, special rules), verify_operand.cpp (types and state spaces),
// verify_call.cpp.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rewriter/ptx/form.h"
#include "rewriter/ptx/ir.h"
#include "rewriter/ptx/verifier.h"
#include "rewriter/support/diagnostic.h"

namespace gridloom::ptx {

/// .target of a module, taken apart.
struct Target {
  unsigned sm = 0;
  char suffix = '\0';  ///< 'a' or 'f' of an architecture- or family-specific target
};
Target TargetOf(const Module& module);

class Verifier {
 public:
  Verifier(const Module& module, DiagnosticSink& sink, PtxOrigin origin);

  void VerifyModule();

  void VerifyFunction(const Function& function);
  /// Whatever is not known is an error from now on.
  void BeStrict() { strict_ = true; }
  void VerifyInstruction(const Instruction& instruction);

 private:
  /// In doubt a warning.
  void Error(SourceLoc loc, std::string message) {
    if (in_doubt_) sink_.Warning(loc, std::move(message));
    else sink_.Error(loc, std::move(message));
  }
  /// An error when the module's PTX version is one the tables describe and it was written by hand, else a warning.
  void UnknownWord(SourceLoc loc, std::string message);
  void TooOld(SourceLoc loc, std::string message);

  // --- module, scopes, functions (verifier.cpp)
  using Names = std::unordered_map<std::string_view, SourceLoc>;
  void VerifyHeader();
  void VerifyConstants();
  void VerifyGlobalNames();
  void VerifyParameters(const Function& function);
  void VerifyAlias(const AliasDirective& alias);
  void VerifyBlock(const Block& block, Names names, int depth);
  void VerifyBlockNames(const Block& block, Names& names);
  void DeclareName(Names& names, std::string_view name, SourceLoc loc);
  void VerifyLabelDirective(const LabelDirective& directive);
  /// `name` gives what has the needs; it is asked only for a message.
  template <typename Name>
  void CheckNeeds(SourceLoc loc, const Name& name, const Requirement& needs) {
    if (!Meets(needs)) ReportNeeds(loc, name(), needs);
  }
  bool Meets(const Requirement& needs) const;
  void ReportNeeds(SourceLoc loc, const std::string& what, const Requirement& needs);

  // --- declarations (verify_declaration.cpp)
  void VerifyVariable(const Variable& variable, bool in_body);
  void VerifyVariableType(const Variable& variable);
  void VerifyArray(const Variable& variable, bool in_body);
  void VerifyInitializer(const Variable& variable);
  bool InitializerFits(const Variable& variable, const Initializer& element);

  // --- instructions (verify_instruction.cpp)
  void VerifyForm(const Instruction& instruction);
  bool VerifyComparison(const Instruction& instruction);
  bool VerifyNoftz(const Instruction& instruction);
  void VerifyGuard(const Instruction& instruction);
  bool VerifyModifiers(const Instruction& instruction);
  bool VerifyTypes(const Instruction& instruction, const Form& form);
  bool VerifyCount(const Instruction& instruction, const Form& form);
  bool VerifySpace(const Instruction& instruction);
  void VerifyOperands(const Instruction& instruction, const Form& form);
  bool VerifyUndefined(const Operand& operand);

  // --- operands (verify_operand.cpp)
  bool VerifyOperand(const Instruction& instruction, const OperandForm& form, const Operand& operand);
  bool VerifyPair(const Instruction& instruction, const OperandForm& form, const Operand& operand);
  bool VerifyVector(const Instruction& instruction, const OperandForm& form, const Operand& operand);
  bool VerifyElement(const Instruction& instruction, const OperandForm& form, const Operand& element);
  bool VerifyPacked(const Instruction& instruction, const OperandForm& form, const Operand& operand);
  bool VerifyScalar(const Instruction& instruction, const OperandForm& form, const Operand& operand, ScalarType type);
  bool VerifyRegister(const Instruction& instruction, const OperandForm& form, const Operand& operand, ScalarType type);
  bool VerifyConstant(const Instruction& instruction, const OperandForm& form, const Operand& operand, ScalarType type);
  bool VerifySpecial(const Instruction& instruction, const OperandForm& form, const Operand& operand);
  bool VerifySymbol(const Instruction& instruction, const OperandForm& form, const Operand& operand);
  bool VerifyMemory(const Instruction& instruction, const Operand& operand);
  bool VerifyMemoryBase(const Instruction& instruction, const Operand& base);
  bool Fail(const Operand& operand, std::string message);
  bool Mismatch(const Instruction& instruction, const Operand& operand, std::string_view expected);

  // --- calls (verify_call.cpp)
  struct CallParts;
  void VerifyCall(const Instruction& instruction);
  bool SplitCall(const Instruction& instruction, CallParts& parts);
  void VerifyCallSignature(const Instruction& instruction, const CallParts& parts, const std::deque<Variable>& returns,
                           const std::deque<Variable>& params, bool variadic);
  void VerifyArgument(const Operand& argument, const Variable& parameter, bool is_result);

  const Module& module_;
  DiagnosticSink& sink_;
  const PtxOrigin origin_;
  unsigned ptx_ = 0;  // version as major * 10 + minor
  Target target_;
  bool strict_ = false;
  bool in_doubt_ = false;  // what is looked at may be of a PTX version that the tables do not describe
};

/// Whether a register of one type may stand where an instruction wants another (ISA 9.4, table of operand types).
bool RegisterFits(ScalarType declared, ScalarType wanted, bool wider_ok);

}  // namespace gridloom::ptx
