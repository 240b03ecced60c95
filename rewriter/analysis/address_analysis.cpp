#include "rewriter/analysis/address_analysis.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "rewriter/analysis/choice_guards.h"

namespace gridloom::analysis {
namespace {

/// Sums of this many bits cannot leave 64 bits, however many terms there are.
constexpr unsigned kTermBits = 57;

void CollectSymbols(const SymbolPool& pool, const Polynomial& number, std::set<SymbolId>& seen) {
  std::vector<SymbolId> work;
  const auto add = [&](const Polynomial& more) {
    for (const Term& term : more.terms()) {
      for (const SymbolId id : term.monomial.symbols) {
        if (id != kNoSymbol && seen.insert(id).second) work.push_back(id);
      }
    }
  };
  add(number);
  while (!work.empty()) {
    const SymbolId id = work.back();
    work.pop_back();
    if (pool[id].uniform) continue;
    for (const ValueRef& operand : pool[id].operands) add(operand->number);
  }
}

unsigned BitsNeeded(const Interval& interval) {
  if (!interval.IsBounded()) return 64;
  return static_cast<unsigned>(
      std::bit_width(static_cast<std::uint64_t>(std::max(std::abs(interval.low), std::abs(interval.high)))));
}

Polynomial Substituted(const Polynomial& number, SymbolId symbol, SymbolId by) {
  Polynomial replaced;
  for (const Term& term : number.terms()) {
    Polynomial product = Polynomial::Constant(term.factor);
    for (const SymbolId id : term.monomial.symbols) {
      if (id != kNoSymbol) product = *product.Times(Polynomial::Of(id == symbol ? by : id));
    }
    replaced = replaced.Plus(product);
  }
  return replaced;
}

}  // namespace

AddressAnalysis::AddressAnalysis(const ptx::Module& module, const CallGraph& calls, const ptx::Function& kernel)
    : kernel_(kernel) {
  WalkContext context{.calls = calls, .math = math_, .result = walk_, .kernel = kernel};
  const NodeId node = calls.NodeOf(kernel);
  for (const NodeId function : node == kNoNode ? std::vector<NodeId>() : calls.Reachable(node)) {
    if (!calls.function(function).body) continue;
    const Cfg cfg(calls.function(function));
    for (const CfgInstruction& at : cfg.instructions()) {
      const AccessClass access = ClassifyAccess(*at.instruction);
      context.writes_global |= !access.unknown.empty() || std::ranges::any_of(access.accesses, &MemoryAccess::writes);
      context.exits_in_callees |= function != node && at.instruction->Has(ptx::Trait::kExits);
    }
    for (const CallSite& call : calls.calls(function)) context.writes_global |= call.unknown_target;
  }
  for (const ptx::Variable& variable : module.variables) {
    const bool hidden =
        std::ranges::any_of(kernel.params, [&](const ptx::Variable& param) { return param.name == variable.name; });
    if (!hidden) context.variables.insert(&variable);
  }
  if (module.address_size != 64) walk_.obstacles.push_back({"its addresses have 32 bits", kernel.loc});
  Walker(context, kernel, {}, {}).Run();
  Resolver resolver(math_, walk_.loops);
  resolver.BoundLoops();
  for (const FoundAccess& found : walk_.accesses) AddAccess(found, resolver);
  ChoiceGuards choices(pool_, walk_.loops, resolver,
                       [&](const Polynomial& number, std::vector<AssumptionId>& assumptions) {
                         return CloseAssumptions(number, assumptions, resolver);
                       });
  for (const RangeAccess& access : accesses_) {
    if (access.bounded) choices.FindIn(access.address);
  }
  if (!walk_.obstacles.empty()) {
    reason_ = walk_.obstacles[0].why;
    reason_loc_ = walk_.obstacles[0].loc;
  }
}

RangeArgument& AddressAnalysis::ArgumentOf(SymbolId pointer) {
  const auto it = std::ranges::find(arguments_, pointer, &RangeArgument::pointer);
  if (it != arguments_.end()) return *it;
  arguments_.emplace_back().pointer = pointer;
  return arguments_.back();
}

void AddressAnalysis::AddIrregular(const FoundAccess& found, std::string why, SourceLoc loc, SymbolId base) {
  if (reason_.empty()) {
    reason_ = why;
    reason_loc_ = loc;
  }
  RangeAccess access;
  access.instruction = found.instruction;
  access.reads = found.reads;
  access.writes = found.writes;
  access.bytes = found.bytes;
  access.irregular = std::move(why);
  access.because_of = loc;
  RangeArgument& argument = ArgumentOf(base);
  argument.accesses.push_back(static_cast<std::uint32_t>(accesses_.size()));
  argument.reads |= found.reads;
  argument.writes |= found.writes;
  ++argument.irregular;
  accesses_.push_back(std::move(access));
}

void AddressAnalysis::AddAccess(const FoundAccess& found, Resolver& resolver) {
  const ValueRef address = resolver.Resolve(found.address);
  if (address->IsData()) {
    return AddIrregular(found, "an address depends on a value that " + address->because, address->loc, address->base);
  }
  AddNumber(found, address->number, address->assumptions, 0, resolver);
}

// A choice of pointers is an access through each of them.
void AddressAnalysis::AddNumber(const FoundAccess& found, const Polynomial& address,
                                const std::vector<AssumptionId>& assumptions, unsigned depth, Resolver& resolver) {
  const SymbolId pointer = math_.PointerOf(address);
  if (pointer != kNoSymbol) return Finish(found, address, assumptions, depth > 0, resolver);
  for (const Term& term : address.terms()) {
    const bool single = term.factor == 1 && term.monomial.degree() == 1;
    if (!single) continue;
    const Symbol symbol = pool_[term.monomial.symbols[0]];
    if (found.generic && symbol.kind == SymbolKind::kElsewhere) return;
    if (symbol.kind != SymbolKind::kChoice || depth > 6) continue;
    const Polynomial rest = address.Plus(Polynomial::Of(term.monomial.symbols[0]), -1);
    for (const ValueRef& alternative : symbol.operands) {
      AddNumber(found, rest.Plus(alternative->number), Union(assumptions, alternative->assumptions), depth + 1,
                resolver);
    }
    return;
  }
  AddIrregular(found, "an address comes from no pointer that is known", found.instruction->loc, kNoSymbol);
}

// Products that might leave 64 bits are made to fit by further assumptions, an equal share of bits for each factor.
bool AddressAnalysis::LimitTerms(const Polynomial& number, std::vector<AssumptionId>& assumptions) {
  std::set<SymbolId> symbols;
  CollectSymbols(pool_, number, symbols);
  const auto limit = [&](const Polynomial& of, unsigned bits) {
    if (BitsNeeded(pool_.BoundsOf(of)) <= bits) return;
    const std::int64_t most = (std::int64_t{1} << bits) - 1;
    assumptions =
        Union(assumptions, {pool_.Assume({.kind = Assumption::Kind::kInside, .number = of, .range = {-most, most}})});
  };
  const auto check = [&](const Polynomial& sum) {
    for (const Term& term : sum.terms()) {
      if (pool_.IsUniform(term.monomial)) continue;
      const auto factor_bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(std::abs(term.factor))));
      if (BitsNeeded(pool_.BoundsOf(term.monomial)) + factor_bits <= kTermBits) continue;
      if (factor_bits > 30) return false;
      Polynomial uniform = Polynomial::Constant(1);
      std::vector<SymbolId> ranging;
      for (const SymbolId id : term.monomial.symbols) {
        if (id == kNoSymbol) continue;
        if (pool_[id].uniform) uniform = *uniform.Times(Polynomial::Of(id));
        else ranging.push_back(id);
      }
      const bool has_uniform = !uniform.AsConstant();
      if (ranging.size() == 1 && StepsWithin(ranging[0], uniform, factor_bits)) continue;
      if (ranging.size() == 1 && has_uniform) {
        const unsigned taken = BitsNeeded(pool_[ranging[0]].bounds) + factor_bits;
        if (taken + 16 <= kTermBits) {
          limit(uniform, kTermBits - taken);
          continue;
        }
      }
      const unsigned share = (kTermBits - factor_bits) / static_cast<unsigned>(ranging.size() + has_uniform);
      if (has_uniform) limit(uniform, share);
      for (const SymbolId id : ranging) limit(Polynomial::Of(id), share);
    }
    return true;
  };
  if (!check(number)) return false;
  for (const SymbolId id : symbols) {
    if (pool_[id].uniform) continue;
    for (const ValueRef& operand : pool_[id].operands) {
      if (!check(operand->number)) return false;
    }
  }
  return true;
}

