#include "rewriter/analysis/value_math.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "rewriter/analysis/transfer.h"
#include "rewriter/ptx/defuse.h"

namespace gridloom::analysis {

using ptx::Instruction;

bool IsPure(const Instruction& instruction) {
  const ptx::OpClass cls = instruction.info().cls;
  return ptx::IsArithmetic(cls) && cls != ptx::OpClass::kVideo && !ReadsCarry(instruction) && !WritesCarry(instruction);
}

ValueRef ValueMath::Data(std::string because, SourceLoc loc, unsigned bits) const {
  auto value = std::make_shared<Value>();
  value->kind = Value::Kind::kData;
  value->bits = static_cast<std::uint8_t>(bits);
  value->because = std::move(because);
  value->loc = loc;
  return value;
}

SymbolId ValueMath::PointerOf(const Polynomial& number) const {
  SymbolId found = kNoSymbol, marked = kNoSymbol;
  unsigned count = 0, count_marked = 0;
  for (const Term& term : number.terms()) {
    if (term.factor != 1 || term.monomial.degree() != 1) continue;
    const SymbolId id = term.monomial.symbols[0];
    const Symbol& symbol = pool_[id];
    const bool loaded = (symbol.kind == SymbolKind::kParam || symbol.kind == SymbolKind::kLoad) &&
                        ptx::BitsOf(symbol.type) == 64 && !ptx::IsFloat(symbol.type) && !ptx::IsSigned(symbol.type);
    if (!loaded && symbol.kind != SymbolKind::kAddress) continue;
    ++count;
    found = id;
    if (!symbol.is_pointer) continue;
    ++count_marked;
    marked = id;
  }
  if (count_marked == 1) return marked;
  return count == 1 ? found : kNoSymbol;
}

LoopInstanceId ValueMath::VariesIn(const std::vector<ValueRef>& operands) const {
  // Inner loops are entered, and numbered, later than those around them; symbols of loops that do not contain each
  // other are only met together behind both, where the later one stands for both.
  LoopInstanceId loop = kNoLoopInstance;
  for (const ValueRef& operand : operands) {
    for (const Term& term : operand->number.terms()) {
      for (const SymbolId id : term.monomial.symbols) {
        if (id == kNoSymbol || pool_[id].varies_in == kNoLoopInstance) continue;
        loop = loop == kNoLoopInstance ? pool_[id].varies_in : std::max(loop, pool_[id].varies_in);
      }
    }
  }
  return loop;
}

ValueRef ValueMath::FirstData(const std::vector<ValueRef>& operands, unsigned bits) const {
  const auto it = std::ranges::find_if(operands, [](const ValueRef& operand) { return operand->IsData(); });
  if (it == operands.end()) return nullptr;
  auto value = std::make_shared<Value>(**it);
  value->bits = static_cast<std::uint8_t>(bits);
  for (const ValueRef& operand : operands) {
    if (value->base == kNoSymbol && !operand->IsData()) value->base = PointerOf(operand->number);
  }
  return value;
}

// Modulo 2^bits any representative of a factor will do. The uniform ones are taken as the numbers that their registers
// would hold, so that the sum is small when the program's is.
Polynomial ValueMath::NormalizedNumber(const Value& value, bool is_signed) {
  const auto extension = [&](const Polynomial& number, bool sign) -> Polynomial {
    if (number.AsConstant() && sign) return number;
    if (pool_.BoundsOf(number).IsInside(RangeOfType(value.bits, sign))) return number;
    Symbol symbol;
    symbol.kind = SymbolKind::kExtension;
    symbol.bits = 64;
    symbol.uniform = true;
    symbol.from_bits = value.bits;
    symbol.is_signed = sign;
    symbol.bounds = RangeOfType(value.bits, sign);
    symbol.operands.push_back(Number(number, value.bits));
    return Polynomial::Of(pool_.Share(std::move(symbol)));
  };
  const auto ranging = [&](const Monomial& monomial) {
    Monomial part;
    unsigned count = 0;
    for (const SymbolId id : monomial.symbols) {
      if (id != kNoSymbol && !pool_[id].uniform) part.symbols[count++] = id;
    }
    return part;
  };
  std::vector<std::pair<Monomial, Polynomial>> groups;
  for (const Term& term : value.number.terms()) {
    const Monomial part = ranging(term.monomial);
    Polynomial factor = Polynomial::Constant(term.factor);
    for (const SymbolId id : term.monomial.symbols) {
      if (id != kNoSymbol && pool_[id].uniform) factor = *factor.Times(Polynomial::Of(id));
    }
    const auto it = std::ranges::find(groups, part, &std::pair<Monomial, Polynomial>::first);
    if (it == groups.end()) {
      groups.push_back({part, factor});
    } else {
      it->second = it->second.Plus(factor);
    }
  }
  Polynomial result;
  for (const auto& [part, factor] : groups) {
    // A difference is rather small and negative than large, whatever its type: i - 1 for the first CTA.
    const bool subtracts = std::ranges::any_of(factor.terms(), [](const Term& term) { return term.factor < 0; });
    // A step of 4*n is four times one of n, as the loop for an unrolled one's rest has it.
    std::int64_t times = part.degree() == 0 ? 1 : 0;
    for (const Term& term : factor.terms()) times = std::gcd(times, term.factor);
    if (times < 1 || factor.AsConstant()) times = 1;
    Polynomial product = extension(factor.Divided(times), is_signed || subtracts || part.degree() != 0).Times(times);
    for (const SymbolId id : part.symbols) {
      if (id == kNoSymbol) continue;
      auto next = product.Times(Polynomial::Of(id));
      if (!next) return Polynomial::Of(pool_.Any(64, kNoLoopInstance));
      product = *next;
    }
    result = result.Plus(product);
  }
  return result;
}

ValueRef ValueMath::Exact(const ValueRef& value, bool is_signed) {
  if (value->IsData() || value->bits >= 64) return value;
  const Interval type = RangeOfType(value->bits, is_signed);
  if (pool_.BoundsOf(value->number).IsInside(type)) {
    return Number(value->number, 64, value->assumptions);
  }
  Polynomial number = NormalizedNumber(*value, is_signed);
  auto assumptions = value->assumptions;
  if (!pool_.BoundsOf(number).IsInside(type)) {
    assumptions =
        Union(assumptions, {pool_.Assume({.kind = Assumption::Kind::kInside, .number = number, .range = type})});
  }
  return Number(std::move(number), 64, std::move(assumptions));
}

namespace {

/// For alternatives that are left when equal ones have become one: `place` says which each has become. Of those that
/// have become one it is not known which was chosen.
ChosenByRef OfDistinct(const ChosenByRef& chosen_by, const std::vector<std::size_t>& place, std::size_t distinct) {
  if (chosen_by == nullptr || place.size() == distinct) return chosen_by;
  ChosenBy left(distinct);
  std::vector<unsigned> became(distinct);
  for (std::size_t i = 0; i < place.size(); ++i) {
    left[place[i]] = (*chosen_by)[i];
    ++became[place[i]];
  }
  for (std::size_t i = 0; i < distinct; ++i) {
    if (became[i] > 1) left[i].clear();
  }
  return std::make_shared<const ChosenBy>(std::move(left));
}

}  // namespace

ValueRef ValueMath::Choice(std::vector<ValueRef> alternatives, LoopInstanceId loop, const ChosenByRef& chosen_by) {
  const unsigned bits = alternatives.front()->bits;
  const auto same = [](const ValueRef& a, const ValueRef& b) {
    return a == b || (!a->IsData() && !b->IsData() && a->bits == b->bits && a->number == b->number);
  };
  std::vector<ValueRef> distinct;
  std::vector<std::size_t> place;  // of each alternative among them
  std::vector<AssumptionId> assumptions;
  for (const ValueRef& value : alternatives) {
    assumptions = Union(assumptions, value->assumptions);
    const auto it = std::ranges::find_if(distinct, [&](const ValueRef& other) { return same(value, other); });
    place.push_back(static_cast<std::size_t>(it - distinct.begin()));
    if (it == distinct.end()) distinct.push_back(value);
  }
  if (distinct.size() == 1) {
    if (assumptions == distinct[0]->assumptions) return distinct[0];
    auto value = std::make_shared<Value>(*distinct[0]);
    value->assumptions = std::move(assumptions);
    return Limited(std::move(value), loop);
  }
  if (ValueRef data = FirstData(distinct, bits)) return data;
  ChosenByRef of_distinct = OfDistinct(chosen_by, place, distinct.size());
  ValueRef varying = Varying(std::move(distinct), bits, loop, std::move(of_distinct));
  if (const auto choice = varying->number.AsSymbol()) pool_.at(*choice).at_join = true;
  auto value = std::make_shared<Value>(*varying);
  value->assumptions = Union(assumptions, varying->assumptions);
  return Limited(std::move(value), loop);
}

namespace {

/// The terms that all numbers have.
Polynomial CommonTerms(const std::vector<ValueRef>& numbers) {
  return numbers[0]->number.Filter([&](const Monomial& monomial) {
    const auto factor = [&](const Polynomial& number) {
      const auto it = std::ranges::find(number.terms(), monomial, &Term::monomial);
      return it == number.terms().end() ? 0 : it->factor;
    };
    return std::ranges::all_of(
        numbers, [&](const ValueRef& number) { return factor(number->number) == factor(numbers[0]->number); });
  });
}

/// The greatest product of a constant and uniform symbols that divides all terms of all numbers; its factor is
/// positive, or 0 when all numbers are.
Term CommonFactor(const SymbolPool& pool, const std::vector<Polynomial>& numbers) {
  std::optional<Term> common;
  for (const Polynomial& number : numbers) {
    for (const Term& term : number.terms()) {
      if (!common) {
        common = Term{term.monomial, 0};
        for (SymbolId& id : common->monomial.symbols) id = id != kNoSymbol && pool[id].uniform ? id : kNoSymbol;
      }
      common->factor = std::gcd(common->factor, term.factor);
      Monomial left = term.monomial;
      for (SymbolId& id : common->monomial.symbols) {
        const auto it = id == kNoSymbol ? left.symbols.end() : std::ranges::find(left.symbols, id);
        if (it == left.symbols.end()) id = kNoSymbol;
        else *it = kNoSymbol;
      }
    }
  }
  if (!common) return {};
  std::ranges::sort(common->monomial.symbols);
  return *common;
}

/// Without a factor that all terms have.
Polynomial DividedBy(const Polynomial& number, const Term& divisor) {
  Polynomial result;
  for (const Term& term : number.terms()) {
    Polynomial product = Polynomial::Constant(term.factor / divisor.factor);
    Monomial left = divisor.monomial;
    for (const SymbolId id : term.monomial.symbols) {
      const auto it = id == kNoSymbol ? left.symbols.end() : std::ranges::find(left.symbols, id);
      if (it != left.symbols.end()) *it = kNoSymbol;
      else if (id != kNoSymbol) product = *product.Times(Polynomial::Of(id));
    }
    result = result.Plus(product);
  }
  return result;
}

}  // namespace

ValueRef ValueMath::JoinOf(const std::vector<ValueRef>& alternatives, LoopInstanceId loop,
                           const ChosenByRef& chosen_by) {
  if (ValueRef data = FirstData(alternatives, 64)) return data;
  const auto choice = [&](std::vector<ValueRef> of) {
    ValueRef value = Varying(std::move(of), 64, loop, chosen_by);
    pool_.at(*value->number.AsSymbol()).at_join = true;
    return value;
  };
  const Polynomial common = CommonTerms(alternatives);
  std::vector<Polynomial> rests;
  for (const ValueRef& alternative : alternatives) rests.push_back(alternative->number.Plus(common, -1));
  const Term factor = CommonFactor(pool_, rests);
  if (factor.factor == 0) return Number(common, 64, Varying(alternatives, 64, loop)->assumptions);
  if (factor.factor < 0 || (common.IsZero() && factor.factor == 1 && factor.monomial.degree() == 0))
    return choice(alternatives);
  std::vector<ValueRef> quotients;
  for (std::size_t i = 0; i < rests.size(); ++i)
    quotients.push_back(Number(DividedBy(rests[i], factor), 64, alternatives[i]->assumptions));
  const ValueRef rest = choice(std::move(quotients));
  Polynomial scaled = rest->number.Times(factor.factor);
  for (const SymbolId id : factor.monomial.symbols) {
    if (id == kNoSymbol) continue;
    auto product = scaled.Times(Polynomial::Of(id));
    if (!product) return choice(alternatives);
    scaled = std::move(*product);
  }
  return Number(common.Plus(scaled), 64, rest->assumptions);
}

ValueRef ValueMath::Varying(std::vector<ValueRef> alternatives, unsigned bits, LoopInstanceId loop,
                            ChosenByRef chosen_by) {
  if (ValueRef data = FirstData(alternatives, bits)) return data;
  Symbol symbol;
  symbol.kind = SymbolKind::kChoice;
  symbol.bits = static_cast<std::uint8_t>(bits);
  symbol.varies_in = loop;
  symbol.chosen_by = std::move(chosen_by);
  symbol.bounds = {INT64_MAX, INT64_MIN};
  std::vector<AssumptionId> assumptions;
  for (const ValueRef& alternative : alternatives) {
    ValueRef value = Exact(alternative, true);
    assumptions = Union(assumptions, value->assumptions);
    symbol.bounds = Hull(symbol.bounds, pool_.BoundsOf(value->number));
    symbol.operands.push_back(std::move(value));
  }
  const Interval type = RangeOfType(bits, true);
  symbol.bounds = {std::max(symbol.bounds.low, type.low), std::min(symbol.bounds.high, type.high)};
  return Number(Polynomial::Of(pool_.Add(std::move(symbol))), bits, std::move(assumptions));
}

ValueRef ValueMath::Clamp(RangeOp op, const std::vector<ValueRef>& operands, unsigned bits) {
  if (ValueRef data = FirstData(operands, bits)) return data;
  Symbol symbol;
  symbol.kind = SymbolKind::kClamp;
  symbol.bits = static_cast<std::uint8_t>(bits);
  symbol.op = op;
  symbol.operands = operands;
  symbol.varies_in = VariesIn(operands);
  std::vector<Interval> in;
  std::vector<AssumptionId> assumptions;
  for (const ValueRef& operand : operands) {
    in.push_back(pool_.BoundsOf(operand->number));
    assumptions = Union(assumptions, operand->assumptions);
  }
  symbol.bounds = ApplyRange(op, in);
  const Interval type = RangeOfType(bits, true);
  if (!symbol.bounds.IsInside(type)) {
    // What the register would hold read as a signed number need not be the result.
    symbol.bounds = {std::max(symbol.bounds.low, type.low), std::min(symbol.bounds.high, type.high)};
    const SymbolId id = pool_.Share(std::move(symbol));
    assumptions = Union(
        assumptions, {pool_.Assume({.kind = Assumption::Kind::kInside, .number = Polynomial::Of(id), .range = type})});
    return Number(Polynomial::Of(id), bits, std::move(assumptions));
  }
  return Number(Polynomial::Of(pool_.Share(std::move(symbol))), bits, std::move(assumptions));
}

ValueRef ValueMath::Operation(const Instruction& instruction, const std::vector<ValueRef>& operands, unsigned bits) {
  Symbol symbol;
  symbol.kind = SymbolKind::kOperation;
  symbol.bits = static_cast<std::uint8_t>(bits);
  symbol.uniform = true;
  symbol.instruction = &instruction;
  symbol.bounds = UniformBounds(pool_, instruction, operands, bits);
  symbol.operands = operands;
  return Number(Polynomial::Of(pool_.Share(std::move(symbol))), bits);
}

ValueRef ValueMath::Apply(const Instruction& instruction, const std::vector<ValueRef>& operands, unsigned bits,
                          LoopInstanceId loop) {
  if (ValueRef data = FirstData(operands, bits)) return data;
  if (ValueRef value = Transfer{*this, instruction, operands, bits, loop}.Run()) return value;
  std::vector<ValueRef> registers;
  bool uniform = IsPure(instruction);
  std::size_t at = 0;
  // Register operands only; immediates and special registers stay in the instruction.
  VisitReads(instruction, [&](const ptx::Operand& operand) {
    const ValueRef& value = operands[at++];
    uniform = uniform && pool_.IsUniform(value->number);
    if (operand.kind == ptx::OperandKind::kSpecial) uniform = uniform && pool_.IsUniform(value->number);
    if (operand.kind == ptx::OperandKind::kRegister) registers.push_back(value);
    if (operand.kind == ptx::OperandKind::kSymbol) uniform = false;
  });
  unsigned written = 0;
  VisitDefs(instruction, [&](const ptx::Operand&) { ++written; });
  ValueRef value = uniform && written == 1 ? Operation(instruction, registers, bits) : Any(bits, loop);
  if (instruction.opcode == ptx::Opcode::kSetp || bits == 1) {
    auto with = std::make_shared<Value>(*value);
    with->predicate = Transfer{*this, instruction, operands, bits, loop}.PredicateOf();
    return with;
  }
  return value;
}

}  // namespace gridloom::analysis
