#include "rewriter/analysis/print_expression.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "rewriter/analysis/transfer.h"

namespace gridloom::analysis {
namespace {

/// Deeper nesting is left out: nobody reads it.
constexpr unsigned kMaxDepth = 6;

std::string_view InfixOf(ptx::Opcode opcode) {
  switch (opcode) {
    case ptx::Opcode::kAnd: return " & ";
    case ptx::Opcode::kOr: return " | ";
    case ptx::Opcode::kXor: return " ^ ";
    case ptx::Opcode::kShl: return " << ";
    case ptx::Opcode::kShr: return " >> ";
    case ptx::Opcode::kDiv: return " / ";
    case ptx::Opcode::kRem: return " % ";
    case ptx::Opcode::kMul: return "*";
    default: return "";
  }
}

}  // namespace

std::string ShortParamName(const ptx::Function& kernel, std::string_view param) {
  const std::string prefix = std::string(kernel.name) + "_";
  return std::string(param.starts_with(prefix) ? param.substr(prefix.size()) : param);
}

std::string ExpressionPrinter::PrintSum(const Polynomial& number, unsigned depth) const {
  if (number.IsZero()) return "0";
  if (depth > kMaxDepth) return "...";
  // A factor that all terms share stands outside, unless it is all there is.
  std::uint64_t common = 0;
  for (const Term& term : number.terms())
    common = std::gcd(common, static_cast<std::uint64_t>(term.factor < 0 ? -term.factor : term.factor));
  if (number.terms().size() > 1 && common > 1 && common <= INT64_MAX) {
    return "(" + PrintSum(number.Divided(static_cast<std::int64_t>(common)), depth) + ")*" + std::to_string(common);
  }
  // What all threads share comes first, as a person writes it; constants last.
  std::vector<Term> terms = number.terms();
  std::ranges::stable_sort(terms, {}, [&](const Term& term) {
    return term.monomial.degree() == 0 ? 2 : pool_.IsUniform(term.monomial) ? 0 : 1;
  });
  std::string text;
  for (const Term& term : terms) {
    const bool negative = term.factor < 0;
    if (text.empty()) {
      text = negative ? "-" : "";
    } else {
      text += negative ? " - " : " + ";
    }
    text += PrintTerm({term.monomial, negative ? -term.factor : term.factor}, depth);
  }
  return text;
}

std::string ExpressionPrinter::PrintTerm(const Term& term, unsigned depth) const {
  std::string text;
  for (const SymbolId id : term.monomial.symbols) {
    if (id != kNoSymbol) text += (text.empty() ? "" : "*") + PrintSymbol(id, depth + 1);
  }
  if (text.empty()) return std::to_string(static_cast<std::uint64_t>(term.factor));
  return term.factor == 1 ? text : text + "*" + std::to_string(static_cast<std::uint64_t>(term.factor));
}

std::string ExpressionPrinter::Factor(const Polynomial& number, unsigned depth) const {
  const std::string text = PrintSum(number, depth + 1);
  return number.terms().size() > 1 ? "(" + text + ")" : text;
}

std::string ExpressionPrinter::PrintOperation(const Symbol& symbol, unsigned depth) const {
  if (symbol.instruction == nullptr) return "constant";
  std::vector<std::string> operands;
  std::size_t at = 0;
  VisitReads(*symbol.instruction, [&](const ptx::Operand& operand) {
    if (operand.kind == ptx::OperandKind::kInt) {
      operands.push_back(std::to_string(static_cast<std::int64_t>(operand.int_literal.value)));
    } else if (operand.kind == ptx::OperandKind::kRegister && at < symbol.operands.size()) {
      operands.push_back(Factor(symbol.operands[at++]->number, depth));
    } else {
      operands.push_back(operand.text.empty() ? "constant" : std::string(operand.text));
    }
  });
  const std::string_view infix = InfixOf(symbol.instruction->opcode);
  if (!infix.empty() && operands.size() == 2) return "(" + operands[0] + std::string(infix) + operands[1] + ")";
  std::string text = std::string(symbol.instruction->name) + "(";
  for (std::size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ", ") + operands[i];
  return text + ")";
}

std::string ExpressionPrinter::PrintClamp(const Symbol& symbol, unsigned depth) const {
  std::vector<std::string> operands;
  for (const ValueRef& operand : symbol.operands) operands.push_back(Factor(operand->number, depth));
  switch (symbol.op) {
    case RangeOp::kMin: return "min(" + operands[0] + ", " + operands[1] + ")";
    case RangeOp::kMax: return "max(" + operands[0] + ", " + operands[1] + ")";
    case RangeOp::kAbsolute: return "abs(" + operands[0] + ")";
    case RangeOp::kShiftRight: return "(" + operands[0] + " >> " + operands[1] + ")";
    case RangeOp::kAndMask: return "(" + operands[0] + " & " + operands[1] + ")";
    case RangeOp::kOr: return "(" + operands[0] + " | " + operands[1] + ")";
    case RangeOp::kXor: return "(" + operands[0] + " ^ " + operands[1] + ")";
    case RangeOp::kDivide: return "(" + operands[0] + " / " + operands[1] + ")";
    case RangeOp::kRemainder: return "(" + operands[0] + " % " + operands[1] + ")";
    case RangeOp::kAtMost:
    case RangeOp::kAtLeast: return PrintSum(symbol.operands[0]->number, depth);
  }
  return "?";
}

std::string ExpressionPrinter::PrintLoad(const Symbol& symbol, unsigned depth) const {
  const Polynomial& address = symbol.operands[0]->number;
  const auto whole = address.AsSymbol();
  if (whole && pool_[*whole].kind == SymbolKind::kAddress) return std::string(pool_[*whole].variable->name);
  return "*" + Factor(address, depth);
}

// {a where 0 <= b and 0 <= c, d}: d may be chosen wherever a may.
std::string ExpressionPrinter::PrintChoice(const Symbol& symbol, unsigned depth) const {
  std::string text = "{";
  for (std::size_t i = 0; i < symbol.operands.size(); ++i) {
    text += (i == 0 ? "" : ", ") + PrintSum(symbol.operands[i]->number, depth + 1);
    if (symbol.chosen_where.empty()) continue;
    const char* joint = " where 0 <= ";
    for (const RangeGuard& guard : symbol.chosen_where[i])
      text += std::exchange(joint, " and 0 <= ") + PrintSum(guard.number, depth + 1);
  }
  return text + "}";
}

std::string ExpressionPrinter::PrintSymbol(SymbolId id, unsigned depth) const {
  const Symbol& symbol = pool_[id];
  if (depth > kMaxDepth) return "...";
  switch (symbol.kind) {
    case SymbolKind::kSpecial:
    case SymbolKind::kThread:
    case SymbolKind::kLane: {
      std::string text(Info(symbol.special).text.substr(1));
      if (symbol.component != 0) (text += '.') += symbol.component;
      return text;
    }
    case SymbolKind::kParam: {
      const std::string name = ShortParamName(analysis_.kernel(), symbol.variable->name);
      return symbol.offset == 0 ? name : name + "." + std::to_string(symbol.offset);
    }
    case SymbolKind::kAddress: return std::string(symbol.variable->name);
    case SymbolKind::kElsewhere:
      return symbol.variable != nullptr ? std::string(symbol.variable->name)
                                        : std::string(TextOf(symbol.space)) + "_address";
    case SymbolKind::kOperation: return PrintOperation(symbol, depth);
    case SymbolKind::kExtension: return Factor(symbol.operands[0]->number, depth);
    case SymbolKind::kLoad: return PrintLoad(symbol, depth);
    case SymbolKind::kCounter: return "i" + std::to_string(symbol.loop);
    case SymbolKind::kChoice: return PrintChoice(symbol, depth);
    case SymbolKind::kClamp: return PrintClamp(symbol, depth);
    case SymbolKind::kPhi:
    case SymbolKind::kAny: return "?";
  }
  return "?";
}

std::string ExpressionPrinter::PrintAddress(const RangeAccess& access, SymbolId pointer) const {
  if (!access.irregular.empty()) return (pointer == kNoSymbol ? "?" : PrintSymbol(pointer)) + "[irregular]";
  const Polynomial offset = access.address.Plus(Polynomial::Of(pointer), -1);
  return PrintSymbol(pointer) + "[" + Print(offset) + "]";
}

std::string ExpressionPrinter::PrintLoop(LoopInstanceId id) const {
  const LoopInstance& loop = analysis_.loops()[id];
  if (!loop.bound) return "";
  const auto step = loop.bound->step.AsConstant();
  std::string count = Factor(loop.bound->distance, 0);
  if (step != 1) count += "/" + Factor(loop.bound->step, 0);
  return "i" + std::to_string(id) + " in 0.." + count + " + 1";
}

std::string ExpressionPrinter::PrintAssumption(AssumptionId id) const {
  const Assumption& assumption = pool_.assumption(id);
  const std::string number = Print(assumption.number);
  if (assumption.kind == Assumption::Kind::kDivisible)
    return number + " is a multiple of " + std::to_string(assumption.range.low);
  const auto bound = [](std::int64_t value) {
    return value == INT64_MAX ? std::string("inf") : value == INT64_MIN ? "-inf" : std::to_string(value);
  };
  return number + " in " + bound(assumption.range.low) + ".." + bound(assumption.range.high);
}

}  // namespace gridloom::analysis
