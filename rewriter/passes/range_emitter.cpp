#include "rewriter/passes/range_emitter.h"

#include <algorithm>
#include <bit>

#include "rewriter/analysis/transfer.h"
#include "rewriter/ptx/printer.h"

namespace gridloom::passes {

using analysis::Assumption;
using analysis::AssumptionId;
using analysis::Interval;
using analysis::kNoSymbol;
using analysis::Monomial;
using analysis::Polynomial;
using analysis::RangeOp;
using analysis::SymbolId;
using analysis::SymbolKind;
using analysis::Value;

namespace {

std::string Prefix(unsigned bits) {
  switch (bits) {
    case 1: return "%gl_p";
    case 16: return "%gl_h";
    case 32: return "%gl_w";
    default: return "%gl_d";
  }
}

bool IsPowerOfTwo(const CodeNumber& number) {
  return number.constant && *number.constant > 0 && std::has_single_bit(static_cast<std::uint64_t>(*number.constant));
}

/// One or more consecutive bits.
bool IsRunOfOnes(std::int64_t mask) {
  const auto bits = static_cast<std::uint64_t>(mask);
  return mask > 0 && std::has_single_bit(bits + (bits & (~bits + 1)));
}

}  // namespace

RangeEmitter::RangeEmitter(const analysis::AddressAnalysis& analysis, std::array<std::string, 3> block_size)
    : analysis_(analysis), pool_(analysis.symbols()), block_size_(std::move(block_size)) {}

std::string RangeEmitter::New(unsigned bits) {
  if (bits != 1 && bits != 16 && bits != 32) bits = 64;
  return Prefix(bits) + std::to_string(registers_[bits]++);
}

std::string RangeEmitter::Text() const {
  std::string text;
  for (const auto& [bits, count] : registers_) {
    text += ".reg ." + (bits == 1 ? std::string("pred") : "b" + std::to_string(bits)) + " " + Prefix(bits) + "<" +
            std::to_string(count) + ">;\n";
  }
  return text + code_;
}

// ---------------------------------------------------------------------------------------------------------------------
// Numbers
// ---------------------------------------------------------------------------------------------------------------------

std::string RangeEmitter::InRegister(const CodeNumber& number) {
  if (!number.constant) return number.reg;
  const std::string text = "mov.b64 " + number.text();
  const auto [it, added] = done_.try_emplace(text);
  if (added) {
    it->second.reg = New(64);
    Line("mov.b64 " + it->second.reg + ", " + number.text());
  }
  return it->second.reg;
}

CodeNumber RangeEmitter::Instruction(const std::string& opcode, const CodeNumber& a, const CodeNumber& b) {
  const std::string left = InRegister(a), operands = left + ", " + b.text();
  const auto [it, added] = done_.try_emplace(opcode + " " + operands);
  if (added) {
    it->second.reg = New(64);
    Line(opcode + " " + it->second.reg + ", " + operands);
  }
  return it->second;
}

CodeNumber RangeEmitter::Add(const CodeNumber& a, const CodeNumber& b) {
  if (a.constant && b.constant)
    return {
        static_cast<std::int64_t>(static_cast<std::uint64_t>(*a.constant) + static_cast<std::uint64_t>(*b.constant))};
  if (a.Is(0)) return b;
  if (b.Is(0)) return a;
  return a.constant ? Instruction("add.s64", b, a) : Instruction("add.s64", a, b);
}

CodeNumber RangeEmitter::Subtract(const CodeNumber& a, const CodeNumber& b) {
  if (b.constant) return Add(a, {static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(*b.constant))});
  return Instruction("sub.s64", a, b);
}

CodeNumber RangeEmitter::Multiply(const CodeNumber& a, const CodeNumber& b) {
  if (a.constant && b.constant)
    return {
        static_cast<std::int64_t>(static_cast<std::uint64_t>(*a.constant) * static_cast<std::uint64_t>(*b.constant))};
  if (a.constant) return Multiply(b, a);
  if (b.Is(0)) return {0};
  if (b.Is(1)) return a;
  if (IsPowerOfTwo(b)) return Instruction("shl.b64", a, {std::countr_zero(static_cast<std::uint64_t>(*b.constant))});
  return Instruction("mul.lo.s64", a, b);
}

CodeNumber RangeEmitter::Least(const CodeNumber& a, const CodeNumber& b) {
  if (a.constant && b.constant) return {std::min(*a.constant, *b.constant)};
  if (a.text() == b.text()) return a;
  return a.constant ? Instruction("min.s64", b, a) : Instruction("min.s64", a, b);
}

