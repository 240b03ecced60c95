// Values: what has been computed of the same values before is not computed again.
#include <map>
#include <tuple>
#include <utility>

#include "sim/lowering/facts.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

/// What two nodes that compute the same have in common: the text of the opcode, by its number, and the sources.
using Key = std::pair<std::uint32_t, std::vector<std::pair<std::uint8_t, std::uint64_t>>>;

Key KeyOf(const Node& node) {
  Key key{node.text, {}};
  for (const Term& term : node.sources) key.second.emplace_back(static_cast<std::uint8_t>(term.kind), term.value);
  return key;
}

bool CanBeShared(const Node& node, const Values& values) {
  if (!node.operation.pure || node.ordered || node.partial() || node.text == 0 || node.results.empty()) return false;
  for (const Term& result : node.results) {
    if (!values.IsValue(static_cast<Register>(result.value))) return false;
  }
  for (const Term& source : node.sources) {
    if (!values.IsFixed(source)) return false;
  }
  return true;
}

}  // namespace

void SharedValues(Kernel& kernel, const Target&) {
  const Values values(kernel);
  const Dominance dominance(kernel);
  struct First {
    Place place;
    std::vector<Term> results;
  };
  std::map<Key, std::vector<First>> firsts;
  constexpr std::size_t kMostFirsts = 16;  // nodes that do not come before each other
  std::vector<Term> replacements(kernel.registers + 1);
  for (Register reg = 0; reg <= kernel.registers; ++reg) replacements[reg] = {Term::Kind::kRegister, reg};
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    std::vector<Node>& nodes = kernel.blocks[b].nodes;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      Node& node = nodes[i];
      for (Term& source : node.sources) {
        if (source.kind == Term::Kind::kRegister) source = replacements[source.value];
      }
      if (!CanBeShared(node, values)) continue;
      std::vector<First>& known = firsts[KeyOf(node)];
      bool shared = false;
      for (const First& first : known) {
        if (first.results.size() != node.results.size() || !dominance.Comes(first.place, {b, i})) continue;
        for (std::size_t r = 0; r < node.results.size(); ++r) replacements[node.results[r].value] = first.results[r];
        shared = true;
        break;
      }
      if (!shared && known.size() < kMostFirsts) known.push_back({{b, i}, node.results});
    }
  }
  Replace(kernel, replacements);  // the nodes themselves are dead now
}

}  // namespace gridloom::lowering
