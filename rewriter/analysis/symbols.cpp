#include "rewriter/analysis/symbols.h"

#include <algorithm>

namespace gridloom::analysis {
namespace {

void AppendKey(std::string& key, std::uint64_t value) {
  key += std::to_string(value);
  key += ',';
}

void AppendKey(std::string& key, const Polynomial& number) {
  for (const Term& term : number.terms()) {
    for (const SymbolId symbol : term.monomial.symbols) {
      if (symbol != kNoSymbol) AppendKey(key, symbol);
    }
    key += '*';
    AppendKey(key, static_cast<std::uint64_t>(term.factor));
  }
  key += ';';
}

/// Instructions are equal when they read the same: apart from their destination.
std::string OperationKey(const ptx::Instruction& instruction) {
  std::string key = instruction.FullName();
  for (const ptx::Operand& operand : instruction.operands) {
    key += operand.kind == ptx::OperandKind::kInt ? '#' + std::to_string(operand.int_literal.value) : "";
    key += operand.kind == ptx::OperandKind::kFloat ? '$' + std::to_string(operand.float_literal.bits) : "";
    key += operand.negated ? '!' : operand.minus ? '-' : ' ';
    if (operand.kind == ptx::OperandKind::kSpecial) key += operand.text;
  }
  return key;
}

Predicate Negated(Predicate predicate) {
  using Kind = Predicate::Kind;
  switch (predicate.kind) {
    case Kind::kLess:  // !(a < b): b <= a
      predicate.kind = Kind::kLessEqual;
      std::swap(predicate.left, predicate.right);
      break;
    case Kind::kLessEqual:
      predicate.kind = Kind::kLess;
      std::swap(predicate.left, predicate.right);
      break;
    case Kind::kEqual: predicate.kind = Kind::kNotEqual; break;
    default: predicate.kind = Kind::kEqual; break;
  }
  return predicate;
}

void CollectImplied(const PredicateRef& predicate, bool truth, unsigned depth, std::vector<Predicate>& out) {
  using Kind = Predicate::Kind;
  if (predicate == nullptr || depth > SymbolPool::kMaxDepth) return;
  switch (predicate->kind) {
    case Kind::kNot: return CollectImplied(predicate->a, !truth, depth + 1, out);
    case Kind::kAnd:
    case Kind::kOr:
      if ((predicate->kind == Kind::kAnd) != truth) return;  // one of the two, not known which
      CollectImplied(predicate->a, truth, depth + 1, out);
      CollectImplied(predicate->b, truth, depth + 1, out);
      return;
    default: out.push_back(truth ? *predicate : Negated(*predicate));
  }
}

}  // namespace

std::vector<Predicate> Implied(const PredicateRef& predicate, bool truth) {
  std::vector<Predicate> out;
  CollectImplied(predicate, truth, 0, out);
  return out;
}

ChosenByRef ChosenByTruth(const PredicateRef& predicate, bool truth) {
  ChosenBy chosen{Implied(predicate, truth), Implied(predicate, !truth)};
  if (chosen[0].empty() && chosen[1].empty()) return nullptr;
  return std::make_shared<const ChosenBy>(std::move(chosen));
}

std::string SymbolPool::KeyOf(const Value& value) const {
  std::string key;
  AppendKey(key, value.bits);
  AppendKey(key, value.number);
  return key;
}

SymbolId SymbolPool::Share(Symbol symbol) {
  std::string key;
  for (const std::uint64_t field :
       {static_cast<std::uint64_t>(symbol.kind), static_cast<std::uint64_t>(symbol.bits),
        static_cast<std::uint64_t>(symbol.special), static_cast<std::uint64_t>(symbol.component),
        reinterpret_cast<std::uint64_t>(symbol.variable), static_cast<std::uint64_t>(symbol.offset),
        static_cast<std::uint64_t>(symbol.type), static_cast<std::uint64_t>(symbol.result),
        static_cast<std::uint64_t>(symbol.from_bits), static_cast<std::uint64_t>(symbol.is_signed),
        static_cast<std::uint64_t>(symbol.space), static_cast<std::uint64_t>(symbol.op),
        static_cast<std::uint64_t>(symbol.loop), static_cast<std::uint64_t>(symbol.tested)}) {
    AppendKey(key, field);
  }
  if (symbol.instruction != nullptr) key += OperationKey(*symbol.instruction);
  for (const ValueRef& operand : symbol.operands) key += KeyOf(*operand);
  const auto [it, added] = shared_.try_emplace(std::move(key), size());
  if (added) Add(std::move(symbol));
  return it->second;
}

namespace {

/// What is the same for all threads is computed again by generated code, however many instructions that takes. Whoever
/// goes through it goes down on the host's stack.
constexpr std::uint32_t kMaxUniformDepth = 1000;

}  // namespace

SymbolId SymbolPool::Add(Symbol symbol) {
  for (const ValueRef& operand : symbol.operands) {
    for (const Term& term : operand->number.terms()) {
      for (const SymbolId id : term.monomial.symbols) {
        if (id != kNoSymbol) symbol.depth = std::max(symbol.depth, symbols_[id].depth + 1);
      }
    }
  }
  if (symbol.depth > (symbol.uniform ? kMaxUniformDepth : kMaxDepth)) {
    // Too deep to be worth following.
    symbol.kind = SymbolKind::kAny;
    symbol.uniform = false;
    symbol.bounds = RangeOfType(symbol.bits, true);
    symbol.operands.clear();
    symbol.depth = 0;
  }
  symbols_.push_back(std::move(symbol));
  return size() - 1;
}

SymbolId SymbolPool::Any(unsigned bits, LoopInstanceId varies_in) {
  Symbol symbol;
  symbol.bits = static_cast<std::uint8_t>(bits);
  symbol.bounds = RangeOfType(bits, true);
  symbol.varies_in = varies_in;
  return Add(std::move(symbol));
}

AssumptionId SymbolPool::Assume(Assumption assumption) {
  std::string key;
  AppendKey(key, static_cast<std::uint64_t>(assumption.kind));
  AppendKey(key, assumption.number);
  AppendKey(key, static_cast<std::uint64_t>(assumption.range.low));
  AppendKey(key, static_cast<std::uint64_t>(assumption.range.high));
  for (const UniformCondition& condition : assumption.conditions)
    AppendKey(key, 2 * std::uint64_t{condition.predicate} + condition.truth);
  const auto [it, added] = assumption_ids_.try_emplace(std::move(key), static_cast<AssumptionId>(assumptions_.size()));
  if (added) assumptions_.push_back(std::move(assumption));
  return it->second;
}

bool SymbolPool::IsUniform(const Monomial& monomial) const {
  return std::ranges::all_of(monomial.symbols, [&](SymbolId id) { return id == kNoSymbol || symbols_[id].uniform; });
}

bool SymbolPool::IsUniform(const Polynomial& number) const {
  return std::ranges::all_of(number.terms(), [&](const Term& term) { return IsUniform(term.monomial); });
}

Interval SymbolPool::BoundsOf(const Monomial& monomial) const {
  Interval bounds{1, 1};
  for (const SymbolId id : monomial.symbols) {
    if (id != kNoSymbol) bounds = Product(bounds, symbols_[id].bounds);
  }
  return bounds;
}

Interval SymbolPool::BoundsOf(const Polynomial& number) const {
  Interval bounds{0, 0};
  for (const Term& term : number.terms())
    bounds = Sum(bounds, Product(BoundsOf(term.monomial), {term.factor, term.factor}));
  return bounds;
}

ValueRef Number(Polynomial number, unsigned bits, std::vector<AssumptionId> assumptions) {
  auto value = std::make_shared<Value>();
  value->bits = static_cast<std::uint8_t>(bits);
  value->number = number.Wrapped(bits);
  value->assumptions = std::move(assumptions);
  return value;
}

std::vector<AssumptionId> Union(const std::vector<AssumptionId>& a, const std::vector<AssumptionId>& b) {
  std::vector<AssumptionId> result;
  std::ranges::set_union(a, b, std::back_inserter(result));
  return result;
}

}  // namespace gridloom::analysis
