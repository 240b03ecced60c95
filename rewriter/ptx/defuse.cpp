#include "rewriter/ptx/defuse.h"

namespace gridloom::ptx {

namespace detail {

// call (results), function, (arguments), targets: the list before the function is written.
OperandUse UseOfCall(const Instruction& instruction, std::size_t n) {
  const bool has_results = instruction.operands[0].kind == OperandKind::kList && instruction.operands.size() > 1;
  if (has_results && n == 0) return {.reads = false, .writes = true};
  return {.reads = true, .writes = false};
}

OperandUse UseOf(const Instruction& instruction, const Form* form, std::size_t n) {
  if (instruction.operands[n].kind == OperandKind::kAddress) return {};
  if (instruction.Has(Trait::kCalls)) return UseOfCall(instruction, n);
  const OperandForm* operand = form != nullptr ? form->At(n, instruction.operands.size()) : nullptr;
  if (operand == nullptr) return {.reads = true, .writes = true};
  return {.reads = operand->reads(), .writes = operand->writes()};
}

}  // namespace detail

bool ReadsCarry(const Instruction& instruction) { return instruction.Has(Trait::kReadsCarry); }

bool WritesCarry(const Instruction& instruction) { return instruction.Has(Mod::kCc); }

}  // namespace gridloom::ptx