CodeNumber RangeEmitter::Most(const CodeNumber& a, const CodeNumber& b) {
  if (a.constant && b.constant) return {std::max(*a.constant, *b.constant)};
  if (a.text() == b.text()) return a;
  return a.constant ? Instruction("max.s64", b, a) : Instruction("max.s64", a, b);
}

CodeNumber RangeEmitter::Divide(const CodeNumber& a, const CodeNumber& b, bool positive) {
  if (b.Is(1)) return a;
  if (a.constant && b.constant && *b.constant != 0) return {*a.constant / *b.constant};
  if (positive && IsPowerOfTwo(b))
    return Instruction("shr.u64", a, {std::countr_zero(static_cast<std::uint64_t>(*b.constant))});
  return Instruction("div.s64", a, b.constant ? b : Most(b, {1}));
}

CodeNumber RangeEmitter::Select(const std::string& predicate, const CodeNumber& a, const CodeNumber& b) {
  if (predicate.empty()) return a;
  const std::string text = a.text() + ", " + b.text() + ", " + predicate;
  const auto [it, added] = done_.try_emplace("selp.b64 " + text);
  if (added) {
    it->second.reg = New(64);
    Line("selp.b64 " + it->second.reg + ", " + text);
  }
  return it->second;
}

std::string RangeEmitter::Compare(std::string_view comparison, const CodeNumber& a, const CodeNumber& b,
                                  const std::string& and_also) {
  const std::string operands = InRegister(a) + ", " + b.text() + (and_also.empty() ? "" : ", " + and_also);
  const std::string opcode = "setp." + std::string(comparison) + (and_also.empty() ? ".s64 " : ".and.s64 ");
  const auto [it, added] = predicates_.try_emplace(opcode + operands);
  if (added) {
    it->second = New(1);
    Line(opcode + it->second + ", " + operands);
  }
  return it->second;
}

std::string RangeEmitter::Joined(std::string_view opcode, const std::string& a, const std::string& b) {
  const std::string operands = a + ", " + b;
  const auto [it, added] = predicates_.try_emplace(std::string(opcode) + " " + operands);
  if (added) {
    it->second = New(1);
    Line(std::string(opcode) + " " + it->second + ", " + operands);
  }
  return it->second;
}

std::string RangeEmitter::And(const std::string& a, const std::string& b) {
  if (a.empty() || a == b) return b;
  return b.empty() ? a : Joined("and.pred", a, b);
}

std::string RangeEmitter::Or(const std::string& a, const std::string& b) {
  if (a.empty() || a == b) return b;
  return b.empty() ? a : Joined("or.pred", a, b);
}

// ---------------------------------------------------------------------------------------------------------------------
// Uniform symbols
// ---------------------------------------------------------------------------------------------------------------------

std::string RangeEmitter::BlockSize(char component) {
  const std::string& where = block_size_[component == 'x' ? 0 : component == 'y' ? 1 : 2];
  const auto [it, added] = predicates_.try_emplace("ntid." + std::string(1, component));
  if (added) {
    it->second = New(32);
    Line((where.starts_with("[") ? "ld.param.u32 " : "mov.u32 ") + it->second + ", " + where);
  }
  return it->second;
}

std::string RangeEmitter::Native(SymbolId id) {
  if (const auto it = native_.find(id); it != native_.end()) return it->second;
  std::string reg = MakeNative(pool_[id]);
  return native_.emplace(id, std::move(reg)).first->second;
}

std::string RangeEmitter::MakeNative(const analysis::Symbol& symbol) {
  switch (symbol.kind) {
    case SymbolKind::kSpecial: {
      if (symbol.special == ptx::Special::kNtid) return BlockSize(symbol.component);
      std::string reg = New(32);
      Line("mov.u32 " + reg + ", " + std::string(Info(symbol.special).text) + "." + symbol.component);
      return reg;
    }
    case SymbolKind::kParam: {
      std::string reg = New(symbol.bits);
      const std::string offset = symbol.offset == 0 ? "" : "+" + std::to_string(symbol.offset);
      Line("ld.param." + std::string(Info(symbol.type).text) + " " + reg + ", [" + std::string(symbol.variable->name) +
           offset + "]");
      return reg;
    }
    case SymbolKind::kAddress: {
      std::string reg = New(64);
      Line("mov.u64 " + reg + ", " + std::string(symbol.variable->name));
      if (symbol.space == ptx::StateSpace::kGlobal) Line("cvta.global.u64 " + reg + ", " + reg);
      return reg;
    }
    case SymbolKind::kLoad: {
      const std::string address = InRegister(Uniform(symbol.operands[0]->number));
      std::string reg = New(symbol.bits);
      const std::string space = symbol.space == ptx::StateSpace::kNone ? "" : "." + std::string(TextOf(symbol.space));
      Line("ld" + space + "." + std::string(Info(symbol.type).text) + " " + reg + ", [" + address + "]");
      return reg;
    }
    case SymbolKind::kExtension: return MakeExtension(symbol);
    default: return MakeOperation(symbol);
  }
}

