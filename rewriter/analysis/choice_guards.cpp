#include "rewriter/analysis/choice_guards.h"

#include <algorithm>
#include <utility>

namespace gridloom::analysis {

/// All symbols that the range of a number is computed from: of the symbols in it, of the bounds of loops, and of what
/// is assumed.
std::set<SymbolId> ChoiceGuards::SymbolsOf(const Polynomial& number,
                                           const std::vector<AssumptionId>& assumptions) const {
  std::set<SymbolId> symbols;
  std::set<AssumptionId> assumed;
  std::vector<SymbolId> work;
  const auto add = [&](const Polynomial& more) {
    for (const Term& term : more.terms()) {
      for (const SymbolId id : term.monomial.symbols) {
        if (id != kNoSymbol && symbols.insert(id).second) work.push_back(id);
      }
    }
  };
  const auto assume = [&](const std::vector<AssumptionId>& ids) {
    for (const AssumptionId id : ids) {
      if (assumed.insert(id).second) add(pool_.assumption(id).number);
    }
  };
  add(number);
  assume(assumptions);
  while (!work.empty()) {
    const Symbol& symbol = pool_[work.back()];
    work.pop_back();
    if (symbol.uniform) continue;
    for (const ValueRef& operand : symbol.operands) {
      add(operand->number);
      assume(operand->assumptions);
    }
    if (symbol.kind != SymbolKind::kCounter || !loops_[symbol.loop].bound) continue;
    add(loops_[symbol.loop].bound->distance);
    assume(loops_[symbol.loop].bound->assumptions);
  }
  return symbols;
}

void ChoiceGuards::FindIn(const Polynomial& number) {
  for (const SymbolId id : SymbolsOf(number, {})) FindOf(id, 0);
}

void ChoiceGuards::FindOf(SymbolId choice, std::uint32_t depth) {
  // Taken away: each choice is looked at once, and has its guards, or none for good, before others build on it.
  const ChosenByRef chosen_by = std::exchange(pool_.at(choice).chosen_by, nullptr);
  if (chosen_by == nullptr || pool_[choice].kind != SymbolKind::kChoice || depth > kMaxDepth) return;
  open_.insert(choice);
  std::vector<std::vector<RangeGuard>> where;
  for (const std::vector<Predicate>& alternative : *chosen_by) where.push_back(GuardsOf(alternative, depth));
  open_.erase(choice);
  if (std::ranges::all_of(where, &std::vector<RangeGuard>::empty)) return;
  pool_.at(choice).chosen_where = std::move(where);
}

std::vector<RangeGuard> ChoiceGuards::GuardsOf(const std::vector<Predicate>& chosen_by, std::uint32_t depth) {
  std::vector<RangeGuard> guards;
  for (const Predicate& holds : chosen_by) {
    std::vector<AssumptionId> assumptions;
    for (Polynomial& number : resolver_.NotNegative(holds, assumptions)) {
      if (guards_ == kMaxGuards) return guards;
      RangeGuard guard{std::move(number), assumptions};
      if (!IsUsable(guard, depth)) continue;
      if (!close_(guard.number, guard.assumptions) || !IsUsable(guard, depth)) continue;
      ++guards_;
      guards.push_back(std::move(guard));
    }
  }
  return guards;
}

/// Not a guard that always holds, and none that is made of a choice whose guards are being looked for.
bool ChoiceGuards::IsUsable(const RangeGuard& guard, std::uint32_t depth) {
  if (pool_.BoundsOf(guard.number).low >= 0) return false;
  const std::set<SymbolId> symbols = SymbolsOf(guard.number, guard.assumptions);
  if (std::ranges::any_of(symbols, [&](SymbolId id) { return open_.contains(id); })) return false;
  for (const SymbolId id : symbols) FindOf(id, depth + 1);
  return true;
}

}  // namespace gridloom::analysis
