// Dead results: what nothing reads that has an effect is not computed. Loads too: their records are left out.
#include "sim/lowering/facts.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

bool HasEffect(const Node& node) {
  if (node.ordered) return true;
  if (node.operation.pure) return false;
  const bool loads = node.operation.base == Base::kLoad && (node.shape.flags & trace::kVolatile) == 0;
  return !loads;
}

}  // namespace

void Dead(Kernel& kernel, const Target&) {
  std::vector<std::vector<const Node*>> writers(kernel.registers + 1);
  std::vector<const Node*> work;
  for (const Block& block : kernel.blocks) {
    for (const Node& node : block.nodes) {
      VisitRegisters(node.results, [&](Register reg) { writers[reg].push_back(&node); });
      if (HasEffect(node)) work.push_back(&node);
    }
  }
  std::vector<bool> is_read(kernel.registers + 1);
  while (!work.empty()) {
    const Node* const node = work.back();
    work.pop_back();
    VisitReads(*node, [&](Register reg) {
      if (is_read[reg]) return;
      is_read[reg] = true;
      work.insert(work.end(), writers[reg].begin(), writers[reg].end());
    });
  }
  Remove(kernel, [&](const Node& node) {
    if (HasEffect(node)) return false;
    bool wanted = false;
    VisitRegisters(node.results, [&](Register reg) { wanted |= is_read[reg]; });
    return !wanted;
  });
}

}  // namespace gridloom::lowering
