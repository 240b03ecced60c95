// Where choices are made: `i > 0 ? i - 1 : 0` is 0 for no thread of a CTA whose threads all have an i above 0. What a
// thread has passed that chooses an alternative (Symbol::chosen_by) becomes guards of the alternative
// (Symbol::chosen_where), which generated code tests for a CTA.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "rewriter/analysis/resolver.h"

namespace gridloom::analysis {

class ChoiceGuards {
 public:
  /// Adds to the assumptions what a number's range rests on; false where it has no range that can be computed.
  using Close = std::function<bool(const Polynomial& number, std::vector<AssumptionId>& assumptions)>;
  ChoiceGuards(SymbolPool& pool, const std::vector<LoopInstance>& loops, Resolver& resolver, Close close)
      : pool_(pool), loops_(loops), resolver_(resolver), close_(std::move(close)) {}

  /// Finds them for all choices that the range of the number is made of.
  void FindIn(const Polynomial& number);

 private:
  /// Guards are made of other choices, and those have guards. So deep may that go: whoever computes ranges goes down on
  /// the host's stack.
  static constexpr std::uint32_t kMaxDepth = 8;
  /// Of all choices together, resolved.
  static constexpr std::uint32_t kMaxGuards = 2000;

  std::set<SymbolId> SymbolsOf(const Polynomial& number, const std::vector<AssumptionId>& assumptions) const;
  void FindOf(SymbolId choice, std::uint32_t depth);
  std::vector<RangeGuard> GuardsOf(const std::vector<Predicate>& chosen_by, std::uint32_t depth);
  bool IsUsable(const RangeGuard& guard, std::uint32_t depth);

  SymbolPool& pool_;
  const std::vector<LoopInstance>& loops_;
  Resolver& resolver_;
  const Close close_;
  std::set<SymbolId> open_;  ///< choices whose guards are being looked for
  std::uint32_t guards_ = 0;
};

}  // namespace gridloom::analysis
