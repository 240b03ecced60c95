// Regions: the code of blocks that run as one (predicates.cpp). Branches between them are gone; what is predicated
// waits for its condition.
#include <algorithm>

#include "sim/lowering/liveness.h"
#include "sim/lowering/pass.h"

namespace gridloom::lowering {
namespace {

/// The branch at the end of a part that others follow is gone.
bool IsGone(const Block& block, const Node& node, bool goes_on) {
  return goes_on && &node == &block.nodes.back() && node.operation.base == Base::kBranch;
}

Block CodeOf(const Region& region, const Kernel& kernel, const Liveness& liveness) {
  Block code;
  for (std::size_t p = 0; p < region.parts.size(); ++p) {
    const Region::Part& part = region.parts[p];
    const Block& block = kernel.blocks[part.block];
    const bool goes_on = part.optional || p + 1 != region.parts.size();
    for (const Node& original : block.nodes) {
      if (IsGone(block, original, goes_on)) continue;
      Node& node = code.nodes.emplace_back(original);
      node.part = static_cast<std::uint8_t>(p);
      if (!part.optional) continue;
      node.predicated = true;
      VisitRegisters(node.results, [&](Register reg) { node.keeps |= liveness.IsLiveOut(part.block, reg); });
      if (part.condition.kind == Term::Kind::kRegister) node.waits_for.push_back(part.condition);
    }
  }
  if (region.next != Region::kNoBlock) code.next = {region.next};
  else code.next = kernel.blocks[region.parts.back().block].next;
  return code;
}

}  // namespace

void Regions(Kernel& kernel, const Target&) {
  const Liveness liveness(kernel);
  std::vector<Block> codes;
  for (Region& region : kernel.regions) {
    region.code = static_cast<std::uint32_t>(kernel.blocks.size() + codes.size());
    codes.push_back(CodeOf(region, kernel, liveness));
  }
  for (Block& code : codes) kernel.blocks.push_back(std::move(code));
}

}  // namespace gridloom::lowering