std::string RangeEmitter::MakeExtension(const analysis::Symbol& symbol) {
  const std::string narrow = NativeOf(*symbol.operands[0]);
  std::string reg = New(64);
  const std::string bits = std::to_string(symbol.from_bits);
  const std::string sign = symbol.is_signed ? "s" : "u";
  Line("cvt." + sign + "64." + sign + bits + " " + reg + ", " + narrow);
  return reg;
}

/// The value as a register of its own width.
std::string RangeEmitter::NativeOf(const Value& value) {
  const auto symbol = value.number.AsSymbol();
  if (symbol && pool_[*symbol].bits == value.bits) return Native(*symbol);
  const CodeNumber wide = Uniform(value.number);
  if (value.bits == 1) return Compare("ne", wide, {0});
  if (value.bits >= 64) return InRegister(wide);
  const std::string opcode = "cvt.u" + std::to_string(value.bits) + ".u64 ", operand = InRegister(wide);
  const auto [it, added] = predicates_.try_emplace(opcode + operand);
  if (added) {
    it->second = New(value.bits);
    Line(opcode + it->second + ", " + operand);
  }
  return it->second;
}

// The instruction again, with registers of ours.
std::string RangeEmitter::MakeOperation(const analysis::Symbol& symbol) {
  const ptx::Instruction& instruction = *symbol.instruction;
  std::size_t next = 0;
  const auto print = [&](const auto& self, const ptx::Operand& operand) -> std::string {
    if (operand.kind == ptx::OperandKind::kRegister) {
      return (operand.negated ? "!" : operand.minus ? "-" : "") + NativeOf(*symbol.operands[next++]);
    }
    if (operand.elements.empty()) return ptx::PrintOperand(operand);
    std::string text = "{";
    for (const ptx::Operand& element : operand.elements) text += (text.size() == 1 ? "" : ", ") + self(self, element);
    return text + "}";
  };
  std::vector<std::string> operands;
  const ptx::Form* form = FormOf(instruction);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    if (ptx::detail::UseOf(instruction, form, i).writes) continue;
    operands.push_back(print(print, instruction.operands[i]));
  }
  std::string reg = New(symbol.bits);
  std::string text = instruction.FullName() + " " + reg;
  for (const std::string& operand : operands) text += ", " + operand;
  Line(text);
  return reg;
}

CodeNumber RangeEmitter::Symbol(SymbolId id) {
  if (const auto it = wide_.find(id); it != wide_.end()) return it->second;
  const analysis::Symbol& symbol = pool_[id];
  CodeNumber number;
  const std::string native = Native(id);
  if (symbol.bits >= 64) {
    number.reg = native;
  } else {
    number.reg = New(64);
    const bool is_signed = symbol.bounds.low < 0;
    const std::string sign = is_signed ? "s" : "u";
    Line("cvt." + sign + "64." + sign + std::to_string(symbol.bits) + " " + number.reg + ", " + native);
  }
  return wide_.emplace(id, number).first->second;
}

CodeNumber RangeEmitter::Uniform(const Polynomial& number) {
  CodeNumber sum{number.constant()};
  CodeNumber rest{0};
  for (const analysis::Term& term : number.terms()) {
    if (term.monomial.degree() == 0) continue;
    CodeNumber product{1};
    for (const SymbolId id : term.monomial.symbols) {
      if (id != kNoSymbol) product = Multiply(product, Symbol(id));
    }
    rest = term.factor == -1 && !rest.Is(0) ? Subtract(rest, product) : Add(rest, Multiply(product, {term.factor}));
  }
  return Add(rest, sum);
}

// ---------------------------------------------------------------------------------------------------------------------
// Ranges
// ---------------------------------------------------------------------------------------------------------------------

