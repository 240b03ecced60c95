// Fusion: two instructions of PTX that a GPU does as one: multiply and add, shift and add, three-input sums and logic,
// conditions of conditions, and the widening of an index where it is multiplied. The first one's result has no other
// reader.
#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "sim/lowering/facts.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

bool IsPlainInteger(const Operation& operation, unsigned bits) {
  return operation.bits == bits && !operation.is_float && !operation.saturates;
}

/// The pair as one instruction.
struct Fused {
  OpClass op;
  Base base;  ///< kOther: nothing joins it any more
  bool wide = false;
};

/// (a * b) + c: IMAD and its wide form, FFMA, DFMA. nvcc lets ptxas join products and sums of floating point unless
/// they say how they round (-fmad=true).
std::optional<Fused> MultiplyAdd(const Node& first, const Node& second, const Target& target) {
  const Operation &product = first.operation, &sum = second.operation;
  if (product.base != Base::kMul || sum.base != Base::kAdd) return std::nullopt;
  if (product.is_float != sum.is_float || product.saturates || sum.saturates) return std::nullopt;
  if (product.is_float) {
    const bool joins = product.bits == sum.bits && !product.rounded && !sum.rounded;
    return joins ? std::optional(Fused{second.shape.op, Base::kFma}) : std::nullopt;
  }
  // Only GPUs from Volta on add 64 bits to a wide product in one instruction.
  if (product.wide && product.bits == 32 && sum.bits == 64 && target.is_volta_or_later())
    return Fused{OpClass::kIntMul, Base::kMad, true};
  if (product.low && product.bits == 32 && sum.bits == 32) return Fused{OpClass::kIntMul, Base::kMad};
  return std::nullopt;
}

bool ShiftsByConstant(const Node& node, Base base, unsigned bits) {
  return node.operation.base == base && IsPlainInteger(node.operation, bits) && node.sources.size() == 2 &&
         node.sources[1].kind == Term::Kind::kNumber;
}

/// (a << constant) + b: LEA, ISCADD before Maxwell. (a >> constant) + b: LEA.HI, from Volta on (Mesa's NAK, OpLea).
std::optional<Fused> ShiftAdd(const Node& first, const Node& second, const Target& target) {
  const bool down = target.is_volta_or_later() && !first.operation.is_signed && ShiftsByConstant(first, Base::kShr, 32);
  const bool shifts = down || ShiftsByConstant(first, Base::kShl, 32);
  if (!shifts || second.operation.base != Base::kAdd || !IsPlainInteger(second.operation, 32)) return std::nullopt;
  return Fused{OpClass::kInt, Base::kOther};
}

/// The same of 64 bits, with an index of 32 bits that is widened, too: LEA and LEA.HI.X, from Volta on.
std::optional<Fused> AddressSum(const Node& first, const Node& second, const Target& target) {
  const Operation& operation = first.operation;
  const bool widens = operation.base == Base::kConvert && operation.bits == 64 && operation.from == 32 &&
                      !operation.is_float && !operation.from_float && !operation.saturates;
  if (!target.is_volta_or_later() || (!widens && !ShiftsByConstant(first, Base::kShl, 64))) return std::nullopt;
  if (second.operation.base != Base::kAdd || !IsPlainInteger(second.operation, 64) || !second.parts.empty())
    return std::nullopt;
  return Fused{OpClass::kInt, Base::kAdd};
}

/// Operands may be negated, and those of floating point without their sign.
std::optional<Fused> Negated(const Node& first, const Node& second, const Target&) {
  const Operation &negates = first.operation, &uses = second.operation;
  if (negates.base != Base::kNegate || negates.bits != uses.bits || negates.is_float != uses.is_float)
    return std::nullopt;
  const bool sums = uses.base == Base::kAdd || uses.base == Base::kSub;
  const bool computes = sums || uses.base == Base::kMul || uses.base == Base::kFma || uses.base == Base::kCompare;
  const bool takes = uses.is_float ? computes && negates.bits >= 32 : sums && IsPlainInteger(uses, 32);
  return takes ? std::optional(Fused{second.shape.op, uses.base}) : std::nullopt;
}

