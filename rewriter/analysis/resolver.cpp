#include "rewriter/analysis/resolver.h"

#include <algorithm>
#include <utility>

namespace gridloom::analysis {

bool Resolver::IsInside(LoopInstanceId inner, LoopInstanceId outer) const {
  while (inner != kNoLoopInstance && inner != outer) inner = loops_[inner].parent;
  return inner == outer;
}

bool Resolver::IsInvariant(const Polynomial& number, LoopInstanceId loop) const {
  return std::ranges::all_of(number.terms(), [&](const Term& term) {
    return std::ranges::all_of(term.monomial.symbols,
                               [&](SymbolId id) { return id == kNoSymbol || !IsInside(pool_[id].varies_in, loop); });
  });
}

// Null when all could be resolved to numbers, else the data that one depends on.
ValueRef Resolver::ResolveAssumptions(const std::vector<AssumptionId>& ids, std::vector<AssumptionId>& out) {
  for (const AssumptionId id : ids) {
    const Assumption assumption = pool_.assumption(id);
    const ValueRef number = Resolve(Number(assumption.number, 64));
    if (number->IsData()) return number;
    out = Union(out, number->assumptions);
    if (assumption.kind == Assumption::Kind::kInside && pool_.BoundsOf(number->number).IsInside(assumption.range))
      continue;
    Assumption resolved = assumption;
    resolved.number = number->number;
    out = Union(out, {pool_.Assume(std::move(resolved))});
  }
  return nullptr;
}

ValueRef Resolver::Resolve(const ValueRef& value) {
  if (value->IsData()) return value;
  Polynomial number;
  std::vector<AssumptionId> assumptions;
  if (const ValueRef data = ResolveAssumptions(value->assumptions, assumptions)) return data;
  for (const Term& term : value->number.terms()) {
    Polynomial product = Polynomial::Constant(term.factor);
    for (const SymbolId id : term.monomial.symbols) {
      if (id == kNoSymbol) continue;
      const ValueRef symbol = ResolveSymbol(id);
      if (symbol->IsData()) {
        auto data = std::make_shared<Value>(*symbol);
        if (data->base == kNoSymbol) data->base = math_.PointerOf(value->number);
        return data;
      }
      assumptions = Union(assumptions, symbol->assumptions);
      auto next = product.Times(symbol->number);
      product = next ? *next : Polynomial::Of(pool_.Any(64, kNoLoopInstance));
    }
    number = number.Plus(product);
  }
  if (number.terms().size() > Polynomial::kMaxTerms) return math_.Any(value->bits, kNoLoopInstance);
  return math_.Limited(Number(std::move(number), value->bits, std::move(assumptions)), kNoLoopInstance);
}

ValueRef Resolver::ResolveSymbol(SymbolId id) {
  const SymbolKind kind = pool_[id].kind;
  const auto itself = [&] { return Number(Polynomial::Of(id), 64); };
  if (kind != SymbolKind::kPhi && kind != SymbolKind::kChoice && kind != SymbolKind::kClamp) return itself();
  if (const auto it = resolved_.find(id); it != resolved_.end()) return it->second;
  if (open_.contains(id)) {
    used_open_.insert(id);
    return itself();
  }
  if (++steps_ > kMaxSteps || depth_ > 4 * SymbolPool::kMaxDepth) return math_.Any(pool_[id].bits, pool_[id].varies_in);
  ++depth_;
  const std::set<SymbolId> outer_used = std::exchange(used_open_, {});
  ValueRef result;
  if (kind == SymbolKind::kPhi) {
    result = ResolvePhi(id);
  } else {
    const Symbol symbol = pool_[id];  // a copy: resolving adds symbols
    std::vector<ValueRef> operands;
    bool changed = false;
    for (const ValueRef& operand : symbol.operands) {
      operands.push_back(Resolve(operand));
      changed |= operands.back()->IsData() || operands.back()->number != operand->number;
    }
    if (kind == SymbolKind::kChoice && symbol.at_join) {
      result = math_.JoinOf(operands, symbol.varies_in, symbol.chosen_by);
      if (!changed && result->number.AsSymbol()) result = itself();  // nothing in common
    } else if (!changed) {
      result = itself();
    } else if (kind == SymbolKind::kChoice) {
      result = math_.Varying(std::move(operands), 64, symbol.varies_in, symbol.chosen_by);
    } else {
      result = math_.Clamp(symbol.op, operands, 64);
    }
  }
  --depth_;
  // What holds a phi that is still open is only right until that one is closed.
  if (used_open_.empty()) resolved_[id] = result;
  used_open_.insert(outer_used.begin(), outer_used.end());
  return result;
}

template <class Predicate>
bool Resolver::AnySymbol(const Polynomial& number, Predicate predicate) const {
  std::set<SymbolId> seen;
  std::vector<SymbolId> work;
  const auto add = [&](const Polynomial& more) {
    for (const Term& term : more.terms()) {
      for (const SymbolId id : term.monomial.symbols) {
        if (id != kNoSymbol && !pool_[id].uniform && seen.insert(id).second) work.push_back(id);
      }
    }
  };
  add(number);
  while (!work.empty()) {
    const SymbolId id = work.back();
    work.pop_back();
    if (predicate(id)) return true;
    for (const ValueRef& operand : pool_[id].operands) add(operand->number);
  }
  return false;
}

bool Resolver::Mentions(const Polynomial& number, SymbolId wanted) const {
  return AnySymbol(number, [&](SymbolId id) { return id == wanted; });
}

bool Resolver::HasRange(const Polynomial& number) const {
  return !AnySymbol(number, [&](SymbolId id) {
    const Symbol& symbol = pool_[id];
    if (symbol.kind == SymbolKind::kCounter) return !loops_[symbol.loop].bound;
    if (symbol.kind == SymbolKind::kAny) return !symbol.bounds.IsBounded();
    return symbol.kind == SymbolKind::kPhi || symbol.kind == SymbolKind::kElsewhere;
  });
}

// Takes an update apart into ways that add to the old value and ways that replace it; choices are opened.
void Resolver::CollectChanges(SymbolId phi, const Polynomial& update, unsigned depth, Changes& changes) {
  if (depth > 8 || changes.deltas.size() + changes.resets.size() > 16) {
    changes.known = false;
    return;
  }
  const Polynomial delta = update.Plus(Polynomial::Of(phi), -1);
  if (!Mentions(delta, phi)) {
    changes.deltas.push_back(delta);
    return;
  }
  if (!Mentions(update, phi)) {
    changes.resets.push_back(Number(update, 64));
    return;
  }
  changes.single = false;
  for (const Term& term : update.terms()) {
    if (term.factor != 1 || term.monomial.degree() != 1) continue;
    const SymbolId id = term.monomial.symbols[0];
    const Polynomial rest = update.Plus(Polynomial::Of(id), -1);
    if (pool_[id].kind == SymbolKind::kChoice) {
      const auto alternatives = pool_[id].operands;
      for (const ValueRef& alternative : alternatives)
        CollectChanges(phi, rest.Plus(alternative->number), depth + 1, changes);
      return;
    }
    // Halving and the like only bring the value nearer to zero.
    const bool shrinks = pool_[id].kind == SymbolKind::kClamp &&
                         (pool_[id].op == RangeOp::kShiftRight || pool_[id].op == RangeOp::kDivide) && rest.IsZero() &&
                         pool_[id].operands[0]->number == Polynomial::Of(phi);
    if (shrinks) {
      changes.deltas.push_back({});
      changes.resets.push_back(Number({}, 64));
      return;
    }
  }
  changes.known = false;
}

namespace {

/// number = rest + factor * symbol; nothing when the symbol stands in it in another way.
struct LinearIn {
  Polynomial rest, factor;
};
std::optional<LinearIn> SplitBy(SymbolId symbol, const Polynomial& number) {
  LinearIn split;
  split.rest = number.Filter([&](const Monomial& m) { return !m.Contains(symbol); });
  for (const Term& term : number.terms()) {
    if (!term.monomial.Contains(symbol)) continue;
    Polynomial factor = Polynomial::Constant(term.factor);
    unsigned powers = 0;
    for (const SymbolId id : term.monomial.symbols) {
      if (id == symbol) ++powers;
      else if (id != kNoSymbol) factor = *factor.Times(Polynomial::Of(id));
    }
    if (powers != 1) return std::nullopt;
    split.factor = split.factor.Plus(factor);
  }
  return split;
}

}  // namespace

// A register that is made of another one at the end of each round: `wide = cvt(i)` after `i += step`. What round r - 1
// leaves is rest + factor * (r - 1); where that is the value before the first round for r = 0, it is initial + factor *
// r.
std::optional<Polynomial> Resolver::DerivedStep(const Polynomial& initial, const std::vector<ValueRef>& resets,
                                                LoopInstanceId loop) const {
  for (const ValueRef& reset : resets) {
    if (reset->number != resets[0]->number) return std::nullopt;
  }
  const auto split = SplitBy(loops_[loop].counter, resets[0]->number);
  if (!split || split->factor.IsZero() || !IsInvariant(split->factor, loop) || !IsInvariant(split->rest, loop))
    return std::nullopt;
  if (split->rest.Plus(split->factor, -1) != initial) return std::nullopt;
  return split->factor;
}

ValueRef Resolver::ResolvePhi(SymbolId id) {
  const Symbol phi = pool_[id];
  const LoopInstance& loop = loops_[phi.loop];
  const ValueRef any = math_.Any(phi.bits, phi.loop);
  open_.insert(id);
  std::vector<ValueRef> values;
  for (const ValueRef& operand : phi.operands) {
    values.push_back(Resolve(operand));
    if (values.back()->IsData()) break;
  }
  open_.erase(id);
  used_open_.erase(id);
  if (values.back()->IsData()) return values.back();
  if (loop.irreducible || phi.operands.size() < 2 || phi.bits == 1) return any;
  const ValueRef initial = math_.Exact(values[0], true);
  std::vector<AssumptionId> assumptions = initial->assumptions;
  Changes changes;
  for (std::size_t i = 1; i < values.size(); ++i) {
    // Steps of a narrow register are taken as signed: -1 is 0xffffffff.
    assumptions = Union(assumptions, values[i]->assumptions);
    CollectChanges(id, values[i]->number, 0, changes);
  }
  if (!changes.known) return any;
  for (std::size_t i = 1; i < changes.deltas.size(); ++i)
    changes.single = changes.single && changes.deltas[i] == changes.deltas[0];
  changes.single = changes.single && changes.resets.empty() && !changes.deltas.empty();

  Polynomial start = initial->number;
  std::optional<Polynomial> derived;
  if (changes.deltas.empty() && !changes.resets.empty()) derived = DerivedStep(start, changes.resets, phi.loop);
  if (!changes.resets.empty() && !derived) {
    std::vector<ValueRef> starts{initial};
    for (const ValueRef& reset : changes.resets) starts.push_back(math_.Exact(Number(reset->number, phi.bits), true));
    const ValueRef varying = math_.Varying(starts, phi.bits, phi.loop);
    start = varying->number;
    assumptions = Union(assumptions, varying->assumptions);
  }
  Polynomial step;
  if (derived) {
    step = *derived;
  } else if (changes.single && IsInvariant(changes.deltas[0], phi.loop)) {
    step = changes.deltas[0];
  } else if (!changes.deltas.empty() && !std::ranges::all_of(changes.deltas, &Polynomial::IsZero)) {
    std::vector<ValueRef> steps;
    for (const Polynomial& delta : changes.deltas) steps.push_back(math_.Exact(Number(delta, phi.bits), true));
    if (!changes.single) steps.push_back(Number({}, 64));
    const ValueRef varying = math_.Varying(steps, phi.bits, phi.loop);
    step = varying->number;
    assumptions = Union(assumptions, varying->assumptions);
  }
  const auto growth = step.Times(Polynomial::Of(loop.counter));
  if (!growth) return any;
  const ValueRef value = math_.Exact(Number(start.Plus(*growth), phi.bits, assumptions), true);
  // Assumptions may have been made of this very phi while it was open.
  resolved_[id] = Number(value->number, 64);
  std::vector<AssumptionId> closed;
  if (ResolveAssumptions(value->assumptions, closed) != nullptr) return any;
  resolved_.erase(id);
  return Number(value->number, 64, std::move(closed));
}

std::vector<Polynomial> Resolver::NotNegative(const Predicate& holds, std::vector<AssumptionId>& assumptions) {
  const ValueRef left = Resolve(holds.left), right = Resolve(holds.right);
  if (left->IsData() || right->IsData()) return {};
  assumptions = Union(assumptions, Union(left->assumptions, right->assumptions));
  // The difference of registers of 64 bits need not fit into one.
  constexpr Interval kFits{-(std::int64_t{1} << 61), std::int64_t{1} << 61};
  for (const ValueRef& side : {left, right}) {
    const Polynomial uniform = side->number.Filter([&](const Monomial& monomial) { return pool_.IsUniform(monomial); });
    if (pool_.BoundsOf(uniform).IsInside(kFits)) continue;
    assumptions =
        Union(assumptions, {pool_.Assume({.kind = Assumption::Kind::kInside, .number = uniform, .range = kFits})});
  }
  const Polynomial difference = right->number.Plus(left->number, -1), opposite = difference.Times(-1),
                   one = Polynomial::Constant(1);
  if (difference.terms().size() > Polynomial::kMaxTerms) return {};
  switch (holds.kind) {
    case Predicate::Kind::kLess: return {difference.Plus(one, -1)};
    case Predicate::Kind::kLessEqual: return {difference};
    case Predicate::Kind::kEqual: return {difference, opposite};
    case Predicate::Kind::kNotEqual:
      if (pool_.BoundsOf(difference).low >= 0) return {difference.Plus(one, -1)};
      if (pool_.BoundsOf(opposite).low >= 0) return {opposite.Plus(one, -1)};
      return {};
    default: return {};
  }
}

/// A thread that enters the loop has passed a guard that says that the number is not negative.
bool Resolver::HeldAtEntry(const LoopInstance& loop, const Polynomial& number, std::vector<AssumptionId>& assumptions) {
  for (const FoundGuard& guard : loop.entered) {
    std::vector<AssumptionId> needed;
    for (const Polynomial& held : NotNegative(guard.holds, needed)) {
      if (pool_.BoundsOf(number.Plus(held, -1)).low < 0) continue;
      assumptions = Union(assumptions, needed);
      return true;
    }
  }
  return false;
}

// Condition left < right (or <=, !=) holds whenever the loop goes on, and right - left = distance + change * counter.
std::optional<LoopBound> Resolver::BoundOf(const LoopInstance& loop, const Predicate& condition) {
  const ValueRef left = Resolve(condition.left), right = Resolve(condition.right);
  if (left->IsData() || right->IsData()) return std::nullopt;
  Polynomial difference = right->number.Plus(left->number, -1);
  LoopBound bound;
  bound.assumptions = Union(left->assumptions, right->assumptions);
  if (!HasRange(difference.Filter([&](const Monomial& m) { return !m.Contains(loop.counter); }))) return std::nullopt;
  auto split = SplitBy(loop.counter, difference);
  if (!split || split->factor.IsZero() || !pool_.IsUniform(split->factor)) return std::nullopt;
  bound.distance = std::move(split->rest);
  const Polynomial change = std::move(split->factor);
  const auto assume = [&](Assumption assumption) {
    assumption.conditions = loop.conditions_at_entry;
    bound.assumptions = Union(bound.assumptions, {pool_.Assume(std::move(assumption))});
  };
  bound.step = change.Times(-1);
  if (condition.kind == Predicate::Kind::kNotEqual) {
    auto step = bound.step.AsConstant();
    if (!step) return std::nullopt;
    if (*step < 0) {
      bound.distance = bound.distance.Times(-1);
      bound.step = bound.step.Times(-1);
      step = -*step;
    }
    // The loop ends where both are equal, if that comes at all: the distance is not negative, and a multiple of the
    // step.
    if (pool_.BoundsOf(bound.distance).low < 0 && !HeldAtEntry(loop, bound.distance, bound.assumptions)) {
      assume({.kind = Assumption::Kind::kInside, .number = bound.distance, .range = {0, INT64_MAX}});
    }
    const bool multiple =
        std::ranges::all_of(bound.distance.terms(), [&](const Term& term) { return term.factor % *step == 0; });
    if (!multiple && !pool_.IsUniform(bound.distance)) return std::nullopt;
    if (!multiple) assume({.kind = Assumption::Kind::kDivisible, .number = bound.distance, .range = {*step, *step}});
    bound.distance = bound.distance.Plus(Polynomial::Constant(-*step));
    return bound;
  }
  if (condition.kind == Predicate::Kind::kEqual) return std::nullopt;
  const Interval step = pool_.BoundsOf(bound.step);
  if (step.high < 1) return std::nullopt;
  if (step.low < 1) assume({.kind = Assumption::Kind::kInside, .number = bound.step, .range = {1, INT64_MAX}});
  if (condition.kind == Predicate::Kind::kLess) bound.distance = bound.distance.Plus(Polynomial::Constant(-1));
  return bound;
}

void Resolver::BoundLoops() {
  for (LoopInstance& loop : loops_) {
    if (loop.irreducible) continue;
    for (const auto& [block, condition] : loop.conditions) {
      auto bound = BoundOf(loop, condition);
      if (!bound) continue;
      // A constant step is better than one that has to be checked.
      const bool better = !loop.bound || (bound->step.AsConstant() && !loop.bound->step.AsConstant());
      if (!better) continue;
      loop.bound = std::move(bound);
      loop.bound_at = block;
    }
    if (!loop.bound) continue;
    const Interval distance = pool_.BoundsOf(loop.bound->distance), step = pool_.BoundsOf(loop.bound->step);
    const std::int64_t most = distance.IsBounded()
                                  ? std::max<std::int64_t>(distance.high, -1) / std::max<std::int64_t>(step.low, 1)
                                  : INT64_MAX - 1;
    pool_.at(loop.counter).bounds = {0, most == INT64_MAX - 1 ? INT64_MAX : most + 1};
    pool_.at(loop.tested).bounds = {0, most == INT64_MAX - 1 ? INT64_MAX : std::max<std::int64_t>(most, 0)};
  }
}

}  // namespace gridloom::analysis