std::vector<RangeEmitter::Part> RangeEmitter::Split(const Polynomial& number) const {
  std::vector<Part> parts;
  for (const analysis::Term& term : number.terms()) {
    Monomial ranging;
    unsigned count = 0;
    Polynomial factor = Polynomial::Constant(term.factor);
    for (const SymbolId id : term.monomial.symbols) {
      if (id == kNoSymbol) continue;
      if (pool_[id].uniform) {
        factor = *factor.Times(Polynomial::Of(id));
      } else {
        ranging.symbols[count++] = id;
      }
    }
    const auto it = std::ranges::find(parts, ranging, &Part::ranging);
    if (it == parts.end()) {
      parts.push_back({ranging, factor});
    } else {
      it->factor = it->factor.Plus(factor);
    }
  }
  return parts;
}

CodeRange RangeEmitter::Scale(const CodeRange& range, const Polynomial& factor, const Interval& bounds) {
  const CodeNumber value = Uniform(factor);
  const CodeNumber low = Multiply(range.low, value), high = Multiply(range.high, value);
  if (bounds.low >= 0) return {low, high};
  if (bounds.high <= 0) return {high, low};
  return {Least(low, high), Most(low, high)};
}

CodeRange RangeEmitter::RangeOf(const Monomial& ranging) {
  CodeRange product{{1}, {1}};
  Interval bounds{1, 1};
  for (const SymbolId id : ranging.symbols) {
    if (id == kNoSymbol) continue;
    const CodeRange range = RangeOf(id);
    const Interval& more = pool_[id].bounds;
    if (bounds.low >= 0 && more.low >= 0) {
      product = {Multiply(product.low, range.low), Multiply(product.high, range.high)};
    } else {
      const CodeNumber corners[] = {Multiply(product.low, range.low), Multiply(product.low, range.high),
                                    Multiply(product.high, range.low), Multiply(product.high, range.high)};
      const CodeNumber least = Least(corners[2], corners[3]), low = Least(Least(corners[0], corners[1]), least);
      const CodeNumber most = Most(corners[2], corners[3]), high = Most(Most(corners[0], corners[1]), most);
      product = {low, high};
    }
    bounds = Product(bounds, more);
  }
  return product;
}

CodeRange RangeEmitter::RangeOf(const Polynomial& number) {
  CodeRange sum{{0}, {0}};
  CodeNumber uniform{0};
  for (const Part& part : Split(number)) {
    if (part.ranging.degree() == 0) {
      uniform = Uniform(part.factor);
      continue;
    }
    const CodeRange scaled = Scale(RangeOf(part.ranging), part.factor, pool_.BoundsOf(part.factor));
    sum = {Add(sum.low, scaled.low), Add(sum.high, scaled.high)};
  }
  return {Add(sum.low, uniform), Add(sum.high, uniform)};
}

CodeRange RangeEmitter::RangeOf(SymbolId id) {
  if (const auto it = ranges_.find(id); it != ranges_.end()) return it->second;
  const analysis::Symbol& symbol = pool_[id];
  CodeRange range{{symbol.bounds.low}, {symbol.bounds.high}};
  switch (symbol.kind) {
    case SymbolKind::kThread:
      if (analysis_.kernel().FindDirective("reqntid") == nullptr) {
        const std::string text = "tid." + std::string(1, symbol.component);
        const auto [it, added] = done_.try_emplace(text);
        if (added) {
          it->second.reg = New(64);
          Line("cvt.u64.u32 " + it->second.reg + ", " + BlockSize(symbol.component));
        }
        const CodeNumber size = it->second;
        range.high = Add(size, {-1});
      }
      break;
    case SymbolKind::kCounter: range = CounterRange(symbol); break;
    case SymbolKind::kChoice: range = ChoiceRange(symbol); break;
    case SymbolKind::kClamp: range = ClampRange(symbol); break;
    default: break;
  }
  return ranges_.emplace(id, range).first->second;
}

