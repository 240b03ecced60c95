#include "sim/lowering/free_nodes.h"

#include <algorithm>
#include <unordered_map>

namespace gridloom::lowering {
namespace {

/// By result of a free node: what the node reads.
using Aliases = std::unordered_map<Register, std::vector<Term>>;

std::vector<Term> RegistersOf(const Node& node) {
  std::vector<Term> registers;
  VisitReads(node, [&](Register reg) { registers.push_back({Term::Kind::kRegister, reg}); });
  return registers;
}

/// Registers that only free nodes write, which all read the same.
Aliases FindAliases(const Kernel& kernel) {
  std::vector<bool> is_other(kernel.registers + 1);
  Aliases aliases;
  for (const Block& block : kernel.blocks) {
    for (const Node& node : block.nodes) {
      VisitRegisters(node.results, [&](Register reg) {
        if (!node.is_free) {
          is_other[reg] = true;
          return;
        }
        std::vector<Term> reads = RegistersOf(node);
        const auto [known, is_new] = aliases.try_emplace(reg, reads);
        if (!is_new && known->second != reads) is_other[reg] = true;
      });
    }
  }
  std::erase_if(aliases, [&](const auto& alias) { return is_other[alias.first]; });
  return aliases;
}

class Replacer {
 public:
  explicit Replacer(const Aliases& aliases) : aliases_(aliases) {}
  /// What has to be waited for in the place of `terms`.
  std::vector<Term> Of(const std::vector<Term>& terms) {
    std::vector<Term> out;
    for (const Term& term : terms) Add(term, 0, out);
    return out;
  }

 private:
  /// Longer chains, and those that lead back to themselves, are cut.
  static constexpr unsigned kMostSteps = 8;
  static constexpr std::size_t kMostTerms = 16;

  void Add(const Term& term, unsigned steps, std::vector<Term>& out) const {
    const auto alias =
        term.kind == Term::Kind::kRegister ? aliases_.find(static_cast<Register>(term.value)) : aliases_.end();
    if (alias == aliases_.end() || steps == kMostSteps || out.size() > kMostTerms) {
      out.push_back(term);
      return;
    }
    for (const Term& read : alias->second) Add(read, steps + 1, out);
  }

  const Aliases& aliases_;
};

}  // namespace

void RemoveFree(Kernel& kernel) {
  const Aliases aliases = FindAliases(kernel);
  if (aliases.empty()) return;
  Replacer replacer(aliases);
  for (Block& block : kernel.blocks) {
    std::erase_if(block.nodes, [&](const Node& node) {
      return node.is_free && std::ranges::all_of(node.results, [&](const Term& term) {
               return aliases.contains(static_cast<Register>(term.value));
             });
    });
    for (Node& node : block.nodes) {
      node.sources = replacer.Of(node.sources);
      node.waits_for = replacer.Of(node.waits_for);
    }
  }
}

}  // namespace gridloom::lowering
