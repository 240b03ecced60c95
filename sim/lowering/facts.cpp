#include "sim/lowering/facts.h"

#include "sim/lowering/liveness.h"

namespace gridloom::lowering {
namespace {

std::vector<bool> HasPredecessor(const Kernel& kernel) {
  std::vector<bool> has(kernel.blocks.size());
  for (const Block& block : kernel.blocks) {
    for (const std::uint32_t next : block.next) has[next] = true;
  }
  return has;
}

/// The blocks' graph with a root before all that nothing leads to.
analysis::Graph GraphOf(const Kernel& kernel) {
  const auto root = static_cast<analysis::NodeId>(kernel.blocks.size());
  analysis::Graph graph(kernel.blocks.size() + 1);
  const std::vector<bool> has = HasPredecessor(kernel);
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    if (b == 0 || !has[b]) graph.AddEdge(root, b);
    for (const std::uint32_t next : kernel.blocks[b].next) graph.AddEdge(b, next);
  }
  return graph;
}

}  // namespace

Values::Values(const Kernel& kernel)
    : kernel_(kernel), is_value_(kernel.registers + 1), place_(kernel.registers + 1), reads_(kernel.registers + 1) {
  std::vector<std::uint32_t> writes(kernel.registers + 1);
  for (std::uint32_t b = 0; b < kernel.blocks.size(); ++b) {
    for (std::uint32_t i = 0; i < kernel.blocks[b].nodes.size(); ++i) {
      const Node& node = kernel.blocks[b].nodes[i];
      VisitReads(node, [&](Register reg) { ++reads_[reg]; });
      VisitRegisters(node.results, [&](Register reg) {
        writes[reg] += node.partial() ? 2 : 1;
        place_[reg] = {b, i};
      });
    }
  }
  for (Register reg = 1; reg <= kernel.registers; ++reg) is_value_[reg] = writes[reg] == 1;
  const Liveness liveness(kernel);
  const std::vector<bool> has = HasPredecessor(kernel);
  for (std::size_t b = 0; b < kernel.blocks.size(); ++b) {
    if (b != 0 && has[b]) continue;
    for (const Register reg : liveness.LiveIn(b)) is_value_[reg] = false;
  }
}

Dominance::Dominance(const Kernel& kernel)
    : tree_(GraphOf(kernel), static_cast<analysis::NodeId>(kernel.blocks.size())) {}

void Replace(Kernel& kernel, std::vector<Term> replacements) {
  const auto is_last = [&](const Term& term) {
    return term.kind != Term::Kind::kRegister || replacements[term.value] == term;
  };
  // Each register on the way is replaced by the last term, too, so that no way is gone twice.
  std::vector<std::uint64_t> way;
  const auto last = [&](Term term) {
    way.clear();
    for (; !is_last(term) && way.size() <= replacements.size(); term = replacements[term.value])
      way.push_back(term.value);
    for (const std::uint64_t reg : way) replacements[reg] = term;
    return term;
  };
  for (Block& block : kernel.blocks) {
    for (Node& node : block.nodes) {
      for (Term& term : node.sources) {
        if (term.kind == Term::Kind::kRegister) term = last(term);
      }
    }
  }
}

}  // namespace gridloom::lowering