/// Whether bits of a word are zero: LOP3 writes a predicate, too (from Maxwell on).
std::optional<Fused> TestedBits(const Node& first, const Node& second, const Target& target) {
  constexpr std::uint32_t kMaxwell = 50;
  const bool tests = second.operation.base == Base::kCompare && IsPlainInteger(second.operation, 32) &&
                     std::ranges::any_of(second.sources, [](const Term& term) {
                       return term.kind == Term::Kind::kNumber && term.value == 0;
                     });
  if (target.sm() < kMaxwell || !tests || first.operation.base != Base::kLogic || !IsPlainInteger(first.operation, 32))
    return std::nullopt;
  return Fused{OpClass::kInt, Base::kOther};
}

/// a + b + c: IADD3, from Maxwell on.
std::optional<Fused> ThreeSums(const Node& first, const Node& second, const Target& target) {
  const auto sums = [](const Node& node) {
    return (node.operation.base == Base::kAdd || node.operation.base == Base::kSub) &&
           IsPlainInteger(node.operation, 32);
  };
  constexpr std::uint32_t kMaxwell = 50;
  if (target.sm() < kMaxwell || !sums(first) || !sums(second)) return std::nullopt;
  return Fused{OpClass::kInt, Base::kOther};
}

/// Any function of three words: LOP3, from Maxwell on.
std::optional<Fused> ThreeLogic(const Node& first, const Node& second, const Target& target) {
  const auto is_logic = [](const Node& node) {
    return node.operation.base == Base::kLogic && IsPlainInteger(node.operation, 32);
  };
  constexpr std::uint32_t kMaxwell = 50;
  if (target.sm() < kMaxwell || !is_logic(first) || !is_logic(second)) return std::nullopt;
  return Fused{OpClass::kInt, Base::kLogic};
}

/// A comparison takes another predicate along.
std::optional<Fused> Conditions(const Node& first, const Node& second, const Target&) {
  const bool joins = second.operation.base == Base::kLogic && second.operation.bits == 1 &&
                     first.operation.base == Base::kCompare && first.operation.bits <= 32;
  return joins ? std::optional(Fused{first.shape.op, Base::kOther}) : std::nullopt;
}

/// A word that is made two, and shifted or multiplied: IMAD.WIDE, from Volta on.
std::optional<Fused> WidenedIndex(const Node& first, const Node& second, const Target& target) {
  const Operation &widens = first.operation, &scales = second.operation;
  if (!target.is_volta_or_later() || widens.base != Base::kConvert || widens.bits != 64 || widens.from != 32 ||
      widens.is_float || widens.from_float)
    return std::nullopt;
  const bool by_constant = second.sources.size() == 2 && second.sources[1].kind == Term::Kind::kNumber;
  const bool scaled = scales.base == Base::kShl || (scales.base == Base::kMul && scales.low);
  if (!by_constant || !scaled || !IsPlainInteger(scales, 64)) return std::nullopt;
  return Fused{OpClass::kIntMul, Base::kMul, true};
}

using Rule = std::optional<Fused> (*)(const Node& first, const Node& second, const Target& target);
constexpr Rule kRules[] = {WidenedIndex, MultiplyAdd, ShiftAdd,   AddressSum, ThreeSums,
                           ThreeLogic,   Conditions,  TestedBits, Negated};

std::size_t InputsOf(const std::vector<Term>& sources) {
  std::set<std::pair<Term::Kind, std::uint64_t>> inputs;
  for (const Term& term : sources) {
    if (term.kind != Term::Kind::kNumber) inputs.emplace(term.kind, term.value);
  }
  return inputs.size();
}