// The hull of the alternatives that some thread of the CTA chooses.
CodeRange RangeEmitter::ChoiceRange(const analysis::Symbol& symbol) {
  const auto unchosen = [&](std::size_t i) {
    return symbol.chosen_where.empty() ? std::string() : Unreached(symbol.chosen_where[i], {});
  };
  CodeRange range = RangeOf(symbol.operands[0]->number);
  std::string none = unchosen(0);  // of the alternatives so far is chosen; empty: that is not known
  for (std::size_t i = 1; i < symbol.operands.size(); ++i) {
    const CodeRange other = RangeOf(symbol.operands[i]->number);
    const std::string not_other = unchosen(i);
    CodeRange both{Least(range.low, other.low), Most(range.high, other.high)};
    if (!not_other.empty()) both = {Select(not_other, range.low, both.low), Select(not_other, range.high, both.high)};
    if (!none.empty()) both = {Select(none, other.low, both.low), Select(none, other.high, both.high)};
    none = none.empty() || not_other.empty() ? "" : And(none, not_other);
    range = both;
  }
  return range;
}

// The condition holds while step * counter <= distance: floor(distance / step) + 1 completed iterations at most.
CodeRange RangeEmitter::CounterRange(const analysis::Symbol& symbol) {
  const analysis::LoopInstance& loop = analysis_.loops()[symbol.loop];
  const CodeNumber distance = RangeOf(loop.bound->distance).high, step = Uniform(loop.bound->step);
  const CodeNumber iterations = Divide(Most(Add(distance, step), {0}), step, true);
  return {{0}, symbol.tested ? Most(Add(iterations, {-1}), {0}) : iterations};
}

CodeRange RangeEmitter::RemainderRange(const CodeRange& a, const CodeNumber& divisor, bool positive) {
  const CodeNumber most = Add(divisor, {-1});
  if (!positive) {
    return {Least(Most(a.low, Subtract({0}, most)), {0}), Most(Least(a.high, most), {0})};
  }
  // All in one row: the remainders are consecutive.
  const CodeNumber row = Divide(a.low, divisor, true), last_row = Divide(a.high, divisor, true);
  const CodeNumber start = Multiply(row, divisor);
  const std::string same = Compare("eq", row, last_row);
  return {Select(same, Subtract(a.low, start), {0}), Select(same, Subtract(a.high, start), most)};
}

// Numbers that agree in the bits above the mask stay in their order; what multiplications of 24 bits cut off is mostly
// nothing.
CodeRange RangeEmitter::MaskedRange(const CodeRange& a, std::int64_t mask) {
  const CodeNumber bits{std::bit_width(static_cast<std::uint64_t>(mask))};
  const CodeNumber high = Instruction("shr.s64", a.high, bits), low = Instruction("shr.s64", a.low, bits);
  const std::string same = Compare("eq", low, high);
  return {Select(same, Instruction("and.b64", a.low, {mask}), {0}),
          Select(same, Instruction("and.b64", a.high, {mask}), {mask})};
}

// The same with a mask that is known at run time: `i & (stride - 1)`, with a power of two as is found there.
CodeRange RangeEmitter::MaskedRange(const CodeRange& a, const CodeNumber& mask, const CodeNumber& most) {
  const CodeNumber above = Instruction("xor.b64", mask, {-1}), next = Add(mask, {1});
  std::string same = Compare("ge", mask, {0});
  same = Compare("eq", Instruction("and.b64", mask, next), {0}, same);
  same = Compare("eq", Instruction("and.b64", Instruction("xor.b64", a.low, a.high), above), {0}, same);
  return {Select(same, Instruction("and.b64", a.low, mask), {0}),
          Select(same, Instruction("and.b64", a.high, mask), most)};
}

// Division truncates: where the rest is negative, the bound is at most one step too wide.
CodeRange RangeEmitter::GuardedRange(const analysis::Symbol& symbol) {
  CodeRange range = RangeOf(symbol.operands[0]->number);
  const CodeNumber rest = RangeOf(symbol.operands[1]->number).high, divisor = Uniform(symbol.operands[2]->number);
  const CodeNumber most =
      IsPowerOfTwo(divisor) && !divisor.Is(1)
          ? Instruction("shr.s64", rest, {std::countr_zero(static_cast<std::uint64_t>(*divisor.constant))})
          : Divide(rest, divisor, false);
  const std::string holds = Holds(symbol.operands[1]->assumptions);
  if (symbol.op == RangeOp::kAtMost) range.high = Least(range.high, Select(holds, most, range.high));
  else range.low = Most(range.low, Select(holds, Subtract({0}, most), range.low));
  return range;
}

