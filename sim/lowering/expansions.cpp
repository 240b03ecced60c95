// Expansions: operations of PTX that a GPU has no instruction for are sequences of those that it has (expansions.def).
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

OpClass ClassOf(char step) {
  switch (step) {
    case 'm': return OpClass::kIntMul;
    case 'f': return OpClass::kFp32;
    case 'd': return OpClass::kFp64;
    case 's': return OpClass::kSfu;
    case 'c': return OpClass::kConvert;
    case 'b': return OpClass::kBranch;
    case 'x': return OpClass::kControl;
    default: return OpClass::kInt;
  }
}

bool Expands(const Node& node, const Target& target) {
  return node.operation.expansion != 0 && !node.ordered && !node.results.empty() && node.parts.empty() &&
         target.sm() >= ExpansionOf(node.operation).least_sm;
}

/// Each step waits for the one before; the last one has the result.
void Expand(Node node, Kernel& kernel, std::vector<Node>& nodes) {
  const std::string_view steps = ExpansionOf(node.operation).steps;
  Term last{};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool is_last = i + 1 == steps.size();
    Node step = is_last ? std::move(node) : node;
    step.shape.op = ClassOf(steps[i]);
    if (i != 0) step.waits_for.push_back(last);
    if (!is_last) {
      step.is_part = true;
      step.flags = 0;
      step.results = {{Term::Kind::kRegister, ++kernel.registers}};
      last = step.results[0];
    }
    nodes.push_back(std::move(step));
  }
}

}  // namespace

void Expansions(Kernel& kernel, const Target& target) {
  for (Block& block : kernel.blocks) {
    std::vector<Node> nodes;
    nodes.reserve(block.nodes.size());
    for (Node& node : block.nodes) {
      if (Expands(node, target)) Expand(std::move(node), kernel, nodes);
      else nodes.push_back(std::move(node));
    }
    block.nodes = std::move(nodes);
  }
}

}  // namespace gridloom::lowering