/// Makes `second` do what `first` did, too.
bool Join(const Node& first, Node& second, const Target& target) {
  constexpr std::size_t kMostInputs = 3;
  for (const Rule rule : kRules) {
    const std::optional<Fused> fused = rule(first, second, target);
    if (!fused.has_value()) continue;
    std::vector<Term> sources;
    for (const Term& term : second.sources) {
      if (term == first.results[0]) sources.insert(sources.end(), first.sources.begin(), first.sources.end());
      else sources.push_back(term);
    }
    if (InputsOf(sources) > kMostInputs) return false;
    std::vector<Node> parts = first.parts.empty() ? std::vector{first} : first.parts;
    if (second.parts.empty()) parts.push_back(second);
    else parts.insert(parts.end(), second.parts.begin(), second.parts.end());
    second.parts = std::move(parts);
    second.sources = std::move(sources);
    second.shape.op = fused->op;
    second.text = 0;
    const unsigned bits = second.operation.bits;
    second.operation.base = fused->base;
    second.operation.wide = fused->wide;
    second.operation.low = !fused->wide;
    if (fused->base == Base::kMul && fused->wide) second.operation.bits = static_cast<std::uint8_t>(bits / 2);
    return true;
  }
  return false;
}

/// Whether the sum of a register and a constant may be made again in each sum that it goes into.
bool AddsConstant(const Node& node) {
  return node.operation.base == Base::kAdd && IsPlainInteger(node.operation, 32) && node.sources.size() == 2 &&
         node.sources[1].kind == Term::Kind::kNumber;
}

/// A wide product costs as much beside a sum of 64 bits as without it, so that it may be made for each of them.
bool CanBeFirst(const Node& node, const Node& second, const Values& values) {
  if (!node.operation.pure || node.ordered || node.partial() || node.results.size() != 1) return false;
  if (!values.IsFixed(node.results[0])) return false;
  const bool repeats = second.operation.base == Base::kAdd &&
                       ((node.operation.base == Base::kMul && node.operation.wide) || AddsConstant(node));
  return repeats || values.reads(static_cast<Register>(node.results[0].value)) == 1;
}

bool CanBeSecond(const Node& node) {
  return node.operation.pure && !node.ordered && !node.partial() && node.results.size() == 1;
}

/// Whether a node between two places writes what the one at `from` reads.
bool IsChanged(const std::vector<Node>& nodes, std::size_t from, std::size_t to) {
  for (std::size_t i = from + 1; i < to; ++i) {
    for (const Term& result : nodes[i].results) {
      if (std::ranges::find(nodes[from].sources, result) != nodes[from].sources.end()) return true;
    }
  }
  return false;
}

void FuseBlock(std::vector<Node>& nodes, const Values& values, const Target& target) {
  std::unordered_map<std::uint64_t, std::size_t> writer;  // of a register, before the node
  std::vector<bool> gone(nodes.size());
  std::vector<std::uint32_t> joined(nodes.size());  // readers that do what it does
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (CanBeSecond(nodes[i])) {
      for (const Term& source : std::vector<Term>(nodes[i].sources)) {
        if (source.kind != Term::Kind::kRegister || !writer.contains(source.value)) continue;
        const std::size_t first = writer[source.value];
        if (!CanBeFirst(nodes[first], nodes[i], values) || IsChanged(nodes, first, i)) continue;
        if (!Join(nodes[first], nodes[i], target)) continue;
        gone[first] = ++joined[first] == values.reads(static_cast<Register>(source.value));
        break;
      }
    }
    VisitRegisters(nodes[i].results, [&](Register reg) { writer[reg] = i; });
  }
  std::size_t index = 0;
  std::erase_if(nodes, [&](const Node&) { return gone[index++]; });
}

}  // namespace

void Fuse(Kernel& kernel, const Target& target) {
  const Values values(kernel);
  for (Block& block : kernel.blocks) {
    if (block.nodes.size() > 1) FuseBlock(block.nodes, values, target);
  }
}

}  // namespace gridloom::lowering
