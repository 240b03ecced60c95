// Guards: a predicate decides whether an instruction issues, and so has to be there before an operand has to: 13 cycles
// after the comparison on Ampere, 12 on Turing, where a sum of predicates waits 4 (Mesa's NAK, sm80_instr_latencies.rs
// and sm75_instr_latencies.rs, whose numbers NVIDIA gave). What memory or a shuffle brings is waited for by scoreboard.
#include <unordered_set>

#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

using trace::OpClass;

bool IsArithmetic(const Node& node) {
  switch (node.shape.op) {
    case OpClass::kInt:
    case OpClass::kIntMul:
    case OpClass::kFp32:
    case OpClass::kFp64:
    case OpClass::kFp16: return true;
    default: return false;
  }
}

/// What decides whether nodes issue, and where branches go.
std::unordered_set<Register> Deciders(const Kernel& kernel) {
  std::unordered_set<Register> deciders;
  const auto add = [&](Register reg) { deciders.insert(reg); };
  for (const Block& block : kernel.blocks) {
    for (const Node& node : block.nodes) {
      if (node.guarded()) VisitRegisters(std::span(node.sources).last(1), add);
      if (node.shape.op == OpClass::kBranch) VisitReads(node, add);
      // What an election among lanes said, or the conditions of its region.
      if (node.one_lane && !node.waits_for.empty()) VisitRegisters(std::span(node.waits_for).last(1), add);
      else if (node.predicated) VisitRegisters(node.waits_for, add);
    }
  }
  return deciders;
}

}  // namespace

void Guards(Kernel& kernel, const Target&) {
  const std::unordered_set<Register> deciders = Deciders(kernel);
  for (Block& block : kernel.blocks) {
    for (Node& node : block.nodes) {
      if (!IsArithmetic(node)) continue;
      VisitRegisters(node.results, [&](Register reg) { node.guards |= deciders.contains(reg); });
    }
  }
}

}  // namespace gridloom::lowering
