#include "rewriter/passes/special_reads.h"

#include "rewriter/ptx/visit.h"

namespace gridloom::passes {

SpecialRegisters ReplaceSpecials(FunctionEditor& editor, std::initializer_list<std::string_view> vectors) {
  SpecialRegisters registers;
  for (const std::string_view vector : vectors) {
    for (const char axis : {'x', 'y', 'z'}) {
      const std::string hint = std::string(vector.substr(1)) + "_" + axis;
      registers.emplace(std::string(vector) + "." + axis, editor.NewRegister(ptx::ScalarType::kB32, hint));
    }
  }
  ptx::VisitOperands(*editor.function().body, [&](ptx::Operand& operand) {
    if (operand.kind != ptx::OperandKind::kSpecial) return;
    const auto found = registers.find(operand.text);
    if (found == registers.end()) return;
    const SourceLoc loc = operand.loc;
    operand = RegisterOperand(*editor.Find(found->second).variable);
    operand.loc = loc;
  });
  return registers;
}

}  // namespace gridloom::passes
