// Pairs: integers of 64 bits are pairs of registers of 32 bits, and most of what is done with them takes two
// instructions, of which the second waits for the carry of the first.
#include <optional>

#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

struct Halves {
  std::uint32_t instructions = 1;
  OpClass op = OpClass::kInt;
};

/// What a GPU without 64-bit arithmetic takes for it. Sums: IADD and IADD.X, logic: one for each half, shifts: a funnel
/// shift (two instructions before Maxwell) and a plain one; comparisons: the halves; products: three partial products
/// of 32 bits and their sum.
std::optional<Halves> HalvesOf(const Node& node, const Target& target) {
  const Operation& operation = node.operation;
  if (operation.bits != 64 || operation.is_float || operation.from_float || node.shape.op == OpClass::kMemory)
    return std::nullopt;
  constexpr std::uint32_t kMaxwell = 50;
  switch (operation.base) {
    case Base::kAdd:
    case Base::kSub:
    case Base::kLogic:
    case Base::kCompare:
    case Base::kSelect: return Halves{2, OpClass::kInt};
    case Base::kShl:
    case Base::kShr:
      // A word or more: the half that comes out is shifted, the other one is zero, or the sign.
      if (node.sources.size() > 1 && node.sources[1].kind == Term::Kind::kNumber && node.sources[1].value >= 32)
        return std::nullopt;
      return Halves{target.sm() < kMaxwell ? 3u : 2u, OpClass::kInt};
    case Base::kMul:
    case Base::kMad:
      if (!operation.low || operation.wide) return std::nullopt;
      return Halves{4, OpClass::kIntMul};
    default: return std::nullopt;
  }
}

}  // namespace

void Pairs(Kernel& kernel, const Target& target) {
  for (Block& block : kernel.blocks) {
    std::vector<Node> nodes;
    nodes.reserve(block.nodes.size());
    for (Node& node : block.nodes) {
      const std::optional<Halves> halves = node.ordered ? std::nullopt : HalvesOf(node, target);
      if (!halves.has_value()) {
        nodes.push_back(std::move(node));
        continue;
      }
      // Each of them waits for the one before; the last one has the result.
      Term carry{};
      for (std::uint32_t i = 1; i < halves->instructions; ++i) {
        Node part = node;
        part.shape.op = halves->op;
        part.is_part = true;
        part.flags = 0;
        part.parts.clear();
        part.results = {{Term::Kind::kRegister, ++kernel.registers}};
        if (i > 1) part.waits_for = {carry};
        carry = part.results[0];
        nodes.push_back(std::move(part));
      }
      node.shape.op = halves->op;
      node.waits_for.push_back(carry);
      nodes.push_back(std::move(node));
    }
    block.nodes = std::move(nodes);
  }
}

}  // namespace gridloom::lowering
