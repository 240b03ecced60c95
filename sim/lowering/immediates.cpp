// Immediates: what is stored or handed to an atomic is in a register. A constant other than zero has to be moved there,
// once for all that store it in a block.
#include <map>

#include "sim/lowering/lower.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

bool TakesRegisters(const Node& node) {
  const Base base = node.operation.base;
  return (base == Base::kStore || base == Base::kAtomic || base == Base::kReduce) && !node.ordered;
}

/// Moves the constant into a register of its own.
Node Move(std::uint64_t value, Kernel& kernel, const Node& user) {
  Node node;
  node.shape.op = trace::OpClass::kInt;
  node.shape.line = user.shape.line;
  node.is_part = true;
  node.ptx = Lowered::kAdded;
  node.sources = {{Term::Kind::kNumber, value}};
  node.results = {{Term::Kind::kRegister, ++kernel.registers}};
  return node;
}

}  // namespace

void Immediates(Kernel& kernel, const Target&) {
  for (Block& block : kernel.blocks) {
    std::vector<Node> nodes;
    nodes.reserve(block.nodes.size());
    std::map<std::uint64_t, Term> registers;  // by constant
    for (Node& node : block.nodes) {
      for (std::size_t i = 1; TakesRegisters(node) && i < node.sources.size(); ++i) {
        const Term source = node.sources[i];
        if (source.kind != Term::Kind::kNumber || source.value == 0) continue;
        const auto [known, is_new] = registers.try_emplace(source.value);
        if (is_new) {
          nodes.push_back(Move(source.value, kernel, node));
          known->second = nodes.back().results[0];
        }
        node.waits_for.push_back(known->second);
      }
      nodes.push_back(std::move(node));
    }
    block.nodes = std::move(nodes);
  }
}

}  // namespace gridloom::lowering
