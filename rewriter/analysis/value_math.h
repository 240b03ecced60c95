// What instructions make of values: the transfer functions of the address analysis.
#pragma once

#include <string>
#include <vector>

#include "rewriter/analysis/symbols.h"

namespace gridloom::analysis {

class ValueMath {
 public:
  explicit ValueMath(SymbolPool& pool) : pool_(pool) {}

  /// The result of an instruction that touches no memory and no other thread, given the values of the operands it reads
  /// (in the order of operands; those of vectors and addresses flattened). `bits` of the register written; symbols that
  /// are made vary in `loop`.
  ValueRef Apply(const ptx::Instruction& instruction, const std::vector<ValueRef>& operands, unsigned bits,
                 LoopInstanceId loop);

  /// The register read as a signed or unsigned number: a value of 64 bits.
  ValueRef Exact(const ValueRef& value, bool is_signed);
  /// One of several, at a join or by a guard. `chosen_by`: null, or as many as alternatives.
  ValueRef Choice(std::vector<ValueRef> alternatives, LoopInstanceId loop, const ChosenByRef& chosen_by = nullptr);
  /// The same of exact values, as what all have in common and a choice of the rest: one of a, a + 4*n and a + 8*n is
  /// a + 4*n * {0, 1, 2}.
  ValueRef JoinOf(const std::vector<ValueRef>& alternatives, LoopInstanceId loop, const ChosenByRef& chosen_by);
  /// A symbol of its own for one of several exact values that may be another one each time round `loop`.
  ValueRef Varying(std::vector<ValueRef> alternatives, unsigned bits, LoopInstanceId loop,
                   ChosenByRef chosen_by = nullptr);
  ValueRef Data(std::string because, SourceLoc loc, unsigned bits) const;
  /// What rests on more assumptions than a launch will check is any number: each value on a chain of instructions takes
  /// on those of all before it, and their lists would be long as the chain is.
  ValueRef Limited(ValueRef value, LoopInstanceId loop) {
    return value->assumptions.size() > kMaxAssumptions ? Any(value->bits, loop) : value;
  }
  static constexpr std::size_t kMaxAssumptions = 64;
  ValueRef Any(unsigned bits, LoopInstanceId loop) { return Number(Polynomial::Of(pool_.Any(bits, loop)), bits); }
  /// `op` of exact numbers, as a number of `bits` bits.
  ValueRef Clamp(RangeOp op, const std::vector<ValueRef>& operands, unsigned bits);
  /// A symbol that is the pointer of a sum: the one of 64 bits, not multiplied, that comes from a parameter, a variable
  /// or a load. kNoSymbol when there is none or more than one.
  SymbolId PointerOf(const Polynomial& number) const;
  /// The innermost loop in which one of the symbols varies.
  LoopInstanceId VariesIn(const std::vector<ValueRef>& operands) const;

  SymbolPool& pool() { return pool_; }

 private:
  friend struct Transfer;

  ValueRef FirstData(const std::vector<ValueRef>& operands, unsigned bits) const;
  ValueRef Operation(const ptx::Instruction& instruction, const std::vector<ValueRef>& operands, unsigned bits);
  Polynomial NormalizedNumber(const Value& value, bool is_signed);

  SymbolPool& pool_;
};

/// The bits of an operand's value as the instruction reads it.
bool IsPure(const ptx::Instruction& instruction);

}  // namespace gridloom::analysis