// A counter times the step of its own loop's condition is at most the distance and one step more.
bool AddressAnalysis::StepsWithin(SymbolId counter, const Polynomial& factor, unsigned factor_bits) const {
  if (pool_[counter].kind != SymbolKind::kCounter) return false;
  const auto& bound = walk_.loops[pool_[counter].loop].bound;
  if (!bound || bound->step != factor) return false;
  const unsigned bits = std::max(BitsNeeded(pool_.BoundsOf(bound->distance)), BitsNeeded(pool_.BoundsOf(bound->step)));
  return bits + 1 + factor_bits <= kTermBits;
}

// What the assumptions and the bounds of loops rest on is assumed, too, until nothing new comes.
bool AddressAnalysis::CloseAssumptions(const Polynomial& address, std::vector<AssumptionId>& assumptions,
                                       Resolver& resolver) {
  std::set<AssumptionId> done;
  std::set<LoopInstanceId> loops;
  const auto add_loops = [&](const Polynomial& number) {
    std::set<SymbolId> symbols;
    CollectSymbols(pool_, number, symbols);
    for (const SymbolId id : symbols) {
      if (pool_[id].kind == SymbolKind::kCounter) loops.insert(pool_[id].loop);
      if (pool_[id].uniform) continue;
      for (const ValueRef& operand : pool_[id].operands) assumptions = Union(assumptions, operand->assumptions);
    }
  };
  std::set<LoopInstanceId> loops_done;
  add_loops(address);
  if (!resolver.HasRange(address) || !LimitTerms(address, assumptions)) return false;
  for (bool more = true; more;) {
    more = false;
    for (const LoopInstanceId id : std::set(loops)) {
      if (!loops_done.insert(id).second) continue;
      const auto& bound = walk_.loops[id].bound;
      if (!bound) return false;
      more = true;
      assumptions = Union(assumptions, bound->assumptions);
      add_loops(bound->distance);
      if (!resolver.HasRange(bound->distance) || !LimitTerms(bound->distance, assumptions)) return false;
    }
    for (const AssumptionId id : std::vector(assumptions)) {
      if (!done.insert(id).second) continue;
      more = true;
      const Polynomial number = pool_.assumption(id).number;
      add_loops(number);
      if (!resolver.HasRange(number) || !LimitTerms(number, assumptions)) return false;
    }
  }
  std::erase_if(assumptions, [&](AssumptionId id) {
    const Assumption& assumption = pool_.assumption(id);
    return assumption.kind == Assumption::Kind::kInside && pool_.BoundsOf(assumption.number).IsInside(assumption.range);
  });
  // A range that no value of the number lies in never holds.
  return std::ranges::none_of(assumptions, [&](AssumptionId id) {
    const Interval bounds = pool_.BoundsOf(pool_.assumption(id).number);
    return bounds.high < pool_.assumption(id).range.low || bounds.low > pool_.assumption(id).range.high;
  });
}

