// Constants: what follows from constants alone is one. An instruction of a GPU's takes a constant as it is, and, before
// Hopper, reads a parameter of the kernel out of the constant bank as an operand. From Hopper on a load of its own
// brings each (measured: the 20 instructions of a vector addition, tests/data/gpu/times-h200.json).
#include <optional>

#include "sim/lowering/facts.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

std::uint64_t Cut(std::uint64_t value, unsigned bits, bool is_signed) {
  if (bits == 0 || bits >= 64) return value;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  const bool negative = is_signed && (value >> (bits - 1) & 1) != 0;
  return negative ? value | ~mask : value & mask;
}

/// What the node computes if all it reads is known; integers only.
std::optional<std::uint64_t> ValueOf(const Node& node) {
  const Operation& operation = node.operation;
  if (operation.is_float || operation.from_float || operation.saturates || operation.bits > 64) return std::nullopt;
  std::uint64_t values[3] = {};
  if (node.sources.empty() || node.sources.size() > 3) return std::nullopt;
  for (std::size_t i = 0; i < node.sources.size(); ++i) {
    if (node.sources[i].kind != Term::Kind::kNumber) return std::nullopt;
    values[i] = Cut(node.sources[i].value, operation.bits, operation.is_signed);
  }
  const unsigned bits = operation.bits, most = bits - 1;
  switch (operation.base) {
    case Base::kAdd: return Cut(values[0] + values[1], bits, false);
    case Base::kSub: return Cut(values[0] - values[1], bits, false);
    case Base::kMul:
      if (operation.wide) return Cut(values[0] * values[1], 2 * bits, false);
      if (operation.low) return Cut(values[0] * values[1], bits, false);
      return std::nullopt;
    case Base::kShl: return values[1] > most ? 0 : Cut(values[0] << values[1], bits, false);
    default: return std::nullopt;
  }
}

bool IsParameter(const Node& node) {
  return node.operation.base == Base::kLoad && node.shape.space == trace::Space::kParameter &&
         node.results.size() == 1 && node.sources.size() == 2 && node.sources[0].kind == Term::Kind::kName &&
         node.operation.bits >= 32;
}

/// A name for a parameter that no text has: of its variable and the offset in it.
Term NameOf(const Node& load) {
  constexpr unsigned kOffsetBits = 32;
  return {Term::Kind::kName, load.sources[0].value | (load.sources[1].value + 1) << kOffsetBits};
}

/// Addresses of memory are in registers.
bool TakesConstants(const Node& node) { return node.operation.pure || node.operation.base == Base::kMove; }

}  // namespace

void Constants(Kernel& kernel, const Target& target) {
  const Values values(kernel);
  std::vector<Term> known(kernel.registers + 1);
  for (Register reg = 0; reg <= kernel.registers; ++reg) known[reg] = {Term::Kind::kRegister, reg};
  std::vector<Term> parameters = known;
  for (Block& block : kernel.blocks) {
    for (Node& node : block.nodes) {
      for (Term& source : node.sources) {
        if (source.kind == Term::Kind::kRegister) source = known[source.value];
      }
      if (node.partial() || node.results.size() != 1 || !values.IsValue(static_cast<Register>(node.results[0].value)))
        continue;
      const auto result = static_cast<Register>(node.results[0].value);
      if (IsParameter(node)) parameters[result] = NameOf(node);
      if (const auto value = ValueOf(node)) known[result] = {Term::Kind::kNumber, *value};
    }
  }
  Replace(kernel, known);
  constexpr std::uint32_t kHopper = 90;
  if (target.sm() >= kHopper) return;
  for (Block& block : kernel.blocks) {
    for (Node& node : block.nodes) {
      if (!TakesConstants(node)) continue;
      for (Term& source : node.sources) {
        if (source.kind == Term::Kind::kRegister) source = parameters[source.value];
      }
    }
  }
}

}  // namespace gridloom::lowering