CodeRange RangeEmitter::ClampRange(const analysis::Symbol& symbol) {
  if (symbol.op == RangeOp::kAtMost || symbol.op == RangeOp::kAtLeast) return GuardedRange(symbol);
  const CodeRange a = RangeOf(symbol.operands[0]->number);
  const Interval bounds = pool_.BoundsOf(symbol.operands[0]->number);
  const CodeRange b = symbol.operands.size() > 1 ? RangeOf(symbol.operands[1]->number) : a;
  switch (symbol.op) {
    case RangeOp::kMin: return {Least(a.low, b.low), Least(a.high, b.high)};
    case RangeOp::kMax: return {Most(a.low, b.low), Most(a.high, b.high)};
    case RangeOp::kShiftRight: return {Instruction("shr.s64", a.low, b.low), Instruction("shr.s64", a.high, b.low)};
    case RangeOp::kAndMask:
      if (b.low.constant && *b.low.constant < 0)
        return {Instruction("and.b64", a.low, b.low), Instruction("and.b64", a.high, b.low)};
      if (b.low.constant && IsRunOfOnes(*b.low.constant)) return MaskedRange(a, *b.low.constant);
      if (!b.low.constant && b.low.text() == b.high.text())
        return MaskedRange(a, b.low, bounds.low >= 0 ? Least(a.high, b.high) : b.high);
      return {{0}, bounds.low >= 0 ? Least(a.high, b.high) : b.high};
    case RangeOp::kOr: return {Most(a.low, b.low), Least(Add(a.high, b.high), {symbol.bounds.high})};
    case RangeOp::kXor: return {{0}, Least(Add(a.high, b.high), {symbol.bounds.high})};
    case RangeOp::kDivide: return {Divide(a.low, b.low, bounds.low >= 0), Divide(a.high, b.low, bounds.low >= 0)};
    case RangeOp::kRemainder: return RemainderRange(a, b.low, bounds.low >= 0);
    case RangeOp::kAbsolute: return {{0}, Most(a.high, Subtract({0}, a.low))};
    case RangeOp::kAtMost:
    case RangeOp::kAtLeast: break;
  }
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------
// Assumptions
// ---------------------------------------------------------------------------------------------------------------------

std::string RangeEmitter::Holds(AssumptionId id, std::string also) {
  const std::vector<analysis::UniformCondition>& conditions = pool_.assumption(id).conditions;
  if (conditions.empty()) return HoldsAnyway(id, std::move(also));
  std::string holds = HoldsAnyway(id, "");
  if (!holds.empty()) holds = Or(holds, Unreached({}, conditions));
  return And(also, holds);
}

std::string RangeEmitter::HoldsAnyway(AssumptionId id, std::string also) {
  const Assumption& assumption = pool_.assumption(id);
  if (assumption.kind == Assumption::Kind::kDivisible) {
    const CodeNumber divisor{assumption.range.low}, value = Uniform(assumption.number);
    const CodeNumber rest = IsPowerOfTwo(divisor) ? Instruction("and.b64", value, {assumption.range.low - 1})
                                                  : Instruction("rem.s64", value, divisor);
    return Compare("eq", rest, {0}, also);
  }
  const CodeRange range = RangeOf(assumption.number);
  const Interval bounds = pool_.BoundsOf(assumption.number);
  if (bounds.low < assumption.range.low) also = Compare("ge", range.low, {assumption.range.low}, also);
  if (bounds.high > assumption.range.high) also = Compare("le", range.high, {assumption.range.high}, also);
  return also;
}

std::string RangeEmitter::Unmet(const analysis::UniformCondition& condition) {
  const std::string predicate = Native(condition.predicate);
  if (!condition.truth) return predicate;
  const auto [it, added] = predicates_.try_emplace("not.pred " + predicate);
  if (added) {
    it->second = New(1);
    Line("not.pred " + it->second + ", " + predicate);
  }
  return it->second;
}

std::string RangeEmitter::Holds(const std::vector<AssumptionId>& assumptions) {
  std::string holds;
  for (const AssumptionId id : assumptions) holds = Holds(id, holds);
  return holds;
}

std::string RangeEmitter::Unreached(const std::vector<analysis::RangeGuard>& guards,
                                    const std::vector<analysis::UniformCondition>& conditions) {
  std::string unreached;
  for (const analysis::UniformCondition& condition : conditions) unreached = Or(unreached, Unmet(condition));
  for (const analysis::RangeGuard& guard : guards) {
    const std::string holds = Holds(guard.assumptions);
    unreached = Or(unreached, Compare("lt", RangeOf(guard.number).high, {0}, holds));
  }
  return unreached;
}

}  // namespace gridloom::passes