/// Counters of loops whose test has just let the loop go on have not come to their end.
Polynomial AddressAnalysis::WithTested(const FoundAccess& found, const Polynomial& number) const {
  Polynomial result = number;
  for (const auto& [loop, block] : found.tested) {
    const LoopInstance& instance = walk_.loops[loop];
    if (instance.bound && instance.bound_at == block) result = Substituted(result, instance.counter, instance.tested);
  }
  return result;
}

/// The symbol with the bound that the guard gives it, or itself when it gives none: guard = factor * symbol + rest, and
/// the sign of the uniform factor is known.
SymbolId AddressAnalysis::Guarded(SymbolId symbol, const RangeGuard& guard) {
  Polynomial factor;
  for (const Term& term : guard.number.terms()) {
    if (!term.monomial.Contains(symbol)) continue;
    Polynomial product = Polynomial::Constant(term.factor);
    bool left_out = false;
    for (const SymbolId id : term.monomial.symbols) {
      if (id == kNoSymbol || (id == symbol && !std::exchange(left_out, true))) continue;
      if (!pool_[id].uniform) return symbol;
      product = *product.Times(Polynomial::Of(id));
    }
    factor = factor.Plus(product);
  }
  const Interval sign = pool_.BoundsOf(factor);
  if (sign.low < 1 && sign.high > -1) return symbol;
  const auto known = std::ranges::find(guarded_by_, std::pair(symbol, guard));
  if (known != guarded_by_.end()) return guarded_[static_cast<std::size_t>(known - guarded_by_.begin())];
  const Polynomial rest = guard.number.Filter([&](const Monomial& monomial) { return !monomial.Contains(symbol); });
  Symbol bounded;
  bounded.kind = SymbolKind::kClamp;
  bounded.op = sign.high < 0 ? RangeOp::kAtMost : RangeOp::kAtLeast;
  bounded.bits = pool_[symbol].bits;
  bounded.bounds = pool_[symbol].bounds;
  bounded.varies_in = pool_[symbol].varies_in;
  bounded.operands = {Number(Polynomial::Of(symbol), 64), Number(rest, 64, guard.assumptions),
                      Number(sign.high < 0 ? factor.Times(-1) : factor, 64)};
  const SymbolId added = pool_.Add(std::move(bounded));
  guarded_by_.emplace_back(symbol, guard);
  guarded_.push_back(pool_[added].kind == SymbolKind::kClamp ? added : symbol);  // or it is nested too deeply
  return guarded_.back();
}

