// Addresses and their parts as a person writes them: A[(ctaid.x*256 + tid.x)*4].
#pragma once

#include <string>

#include "rewriter/analysis/address_analysis.h"

namespace gridloom::analysis {

class ExpressionPrinter {
 public:
  explicit ExpressionPrinter(const AddressAnalysis& analysis) : analysis_(analysis), pool_(analysis.symbols()) {}

  std::string Print(const Polynomial& number) const { return PrintSum(number, 0); }
  std::string PrintSymbol(SymbolId id) const { return PrintSymbol(id, 0); }
  /// The pointer, and in brackets the bytes added to it.
  std::string PrintAddress(const RangeAccess& access, SymbolId pointer) const;
  /// What a counter runs over: "i0 in 0..(n - 1)/4 + 1"; empty when its loop has no bound.
  std::string PrintLoop(LoopInstanceId loop) const;
  std::string PrintAssumption(AssumptionId id) const;

 private:
  std::string PrintSum(const Polynomial& number, unsigned depth) const;
  std::string PrintTerm(const Term& term, unsigned depth) const;
  std::string PrintSymbol(SymbolId id, unsigned depth) const;
  std::string PrintOperation(const Symbol& symbol, unsigned depth) const;
  std::string PrintLoad(const Symbol& symbol, unsigned depth) const;
  std::string PrintChoice(const Symbol& symbol, unsigned depth) const;
  std::string PrintClamp(const Symbol& symbol, unsigned depth) const;
  std::string Factor(const Polynomial& number, unsigned depth) const;

  const AddressAnalysis& analysis_;
  const SymbolPool& pool_;
};

/// The name of a kernel parameter without the kernel's: nvcc calls the first one of k k_param_0.
std::string ShortParamName(const ptx::Function& kernel, std::string_view param);

}  // namespace gridloom::analysis
