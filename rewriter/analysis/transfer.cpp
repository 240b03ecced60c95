#include "rewriter/analysis/transfer.h"

#include <algorithm>
#include <array>
#include <bit>

namespace gridloom::analysis {

using ptx::Mod;
using ptx::Opcode;

namespace {

struct Row {
  Opcode opcode;
  std::size_t operands;  ///< read; of an instruction with others, a fault of its author, nothing is said
  ValueRef (Transfer::*apply)();
};

constexpr std::array kTransfers = {
    Row{Opcode::kAbs, 1, &Transfer::Absolute},    Row{Opcode::kAdd, 2, &Transfer::Add},
    Row{Opcode::kAnd, 2, &Transfer::And},         Row{Opcode::kCvt, 1, &Transfer::Convert},
    Row{Opcode::kCvta, 1, &Transfer::Move},       Row{Opcode::kDiv, 2, &Transfer::Divide},
    Row{Opcode::kMad, 3, &Transfer::MultiplyAdd}, Row{Opcode::kMax, 2, &Transfer::MinMax},
    Row{Opcode::kMin, 2, &Transfer::MinMax},      Row{Opcode::kMov, 1, &Transfer::Move},
    Row{Opcode::kMul, 2, &Transfer::Multiply},    Row{Opcode::kNeg, 1, &Transfer::Negate},
    Row{Opcode::kNot, 1, &Transfer::Not},         Row{Opcode::kOr, 2, &Transfer::Or},
    Row{Opcode::kRem, 2, &Transfer::Remainder},   Row{Opcode::kSelp, 3, &Transfer::Select},
    Row{Opcode::kShl, 2, &Transfer::ShiftLeft},   Row{Opcode::kShr, 2, &Transfer::ShiftRight},
    Row{Opcode::kSub, 2, &Transfer::Subtract},    Row{Opcode::kXor, 2, &Transfer::Xor},
};

std::int64_t SafeDivide(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : a / b; }

/// The smallest number of the form 2^n - 1 that is not below `value`.
std::int64_t AllOnes(std::int64_t value) {
  return static_cast<std::int64_t>((std::uint64_t{1} << std::bit_width(static_cast<std::uint64_t>(value))) - 1);
}

Interval Magnitude(const Interval& a) {
  if (!a.IsBounded()) return {};
  const std::int64_t most = std::max(std::abs(a.low), std::abs(a.high));
  return {a.low <= 0 && a.high >= 0 ? 0 : std::min(std::abs(a.low), std::abs(a.high)), most};
}

}  // namespace

Interval ApplyRange(RangeOp op, const std::vector<Interval>& in) {
  const Interval& a = in[0];
  const Interval& b = in.size() > 1 ? in[1] : in[0];
  switch (op) {
    case RangeOp::kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case RangeOp::kMax: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case RangeOp::kShiftRight:
      if (b.low == b.high && b.low >= 0 && b.low < 64) return {a.low >> b.low, a.high >> b.low};
      return Hull(a, {std::min<std::int64_t>(0, a.low), 0});
    case RangeOp::kAndMask:
      if (b.low == b.high && b.low < 0) return a.IsBounded() ? Interval{a.low & b.low, a.high & b.low} : a;
      if (b.low < 0) return {};
      return {0, a.low >= 0 ? std::min(a.high, b.high) : b.high};
    case RangeOp::kOr:
      if (a.low < 0 || b.low < 0) return {};
      return {std::max(a.low, b.low), !a.IsBounded() || !b.IsBounded() ? INT64_MAX : AllOnes(std::max(a.high, b.high))};
    case RangeOp::kXor:
      if (a.low < 0 || b.low < 0) return {};
      return {0, !a.IsBounded() || !b.IsBounded() ? INT64_MAX : AllOnes(std::max(a.high, b.high))};
    case RangeOp::kDivide: {
      if (b.low < 1) return Hull(a, {0, 0});
      const std::int64_t corners[] = {a.low / b.low, SafeDivide(a.low, b.high), a.high / b.low,
                                      SafeDivide(a.high, b.high)};
      return {*std::ranges::min_element(corners), *std::ranges::max_element(corners)};
    }
    case RangeOp::kRemainder: {
      const std::int64_t most = b.high == INT64_MAX ? INT64_MAX - 1 : std::max<std::int64_t>(b.high - 1, 0);
      return {a.low >= 0 ? 0 : std::max(a.low, -most), a.high <= 0 ? 0 : std::min(a.high, most)};
    }
    case RangeOp::kAbsolute: return Magnitude(a);
    case RangeOp::kAtMost:
    case RangeOp::kAtLeast: return a;
  }
  return {};
}

Interval UniformBounds(const SymbolPool& pool, const ptx::Instruction& instruction,
                       const std::vector<ValueRef>& operands, unsigned bits) {
  const Interval type = RangeOfType(bits, true);
  const auto bounds = [&](std::size_t n) { return pool.BoundsOf(operands[n]->number); };
  // Only what is common and cheap to know: masks by constants, shifts and divisions of what is not negative.
  std::vector<Interval> in;
  std::size_t at = 0;
  VisitReads(instruction, [&](const ptx::Operand& operand) {
    if (operand.kind == ptx::OperandKind::kInt) {
      const auto value = static_cast<std::int64_t>(operand.int_literal.value);
      in.push_back({value, value});
    } else if (operand.kind == ptx::OperandKind::kRegister && at < operands.size()) {
      in.push_back(bounds(at++));
    } else {
      in.push_back({});
    }
  });
  const auto not_negative = [](const Interval& interval) { return interval.low >= 0; };
  Interval result = type;
  if (in.size() == 2 && instruction.type() != ptx::ScalarType::kPred && !ptx::IsFloat(instruction.type())) {
    if (instruction.opcode == Opcode::kAnd && (not_negative(in[0]) || not_negative(in[1]))) {
      result = {0,
                std::min(not_negative(in[0]) ? in[0].high : INT64_MAX, not_negative(in[1]) ? in[1].high : INT64_MAX)};
    } else if (instruction.opcode == Opcode::kShr && in[0].IsInside(RangeOfType(bits, false)) && not_negative(in[0])) {
      result = ApplyRange(RangeOp::kShiftRight, in);
    } else if (instruction.opcode == Opcode::kDiv && not_negative(in[0]) && in[1].low >= 1) {
      result = ApplyRange(RangeOp::kDivide, in);
    } else if (instruction.opcode == Opcode::kRem && not_negative(in[0]) && in[1].low >= 1) {
      result = ApplyRange(RangeOp::kRemainder, in);
    }
  }
  return result.IsInside(type) ? result : type;
}

bool Transfer::uniform() const {
  return std::ranges::all_of(operands, [&](const ValueRef& operand) { return math.pool_.IsUniform(operand->number); });
}

ValueRef Transfer::Run() {
  const auto type = instruction.type();
  if (!instruction.Has(ptx::Trait::kMovesBits) && (!ptx::IsInteger(type) || ptx::Info(type).lanes != 1)) return nullptr;
  if (instruction.Has(Mod::kSat) || ReadsCarry(instruction) || WritesCarry(instruction)) return nullptr;
  const auto it = std::ranges::find(kTransfers, instruction.opcode, &Row::opcode);
  return it == kTransfers.end() || operands.size() != it->operands ? nullptr : (this->*it->apply)();
}

ValueRef Transfer::Sum(const ValueRef& a, const ValueRef& b, std::int64_t factor, unsigned sum_bits) {
  Polynomial sum = a->number.Plus(b->number, factor);
  if (sum.terms().size() > Polynomial::kMaxTerms) return math.Any(sum_bits, loop);
  return Number(std::move(sum), sum_bits, Union(a->assumptions, b->assumptions));
}

ValueRef Transfer::Add() { return Sum(operands[0], operands[1], 1, type_bits()); }
ValueRef Transfer::Subtract() { return Sum(operands[0], operands[1], -1, type_bits()); }
ValueRef Transfer::Negate() { return Number(operands[0]->number.Times(-1), type_bits(), operands[0]->assumptions); }
ValueRef Transfer::Not() {
  if (type_bits() == 1) return nullptr;
  return Number(operands[0]->number.Times(-1).Plus(Polynomial::Constant(-1)), type_bits(), operands[0]->assumptions);
}

// The low half, the double-width product, or (of what is bounded) the high half.
ValueRef Transfer::Product(const ValueRef& a, const ValueRef& b) {
  const unsigned product_bits = instruction.Has(Mod::kWide) ? 2 * type_bits() : type_bits();
  const bool exact = instruction.Has(Mod::kWide) || instruction.Has(Mod::kHi);
  if (instruction.Has(Mod::kHi) && (uniform() || type_bits() > 32)) return nullptr;
  const ValueRef left = exact ? math.Exact(a, is_signed()) : a;
  const ValueRef right = exact ? math.Exact(b, is_signed()) : b;
  auto product = left->number.Times(right->number);
  const auto assumptions = Union(left->assumptions, right->assumptions);
  if (!product) return uniform() ? nullptr : math.Any(product_bits, loop);
  if (!instruction.Has(Mod::kHi)) return Number(std::move(*product), product_bits, assumptions);
  return math.Clamp(RangeOp::kShiftRight,
                    {Number(std::move(*product), 64, assumptions), Number(Polynomial::Constant(type_bits()), 64)},
                    bits);
}

ValueRef Transfer::Multiply() { return Product(operands[0], operands[1]); }

ValueRef Transfer::MultiplyAdd() {
  if (instruction.Has(Mod::kHi)) return nullptr;
  const ValueRef product = Product(operands[0], operands[1]);
  return product == nullptr ? nullptr : Sum(product, operands[2], 1, product->bits);
}

ValueRef Transfer::ShiftLeft() {
  const auto amount = operands[1]->number.AsConstant();
  if (!amount) return nullptr;
  const auto shift = static_cast<std::uint32_t>(*amount);
  if (shift >= type_bits()) return Number({}, type_bits());
  return Number(operands[0]->number.Times(static_cast<std::int64_t>(std::uint64_t{1} << shift)), type_bits(),
                operands[0]->assumptions);
}

ValueRef Transfer::ShiftRight() {
  const auto amount = operands[1]->number.AsConstant();
  if (!amount || uniform()) return nullptr;
  const auto shift = std::min<std::uint32_t>(static_cast<std::uint32_t>(*amount), type_bits() - 1u);
  if (type_bits() == 64 && !is_signed() && BoundsOf(operands[0]).low < 0) return nullptr;
  if (shift != static_cast<std::uint32_t>(*amount) && !is_signed()) return Number({}, type_bits());
  const ValueRef value = Exact(0);
  const std::int64_t power = std::int64_t{1} << shift;
  const auto& terms = value->number.terms();
  if (std::ranges::all_of(terms, [&](const Term& term) { return term.factor % power == 0; })) {
    return Number(value->number.Divided(power), type_bits(), value->assumptions);
  }
  return math.Clamp(RangeOp::kShiftRight, {value, Number(Polynomial::Constant(shift), 64)}, bits);
}

ValueRef Transfer::And() {
  if (type_bits() == 1 || uniform()) return nullptr;
  const std::size_t mask_at = math.pool_.IsUniform(operands[1]->number) ? 1 : 0;
  if (!math.pool_.IsUniform(operands[mask_at]->number)) return nullptr;
  const ValueRef value = math.Exact(operands[1 - mask_at], true), mask = math.Exact(operands[mask_at], true);
  const Interval of_mask = BoundsOf(mask), of_value = BoundsOf(value);
  const auto constant = mask->number.AsConstant();
  if (of_mask.low < 0 && !constant) return nullptr;
  if (constant) {
    if (*constant == 0) return Number({}, type_bits());
    const bool low_bits = *constant > 0 && (*constant & (*constant + 1)) == 0;
    if (low_bits && of_value.IsInside({0, *constant})) return Number(value->number, type_bits(), value->assumptions);
    const bool clears_low_bits = *constant < 0 && std::has_single_bit(static_cast<std::uint64_t>(-*constant));
    if (*constant < 0 && !clears_low_bits) return nullptr;
    if (clears_low_bits && *constant == -1) return operands[1 - mask_at];
  }
  return math.Clamp(RangeOp::kAndMask, {value, mask}, bits);
}

namespace {

/// All its values are multiples of two to the power of the result. An extension keeps the zeros at the low end.
int LowZeros(const SymbolPool& pool, const Polynomial& number) {
  int zeros = 62;
  for (const Term& term : number.terms()) {
    int of_term = std::countr_zero(static_cast<std::uint64_t>(term.factor));
    for (const SymbolId id : term.monomial.symbols) {
      if (id == kNoSymbol || pool[id].kind != SymbolKind::kExtension) continue;
      of_term += std::min<int>(LowZeros(pool, pool[id].operands[0]->number), pool[id].from_bits - 1);
    }
    zeros = std::min(zeros, of_term);
  }
  return zeros;
}

}  // namespace

ValueRef Transfer::Or() {
  if (type_bits() == 1) return nullptr;
  const ValueRef a = math.Exact(operands[0], true), b = math.Exact(operands[1], true);
  const Interval of_a = BoundsOf(a), of_b = BoundsOf(b);
  // No bit is set in both: a sum. The low bits of a multiple of a power of two are zeros whatever its sign, and where
  // it wraps.
  const auto disjoint = [&](const ValueRef& high, const Interval& of_low) {
    return of_low.low >= 0 && of_low.high < std::int64_t{1} << LowZeros(math.pool_, high->number);
  };
  if (disjoint(operands[0], of_b)) return Sum(operands[0], b, 1, type_bits());
  if (disjoint(operands[1], of_a)) return Sum(a, operands[1], 1, type_bits());
  if (uniform() || of_a.low < 0 || of_b.low < 0) return nullptr;
  return math.Clamp(RangeOp::kOr, {a, b}, bits);
}

ValueRef Transfer::Xor() {
  if (type_bits() == 1 || uniform()) return nullptr;
  const ValueRef a = math.Exact(operands[0], true), b = math.Exact(operands[1], true);
  if (BoundsOf(a).low < 0 || BoundsOf(b).low < 0) return nullptr;
  return math.Clamp(RangeOp::kXor, {a, b}, bits);
}

ValueRef Transfer::MinMax() {
  if (uniform() || (type_bits() == 64 && !is_signed())) return nullptr;
  return math.Clamp(instruction.opcode == Opcode::kMin ? RangeOp::kMin : RangeOp::kMax, {Exact(0), Exact(1)}, bits);
}

ValueRef Transfer::Divide() {
  if (uniform() || !math.pool_.IsUniform(operands[1]->number)) return nullptr;
  const ValueRef value = Exact(0);
  ValueRef divisor = Exact(1);
  if (type_bits() == 64 && !is_signed() && BoundsOf(value).low < 0) return nullptr;
  if (BoundsOf(divisor).low < 1) {
    const auto positive =
        math.pool_.Assume({.kind = Assumption::Kind::kInside, .number = divisor->number, .range = {1, INT64_MAX}});
    divisor = Number(divisor->number, 64, Union(divisor->assumptions, {positive}));
  }
  return math.Clamp(instruction.opcode == Opcode::kDiv ? RangeOp::kDivide : RangeOp::kRemainder, {value, divisor},
                    bits);
}

ValueRef Transfer::Remainder() { return Divide(); }

ValueRef Transfer::Absolute() { return uniform() ? nullptr : math.Clamp(RangeOp::kAbsolute, {Exact(0)}, bits); }

// cvt.dst.src: the source is read as its type says, and written extended to the register as the destination's type
// says.
ValueRef Transfer::Convert() {
  const auto to = instruction.type(0), from = instruction.type(1);
  if (!ptx::IsInteger(to) || !ptx::IsInteger(from)) return nullptr;
  const ValueRef& operand = operands[0];
  const ValueRef source = math.Exact(
      Number(operand->number, std::min<unsigned>(ptx::BitsOf(from), 64), operand->assumptions), ptx::IsSigned(from));
  const ValueRef cut = math.Exact(Number(source->number, ptx::BitsOf(to), source->assumptions), ptx::IsSigned(to));
  return Number(ptx::BitsOf(to) >= bits ? source->number : cut->number, bits,
                ptx::BitsOf(to) >= bits ? source->assumptions : cut->assumptions);
}

ValueRef Transfer::Move() {
  const bool literal = instruction.operands.back().kind == ptx::OperandKind::kFloat;
  return operands[0]->bits == bits && !literal ? operands[0] : nullptr;
}

// One of two pointers is followed as a choice, also where a thread could tell which.
ValueRef Transfer::Select() {
  const bool pointer =
      math.PointerOf(operands[0]->number) != kNoSymbol || math.PointerOf(operands[1]->number) != kNoSymbol;
  if (uniform() && !pointer) return nullptr;
  return math.Choice({operands[0], operands[1]}, loop, ChosenByTruth(operands[2]->predicate));
}

PredicateRef Transfer::Comparison() {
  const auto type = instruction.type(0);
  if (operands.size() < 2 || (!ptx::IsInteger(type) && ptx::Info(type).cls != ptx::TypeClass::kBits)) return nullptr;
  auto predicate = std::make_shared<Predicate>();
  using Kind = Predicate::Kind;
  bool swapped = false, found = true, sign = is_signed();
  if (instruction.Has(Mod::kLt)) predicate->kind = Kind::kLess;
  else if (instruction.Has(Mod::kLe)) predicate->kind = Kind::kLessEqual;
  else if (instruction.Has(Mod::kGt)) predicate->kind = Kind::kLess, swapped = true;
  else if (instruction.Has(Mod::kGe)) predicate->kind = Kind::kLessEqual, swapped = true;
  else if (instruction.Has(Mod::kEq)) predicate->kind = Kind::kEqual, sign = true;
  else if (instruction.Has(Mod::kNe)) predicate->kind = Kind::kNotEqual, sign = true;
  else if (instruction.Has(Mod::kLo)) predicate->kind = Kind::kLess, sign = false;
  else if (instruction.Has(Mod::kLs)) predicate->kind = Kind::kLessEqual, sign = false;
  else if (instruction.Has(Mod::kHi)) predicate->kind = Kind::kLess, swapped = true, sign = false;
  else if (instruction.Has(Mod::kHs)) predicate->kind = Kind::kLessEqual, swapped = true, sign = false;
  else found = false;
  if (!found) return nullptr;
  predicate->left = math.Exact(operands[swapped ? 1 : 0], sign);
  predicate->right = math.Exact(operands[swapped ? 0 : 1], sign);
  if (type_bits() == 64 && !sign) {
    // Unsigned numbers of 64 bits compare as signed ones while neither has its highest bit set.
    for (ValueRef* side : {&predicate->left, &predicate->right}) {
      const auto positive =
          math.pool_.Assume({.kind = Assumption::Kind::kInside, .number = (*side)->number, .range = {0, INT64_MAX}});
      *side = Number((*side)->number, 64, Union((*side)->assumptions, {positive}));
    }
  }
  return predicate;
}

PredicateRef Transfer::PredicateOf() {
  const auto joined = [&](Predicate::Kind kind, PredicateRef a, PredicateRef b) {
    auto predicate = std::make_shared<Predicate>();
    predicate->kind = kind;
    predicate->a = std::move(a);
    predicate->b = std::move(b);
    return predicate;
  };
  if (instruction.opcode == Opcode::kSetp) {
    const PredicateRef comparison = Comparison();
    if (operands.size() < 3) return comparison;
    const bool negated = instruction.operands.back().negated;
    const PredicateRef other =
        negated ? joined(Predicate::Kind::kNot, operands[2]->predicate, nullptr) : operands[2]->predicate;
    if (instruction.Has(Mod::kAnd)) return joined(Predicate::Kind::kAnd, comparison, other);
    if (instruction.Has(Mod::kOr)) return joined(Predicate::Kind::kOr, comparison, other);
    return nullptr;
  }
  if (instruction.type() != ptx::ScalarType::kPred || operands.empty()) return nullptr;
  if (instruction.opcode == Opcode::kNot) return joined(Predicate::Kind::kNot, operands[0]->predicate, nullptr);
  if (instruction.opcode == Opcode::kMov) return operands[0]->predicate;
  if (operands.size() != 2) return nullptr;
  if (instruction.opcode == Opcode::kAnd)
    return joined(Predicate::Kind::kAnd, operands[0]->predicate, operands[1]->predicate);
  if (instruction.opcode == Opcode::kOr)
    return joined(Predicate::Kind::kOr, operands[0]->predicate, operands[1]->predicate);
  return nullptr;
}

}  // namespace gridloom::analysis
