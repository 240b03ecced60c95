#include "sim/lowering/operation.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace gridloom::lowering {
namespace {

struct Named {
  std::string_view name;
  Base base;
  bool pure;
};

constexpr Named kNamed[] = {
    {"mov", Base::kMove, true},     {"cvta", Base::kConvertAddress, true},
    {"add", Base::kAdd, true},      {"sub", Base::kSub, true},
    {"mul", Base::kMul, true},      {"mad", Base::kMad, true},
    {"fma", Base::kFma, true},      {"shl", Base::kShl, true},
    {"shr", Base::kShr, true},      {"and", Base::kLogic, true},
    {"or", Base::kLogic, true},     {"xor", Base::kLogic, true},
    {"not", Base::kLogic, true},    {"lop3", Base::kLogic, true},
    {"setp", Base::kCompare, true}, {"set", Base::kCompare, true},
    {"selp", Base::kSelect, true},  {"slct", Base::kSelect, true},
    {"cvt", Base::kConvert, true},  {"ld", Base::kLoad, false},
    {"ldu", Base::kLoad, false},    {"st", Base::kStore, false},
    {"atom", Base::kAtomic, false}, {"red", Base::kReduce, false},
    {"neg", Base::kNegate, true},   {"abs", Base::kNegate, true},
    {"bra", Base::kBranch, false},
};

/// Others that compute their results from their sources alone.
constexpr std::string_view kPure[] = {
    "min",  "max",  "div",   "rem",  "rcp",   "sqrt",     "rsqrt", "sin",  "cos",  "lg2",   "ex2",   "tanh",
    "popc", "clz",  "bfind", "brev", "bfe",   "bfi",      "prmt",  "shf",  "sad",  "mul24", "mad24", "dp4a",
    "dp2a", "cnot", "fns",   "bmsk", "szext", "copysign", "testp", "addc", "subc", "madc",
};

constexpr Expansion kExpansions[] = {
#define LOWERING_EXPANSION(opcode, type, modifier, sm, steps) {opcode, type, modifier, sm, steps},
#include "sim/lowering/expansions.def"
#undef LOWERING_EXPANSION
};

/// Calls `visit` for each modifier behind the opcode's name.
template <typename Visit>
void VisitModifiers(std::string_view text, const Visit& visit) {
  for (std::size_t at = text.find('.'); at < text.size();) {
    const std::size_t end = std::min(text.find('.', at + 1), text.size());
    visit(text.substr(at + 1, end - at - 1));
    at = end;
  }
}

std::uint8_t FindExpansion(std::string_view text) {
  const std::string_view name = text.substr(0, text.find('.'));
  for (std::size_t row = 0; row < std::size(kExpansions); ++row) {
    const Expansion& expansion = kExpansions[row];
    if (expansion.opcode != name) continue;
    bool has_type = false, has_modifier = expansion.modifier.empty();
    VisitModifiers(text, [&](std::string_view modifier) {
      has_type |= modifier == expansion.type;
      has_modifier |= modifier == expansion.modifier;
    });
    if (has_type && has_modifier) return static_cast<std::uint8_t>(row + 1);
  }
  return 0;
}

/// "s32", "f16x2", "pred".
struct Type {
  char kind = 0;
  std::uint8_t bits = 0;
};
std::optional<Type> TypeOf(std::string_view modifier) {
  if (modifier == "pred") return Type{'p', 1};
  if (modifier.size() < 2 || std::string_view("subf").find(modifier[0]) == std::string_view::npos) return std::nullopt;
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(modifier.data() + 1, modifier.data() + modifier.size(), bits);
  if (error != std::errc() || bits > 128) return std::nullopt;
  if (end != modifier.data() + modifier.size()) bits *= 2;  // pairs
  return Type{modifier[0], static_cast<std::uint8_t>(bits)};
}

void TakeModifier(std::string_view modifier, std::size_t& types, Operation& operation) {
  constexpr std::array kRoundings = {"rn", "rz", "rm", "rp"};
  constexpr std::array kChanges = {"sat", "ftz", "cc", "satfinite", "relu", "hi"};
  if (modifier == "wide") operation.wide = true;
  if (modifier == "lo") operation.low = true;
  if (modifier == "global") operation.global = true;
  constexpr std::array kJoins = {"add", "min", "max", "and", "or"};
  if (std::ranges::find(kJoins, modifier) != kJoins.end()) operation.joins_lanes = true;
  if (modifier == "add") operation.sums = true;
  if (std::ranges::find(kRoundings, modifier) != kRoundings.end()) operation.rounded = true;
  if (std::ranges::find(kChanges, modifier) != kChanges.end()) operation.saturates = true;
  const std::optional<Type> type = TypeOf(modifier);
  if (!type.has_value()) return;
  if (types == 0) {
    operation.bits = type->bits;
    operation.is_float = type->kind == 'f';
    operation.is_signed = type->kind == 's';
  } else if (types == 1) {
    operation.from = type->bits;
    operation.from_float = type->kind == 'f';
    operation.from_signed = type->kind == 's';
  }
  ++types;
}

}  // namespace

const Expansion& ExpansionOf(const Operation& operation) { return kExpansions[operation.expansion - 1]; }

Operation ParseOperation(std::string_view text) {
  Operation operation;
  if (text.empty()) return operation;
  const std::string_view name = text.substr(0, text.find('.'));
  operation.base = Base::kOther;
  operation.only_registers = name == "mma" || text.starts_with("wmma.mma.");
  operation.pure = std::ranges::find(kPure, name) != std::end(kPure);
  for (const Named& named : kNamed) {
    if (named.name != name) continue;
    operation.base = named.base;
    operation.pure = named.pure;
  }
  std::size_t types = 0;
  VisitModifiers(text, [&](std::string_view modifier) { TakeModifier(modifier, types, operation); });
  operation.expansion = FindExpansion(text);
  if (operation.is_float) operation.low = true;
  const bool is_atomic = operation.base == Base::kAtomic || operation.base == Base::kReduce;
  if (!is_atomic || operation.is_float) operation.joins_lanes = operation.sums = false;
  return operation;
}

}  // namespace gridloom::lowering
