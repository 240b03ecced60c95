// Registers an instruction writes and reads, by the instruction table. Operands are visited as kRegister operands:
// `variable` and `index` say which register, `element` which component of a vector register (0: all of it).
#pragma once

#include <type_traits>

#include "rewriter/ptx/form.h"
#include "rewriter/ptx/ir.h"

namespace gridloom::ptx {

namespace detail {

/// What an operand does with its registers, apart from those inside an address, which are read.
struct OperandUse {
  bool reads = false;
  bool writes = false;
};
/// The use of the n-th operand. An instruction that no table knows may do both with each of its registers.
OperandUse UseOf(const Instruction& instruction, const Form* form, std::size_t n);

template <typename Op, typename Visit>
void VisitRegisters(Op& operand, bool inside_addresses, const Visit& visit) {
  if (operand.kind == OperandKind::kRegister) visit(operand);
  for (auto& element : operand.elements) VisitRegisters(element, inside_addresses, visit);
  if (!inside_addresses || operand.address == nullptr) return;
  for (auto& base : operand.address->base) VisitRegisters(base, true, visit);
  for (auto& element : operand.address->elements) VisitRegisters(element, true, visit);
}

}  // namespace detail

/// Calls `visit(Operand&)` for every register the instruction writes. Under a guard it may keep its old value.
template <typename Inst, typename Visit>
requires std::is_same_v<std::remove_const_t<Inst>, Instruction>
void VisitDefs(Inst& instruction, const Visit& visit) {
  const Form* form = FormOf(instruction);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    if (detail::UseOf(instruction, form, i).writes) detail::VisitRegisters(instruction.operands[i], false, visit);
  }
}

/// Calls `visit(Operand&)` for every register operand the instruction reads, those of addresses included. The guard is
/// not an operand: see VisitGuard.
template <typename Inst, typename Visit>
requires std::is_same_v<std::remove_const_t<Inst>, Instruction>
void VisitUses(Inst& instruction, const Visit& visit) {
  const Form* form = FormOf(instruction);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    auto& operand = instruction.operands[i];
    const bool reads = detail::UseOf(instruction, form, i).reads;
    if (reads || operand.kind == OperandKind::kAddress) detail::VisitRegisters(operand, true, visit);
  }
}

/// Calls `visit(Variable&, index)` for the guard predicate, which is read.
template <typename Visit>
void VisitGuard(const Instruction& instruction, const Visit& visit) {
  if (instruction.guard && instruction.guard->predicate != nullptr) {
    visit(*instruction.guard->predicate, instruction.guard->index);
  }
}

/// The carry flag (CC.CF): add.cc, sub.cc, mad.cc write it, addc, subc, madc read it.
bool ReadsCarry(const Instruction& instruction);
bool WritesCarry(const Instruction& instruction);

}  // namespace gridloom::ptx
