// Writes PTX that computes, for the CTA that executes it, what an address analysis found: the lowest and highest bytes
// of each access, as the paper's sampling of corner threads does (CRCS, 4.2.1), by arithmetic on intervals. Everything
// is computed by one thread and nothing is stored; values that all threads share are computed once.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rewriter/analysis/address_analysis.h"

namespace gridloom::passes {

/// A signed 64-bit number in the generated code: a constant or a register.
struct CodeNumber {
  std::optional<std::int64_t> constant;
  std::string reg = {};

  std::string text() const { return constant ? std::to_string(*constant) : reg; }
  bool Is(std::int64_t value) const { return constant == value; }
};

struct CodeRange {
  CodeNumber low, high;  ///< both belong to it
};

class RangeEmitter {
 public:
  /// `block_size`: where x, y and z of the block are to be read: operands of mov.u32 ("%ntid.x"), or names of .u32
  /// parameters in brackets.
  RangeEmitter(const analysis::AddressAnalysis& analysis, std::array<std::string, 3> block_size);

  CodeNumber Uniform(const analysis::Polynomial& number);
  CodeRange RangeOf(const analysis::Polynomial& number);
  /// A predicate that is true when the assumptions hold; empty when that is always.
  std::string Holds(const std::vector<analysis::AssumptionId>& assumptions);

  /// A predicate that is true when no thread of the CTA makes the access: a condition is not met, or a guard nowhere;
  /// empty when that is never.
  std::string Unreached(const std::vector<analysis::RangeGuard>& guards,
                        const std::vector<analysis::UniformCondition>& conditions);

  CodeNumber Add(const CodeNumber& a, const CodeNumber& b);
  CodeNumber Subtract(const CodeNumber& a, const CodeNumber& b);
  CodeNumber Multiply(const CodeNumber& a, const CodeNumber& b);
  CodeNumber Least(const CodeNumber& a, const CodeNumber& b);
  CodeNumber Most(const CodeNumber& a, const CodeNumber& b);
  /// `predicate ? a : b`.
  CodeNumber Select(const std::string& predicate, const CodeNumber& a, const CodeNumber& b);
  std::string Compare(std::string_view comparison, const CodeNumber& a, const CodeNumber& b,
                      const std::string& and_also = "");
  std::string And(const std::string& a, const std::string& b);
  std::string Or(const std::string& a, const std::string& b);
  void Line(const std::string& text) { code_ += text + ";\n"; }
  void Block(const std::string& text) { code_ += text + "\n"; }
  std::string InRegister(const CodeNumber& number);

  /// Splits a sum into its uniform part and, for each product of ranging symbols, its uniform factor.
  struct Part {
    analysis::Monomial ranging;
    analysis::Polynomial factor;
  };
  std::vector<Part> Split(const analysis::Polynomial& number) const;
  CodeRange RangeOf(const analysis::Monomial& ranging);
  CodeRange Scale(const CodeRange& range, const analysis::Polynomial& factor, const analysis::Interval& bounds);

  /// Declarations of all registers used, and the code.
  std::string Text() const;

 private:
  std::string New(unsigned bits);
  std::string Native(analysis::SymbolId id);
  std::string NativeOf(const analysis::Value& value);
  std::string MakeNative(const analysis::Symbol& symbol);
  std::string MakeOperation(const analysis::Symbol& symbol);
  std::string MakeExtension(const analysis::Symbol& symbol);
  std::string BlockSize(char component);
  CodeNumber Symbol(analysis::SymbolId id);
  CodeRange RangeOf(analysis::SymbolId id);
  CodeRange CounterRange(const analysis::Symbol& symbol);
  CodeRange ChoiceRange(const analysis::Symbol& symbol);
  CodeRange ClampRange(const analysis::Symbol& symbol);
  CodeRange MaskedRange(const CodeRange& a, std::int64_t mask);
  CodeRange MaskedRange(const CodeRange& a, const CodeNumber& mask, const CodeNumber& most);
  CodeRange RemainderRange(const CodeRange& a, const CodeNumber& divisor, bool positive);
  CodeNumber Divide(const CodeNumber& a, const CodeNumber& b, bool positive);
  CodeNumber Instruction(const std::string& opcode, const CodeNumber& a, const CodeNumber& b);
  std::string Holds(analysis::AssumptionId id, std::string also);
  std::string HoldsAnyway(analysis::AssumptionId id, std::string also);
  std::string Joined(std::string_view opcode, const std::string& a, const std::string& b);
  std::string Unmet(const analysis::UniformCondition& condition);
  CodeRange GuardedRange(const analysis::Symbol& symbol);

  const analysis::AddressAnalysis& analysis_;
  const analysis::SymbolPool& pool_;
  const std::array<std::string, 3> block_size_;
  std::string code_;
  std::map<unsigned, unsigned> registers_;  ///< by bits: how many
  std::map<analysis::SymbolId, std::string> native_;
  std::map<analysis::SymbolId, CodeNumber> wide_;
  std::map<analysis::SymbolId, CodeRange> ranges_;
  std::map<std::string, CodeNumber> done_;  ///< results by the text of the instruction
  std::map<std::string, std::string> predicates_;
};

}  // namespace gridloom::passes
