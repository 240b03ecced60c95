#include "sim/exec/runtime/warp_order.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/exec/layout.h"

namespace gridloom::exec {
namespace {

using RegisterId = std::pair<const ptx::Variable*, std::uint32_t>;

bool IsSharedSymbol(const ptx::Operand& operand) {
  return operand.kind == ptx::OperandKind::kSymbol && operand.variable && operand.variable->space == ptx::StateSpace::kShared;
}

}  // namespace

bool ReadsCommonWord(const ptx::Module& module, const ptx::Function& kernel) {
  std::set<RegisterId> symbols;  // registers that hold the address of a shared variable
  return std::ranges::any_of(NumberInstructions(module, kernel).instructions, [&](const ptx::Instruction* instruction) {
    if (instruction->operands.size() < 2) return false;
    const ptx::Operand &to = instruction->operands[0], &from = instruction->operands[1];
    if (instruction->opcode == ptx::Opcode::kMov && to.kind == ptx::OperandKind::kRegister && IsSharedSymbol(from))
      symbols.insert({to.variable, to.index});
    if (instruction->opcode != ptx::Opcode::kLd || instruction->space() != ptx::StateSpace::kShared || !from.address) return false;
    return std::ranges::any_of(from.address->base, [&](const ptx::Operand& base) {
      return IsSharedSymbol(base) || (base.kind == ptx::OperandKind::kRegister && symbols.contains({base.variable, base.index}));
    });
  });
}

}  // namespace gridloom::exec
