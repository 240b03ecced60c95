// Parts of the transfer functions; used by value_math.cpp alone.
#pragma once

#include <vector>

#include "rewriter/analysis/value_math.h"
#include "rewriter/ptx/defuse.h"

namespace gridloom::analysis {

/// Bounds of an operation on intervals.
Interval ApplyRange(RangeOp op, const std::vector<Interval>& operands);
/// What is known of the result of a uniform instruction.
Interval UniformBounds(const SymbolPool& pool, const ptx::Instruction& instruction,
                       const std::vector<ValueRef>& operands, unsigned bits);

/// One instruction and its operands.
struct Transfer {
  ValueMath& math;
  const ptx::Instruction& instruction;
  const std::vector<ValueRef>& operands;
  unsigned bits;  ///< of the register written
  LoopInstanceId loop;

  /// Null when nothing better than an operation of its own or any value can be said.
  ValueRef Run();
  PredicateRef PredicateOf();

  // Called through the table in transfer.cpp.
  ValueRef Add();
  ValueRef Subtract();
  ValueRef Multiply();
  ValueRef MultiplyAdd();
  ValueRef Negate();
  ValueRef Not();
  ValueRef ShiftLeft();
  ValueRef ShiftRight();
  ValueRef And();
  ValueRef Or();
  ValueRef Xor();
  ValueRef MinMax();
  ValueRef Divide();
  ValueRef Remainder();
  ValueRef Absolute();
  ValueRef Convert();
  ValueRef Move();
  ValueRef Select();

 private:
  unsigned type_bits() const { return ptx::BitsOf(instruction.type()); }
  bool is_signed() const { return ptx::IsSigned(instruction.type()); }
  bool uniform() const;
  ValueRef Product(const ValueRef& a, const ValueRef& b);
  ValueRef Exact(std::size_t n) { return math.Exact(operands[n], is_signed()); }
  Interval BoundsOf(const ValueRef& value) const { return math.pool_.BoundsOf(value->number); }
  ValueRef Sum(const ValueRef& a, const ValueRef& b, std::int64_t factor, unsigned sum_bits);
  PredicateRef Comparison();
};

/// Operands an instruction reads outside of addresses: registers, constants, special registers, symbols.
template <typename Visit>
void VisitReads(const ptx::Instruction& instruction, const Visit& visit) {
  const ptx::Form* form = ptx::FormOf(instruction);
  const auto leaves = [&](const auto& self, const ptx::Operand& operand) -> void {
    if (operand.elements.empty()) return visit(operand);
    for (const ptx::Operand& element : operand.elements) self(self, element);
  };
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    if (ptx::detail::UseOf(instruction, form, i).reads) leaves(leaves, instruction.operands[i]);
  }
}

}  // namespace gridloom::analysis
