#include "rewriter/analysis/access_pattern.h"

#include <algorithm>
#include <array>

#include "rewriter/analysis/print_expression.h"

namespace gridloom::analysis {
namespace {

/// Steps up to this many bytes leave no gap worth telling: a cache line.
constexpr std::int64_t kNear = 128;

AccessPattern PatternOf(const AddressAnalysis& analysis, const RangeAccess& access) {
  if (!access.irregular.empty()) return AccessPattern::kIrregular;
  if (!access.bounded) return AccessPattern::kWholeArray;
  AccessPattern pattern = AccessPattern::kOnePlace;
  for (const Term& term : access.address.terms()) {
    if (analysis.symbols().IsUniform(term.monomial)) continue;
    const bool plain = std::ranges::all_of(
        term.monomial.symbols, [&](SymbolId id) { return id == kNoSymbol || !analysis.symbols()[id].uniform; });
    const bool near = plain && term.factor >= -kNear && term.factor <= kNear;
    pattern = std::max(pattern, near ? AccessPattern::kContiguous : AccessPattern::kStrided);
  }
  return pattern;
}

}  // namespace

std::string_view TextOf(AccessPattern pattern) {
  static constexpr std::array<std::string_view, 5> kTexts = {"one place", "contiguous", "strided", "whole array",
                                                             "irregular"};
  return kTexts[static_cast<std::size_t>(pattern)];
}

std::vector<ArgumentPattern> DescribeArguments(const AddressAnalysis& analysis) {
  const ExpressionPrinter printer(analysis);
  std::vector<ArgumentPattern> patterns;
  for (const RangeArgument& argument : analysis.arguments()) {
    ArgumentPattern& pattern = patterns.emplace_back();
    pattern.pointer = argument.pointer == kNoSymbol ? "?" : printer.PrintSymbol(argument.pointer);
    pattern.reads = argument.reads;
    pattern.writes = argument.writes;
    for (const std::uint32_t index : argument.accesses) {
      const RangeAccess& access = analysis.accesses()[index];
      pattern.pattern = std::max(pattern.pattern, PatternOf(analysis, access));
      if (!access.irregular.empty()) {
        if (pattern.irregular.empty()) {
          pattern.irregular = access.irregular;
          pattern.because_of = access.because_of;
        }
        continue;
      }
      std::string expression = printer.PrintAddress(access, argument.pointer);
      if (std::ranges::find(pattern.expressions, expression) == pattern.expressions.end())
        pattern.expressions.push_back(std::move(expression));
    }
  }
  return patterns;
}

}  // namespace gridloom::analysis