// Each guard bounds the symbols that it and the address are made of; what an earlier one has bounded, a later one finds
// bounded.
void AddressAnalysis::ApplyGuards(const FoundAccess& found, RangeAccess& access, Resolver& resolver) {
  std::vector<std::pair<SymbolId, SymbolId>> bounded;
  const auto of_thread = [&](SymbolId symbol) {
    while (pool_[symbol].op == RangeOp::kAtMost || pool_[symbol].op == RangeOp::kAtLeast)
      symbol = *pool_[symbol].operands[0]->number.AsSymbol();
    return pool_[symbol].kind == SymbolKind::kThread || pool_[symbol].kind == SymbolKind::kLane;
  };
  const auto apply = [&](RangeGuard guard) {
    guard.number = WithTested(found, guard.number);
    if (pool_.IsUniform(guard.number) || !CloseAssumptions(guard.number, guard.assumptions, resolver)) return;
    for (const auto& [symbol, by] : bounded) guard.number = Substituted(guard.number, symbol, by);
    if (std::ranges::find(access.guards, guard) != access.guards.end() || pool_.BoundsOf(guard.number).low >= 0) return;
    std::set<SymbolId> symbols;
    for (const Term& term : guard.number.terms())
      symbols.insert(term.monomial.symbols.begin(), term.monomial.symbols.end());
    for (const SymbolId symbol : symbols) {
      if (symbol == kNoSymbol || pool_[symbol].uniform || !(of_thread(symbol) || access.address.Contains(symbol)))
        continue;
      const SymbolId by = Guarded(symbol, guard);
      if (by == symbol) continue;
      access.address = Substituted(access.address, symbol, by);
      bounded.emplace_back(symbol, by);
    }
    access.guards.push_back(std::move(guard));
  };
  for (const FoundGuard& guard : found.passed.guards) {
    // What bounds a counter wherever it is tested says nothing new in the loop; behind it, it tells where the counter
    // stopped.
    const bool known = std::ranges::find(found.tested, std::pair(guard.loop, guard.block)) != found.tested.end() &&
                       walk_.loops[guard.loop].bound && walk_.loops[guard.loop].bound_at == guard.block;
    if (known) continue;
    std::vector<AssumptionId> assumptions;
    for (const Polynomial& number : resolver.NotNegative(guard.holds, assumptions)) apply({number, assumptions});
  }
  // A thread is the same all the time: what is assumed need only hold for those that pass. Counters have had other
  // values.
  for (AssumptionId& id : access.assumptions) {
    Assumption assumption = pool_.assumption(id);
    for (const auto& [symbol, by] : bounded) {
      if (of_thread(symbol)) assumption.number = Substituted(assumption.number, symbol, by);
    }
    id = pool_.Assume(std::move(assumption));
  }
  std::ranges::sort(access.assumptions);
}

// The alternative of a choice that was `opened` may be a value of an earlier round of a loop; guards say nothing of
// that.
void AddressAnalysis::Finish(const FoundAccess& found, Polynomial address, std::vector<AssumptionId> assumptions,
                             bool opened, Resolver& resolver) {
  address = WithTested(found, address);
  RangeAccess access;
  access.instruction = found.instruction;
  access.reads = found.reads;
  access.writes = found.writes;
  access.bytes = found.bytes;
  access.bounded = CloseAssumptions(address, assumptions, resolver);
  const SymbolId pointer = math_.PointerOf(address);
  access.address = std::move(address);
  access.assumptions = std::move(assumptions);
  access.conditions = found.passed.conditions;
  if (access.bounded && !opened) ApplyGuards(found, access, resolver);
  RangeArgument& argument = ArgumentOf(pointer);
  argument.accesses.push_back(static_cast<std::uint32_t>(accesses_.size()));
  argument.reads |= access.reads;
  argument.writes |= access.writes;
  argument.unbounded += !access.bounded;
  accesses_.push_back(std::move(access));
}

}  // namespace gridloom::analysis
